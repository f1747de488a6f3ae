"""Rules for Dockerfiles, of the kind that hadolint has, and the parser that they need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_COMPILERS = re.compile(r"(g\+\+|gcc|clang|make|cmake|ninja-build|bazel|git|.*-dev)(-[\d.]+)?")


@dataclass(frozen=True)
class Instruction:
    name: str  # in capitals
    text: str  # all behind the name, on one line

    @property
    def words(self) -> list[str]:
        """The text's words that are no options of the instruction."""
        return [word for word in self.text.split() if not word.startswith("--")]

    def option(self, name: str) -> str | None:
        """The value of its option --name=value."""
        found = re.search(rf"(?:^|\s)--{name}=(\S+)", self.text)
        return found and found[1]


@dataclass
class Stage:
    image: str  # what it starts from, as written
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, name: str) -> list[Instruction]:
        return [instruction for instruction in self.instructions if instruction.name == name]


@dataclass
class Dockerfile:
    arguments: dict[str, str | None]  # the ARGs before the first stage, with their defaults
    stages: list[Stage]


def parse(text: str) -> Dockerfile:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\s*\n", " ", "\n".join(lines))
    parsed = Dockerfile({}, [])
    for line in filter(str.strip, joined.splitlines()):
        name, _, rest = line.strip().partition(" ")
        instruction = Instruction(name.upper(), " ".join(rest.split()))
        if instruction.name == "FROM":
            image, *alias = instruction.words
            parsed.stages.append(Stage(image, alias[1] if alias else ""))
        elif parsed.stages:
            parsed.stages[-1].instructions.append(instruction)
        else:  # only ARG may stand there
            argument, has_default, default = instruction.text.partition("=")
            parsed.arguments[argument] = default if has_default else None
    return parsed


def installed(stage: Stage) -> set[str]:
    """The packages that the stage itself installs with apt-get."""
    commands = [c for run in stage.all("RUN") for c in re.split(r"&&|;|\|\|", run.text)]
    lists = [c.partition(" install ")[2] for c in commands if re.search(r"apt-get\b.* install ", c)]
    return {word for text in lists for word in text.split() if not word.startswith("-")}


def lint(text: str, context: Path) -> list[str]:
    """What is wrong with a Dockerfile.

    Args:
      text: the Dockerfile's.
      context: the folder that it copies from.
    """
    parsed = parse(text)
    if not parsed.stages:
        return ["no FROM"]
    problems = [*_images(parsed), *_final_stage(parsed.stages)]
    earlier: list[str] = []
    for stage in parsed.stages:
        problems += [*_apt(stage), *_copies(stage, earlier, context), *_banned(stage)]
        earlier.append(stage.name)
    return problems


def _images(parsed: Dockerfile) -> Iterator[str]:
    """Stages start from earlier ones, pinned images, or images that the builder must name."""
    earlier: set[str] = set()
    for stage in parsed.stages:
        image: str | None = stage.image
        if argument := re.fullmatch(r"\$\{?(\w+)\}?", stage.image):
            if argument[1] not in parsed.arguments:
                yield f"FROM {stage.image}: no such ARG before the first stage"
                continue
            image = parsed.arguments[argument[1]]
        pinned = image is None or re.fullmatch(r".+:(?!latest$)[^/:]*\d+\.\d+[^/:]*", image)
        if not pinned and image not in earlier:
            yield f"FROM {stage.image}: no release's tag, and no earlier stage"
        earlier.add(stage.name)


def _apt(stage: Stage) -> Iterator[str]:
    for run in stage.all("RUN"):
        if not re.search(r"\bapt-get\b.* install\b", run.text):
            continue
        if not re.search(r"apt-get update && .*install", run.text):
            yield f"apt-get install without update in the same RUN: {run.text}"
        for option in ("-y", "--no-install-recommends"):
            if option not in run.text.split():
                yield f"apt-get install without {option}: {run.text}"
        if not re.search(r"install .*&& rm -rf /var/lib/apt/lists/\*", run.text):
            yield f"apt-get install leaves /var/lib/apt/lists: {run.text}"


def _copies(stage: Stage, earlier: list[str], context: Path) -> Iterator[str]:
    for copy in stage.all("COPY"):
        origin = copy.option("from")
        if origin is not None:
            if origin not in earlier:
                yield f"COPY --from={origin}: no earlier stage"
            continue
        for source in copy.words[:-1]:
            if not (context / source).exists():
                yield f"COPY {source}: not in the context"


def _banned(stage: Stage) -> Iterator[str]:
    for instruction in stage.instructions:
        if instruction.name == "ADD":
            yield f"ADD {instruction.text}: COPY says what it does"
        if instruction.name == "RUN" and re.search(r"\bsudo\b", instruction.text):
            yield f"sudo: {instruction.text}"
        if instruction.name == "WORKDIR" and not instruction.text.startswith("/"):
            yield f"WORKDIR {instruction.text}: not absolute"
        if instruction.name in ("ENTRYPOINT", "CMD") and not _is_exec_form(instruction.text):
            yield f"{instruction.name} {instruction.text}: not in exec form"


def _is_exec_form(text: str) -> bool:
    try:
        words = json.loads(text)
    except json.JSONDecodeError:
        return False
    return isinstance(words, list) and all(isinstance(word, str) for word in words)


def _final_stage(stages: list[Stage]) -> Iterator[str]:
    """What is shipped: the last stage, with those of this file that it starts from."""
    by_name = {stage.name: stage for stage in stages[:-1]}
    chain = [stages[-1]]
    while chain[0].image in by_name:
        chain.insert(0, by_name.pop(chain[0].image))
    users = [user.text for stage in chain for user in stage.all("USER")]
    # An image that the builder must name has a user of its own; a released one has root.
    if users and users[-1].partition(":")[0] in ("root", "0"):
        yield "the last USER is root"
    if not users and not re.fullmatch(r"\$\{?RUN_IMAGE\}?", chain[0].image):
        yield "no USER"
    for package in sorted(set().union(*map(installed, chain))):
        if _COMPILERS.fullmatch(package):
            yield f"{package}: nothing to ship"

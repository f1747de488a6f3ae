"""Builds Dockerfiles without Docker, as trees of files that chroot enters: as root, on Debian 12.

It knows just the instructions, and forms of them, that the Dockerfiles here have, and ends with an
error at any other.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from tests.docker.dockerfile_lint import Instruction, parse

MIRROR = "http://deb.debian.org/debian"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A script: what is called $2 in the folder $1 to the folder $3; the rest are options for tar.
COPY = """mkdir -p "$3"
tar -C "$1" --owner=0 --group=0 "${@:4}" -c "$2" | tar -C "$3" --no-overwrite-dir -x"""

# How this machine reaches the packages; a tree gets those of them that are there.
NETWORK_FILES = shlex.split("""
    /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/auth.conf /etc/apt/auth.conf.d
    /etc/apt/keyrings /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d /usr/share/keyrings
    /etc/hosts /etc/resolv.conf /etc/pip.conf /etc/uv
    /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates""")
NETWORK_VARIABLES = re.compile(
    r"(?i:.*_proxy)|(PIP|UV)_.*(INDEX|CERT|HOST|LINKS|TIMEOUT).*|SSL_CERT_.*|.*_CA_BUNDLE"
)


def obstacle() -> str | None:
    """Why no tree can be built here."""
    if os.geteuid() != 0:
        return "only root may make the trees"
    system = platform.freedesktop_os_release()
    if (system["ID"], system.get("VERSION_ID")) != ("debian", "12"):
        return "needs Debian 12"
    tried = subprocess.run([*_enter(Path("/")), "true"], capture_output=True, text=True)
    return f"unshare: {tried.stderr}" if tried.returncode else None


def _enter(tree: Path, folder: str = "/", user: int = 0) -> list[str]:
    """What to put before a command; its processes and its mount of /proc go when it ends."""
    inside = [f"--root={tree}", f"--wd={folder}", f"--setuid={user}", f"--setgid={user}"]
    # The kernel forgets --kill-child where the user changes, hence the timeout.
    apart = ["unshare", "--mount-proc", "--pid", "--kill-child", *inside, "--"]
    return [*apart, "timeout", "--signal=KILL", "600"]


@dataclass
class Image:
    tree: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"
    user: str = "root"
    entry_point: list[str] = field(default_factory=list)

    def copy(self, tree: Path) -> Image:
        _check(["cp", "-a", "--reflink=auto", self.tree, tree])
        return replace(self, tree=tree, environment={**self.environment})

    def run(self, *command: str, user: int, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command, and returns with all its output in stdout."""
        return subprocess.run(
            [*_enter(self.tree, self.folder, user), *command],
            env={**self.environment, **variables},
            umask=0o022,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def debian(tree: Path) -> Image:
    """A minimal Debian 12 with this machine's way to the packages."""
    with tempfile.TemporaryDirectory() as folder:
        command, variables = _debootstrap(Path(folder))
        options = ["--variant=minbase", "bookworm", str(tree), _mirror()]
        # In namespaces of its own: what it mounts must not outlive it.
        apart = ["unshare", "--mount", "--pid", "--kill-child", "--"]
        _check([*apart, *command, *options], **variables)
    _check(["cp", "-rL", "--parents", *filter(os.path.exists, NETWORK_FILES), tree])
    # Not all of apt's settings: some are programs to call, which the tree lacks.
    settings = _check(["apt-config", "dump", "Acquire"])
    (tree / "etc/apt/apt.conf.d/network").write_text(settings)
    return Image(tree)


def _debootstrap(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The command and variables for it; where it isn't installed, the folder will have it."""
    if installed := shutil.which("debootstrap", path=PATH):
        return [installed], {}
    apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={folder}"]
    _check([*apt, "update"])
    _check([*apt, "-o", "APT::Sandbox::User=root", "download", "debootstrap"], cwd=folder)
    _check(["dpkg", "-x", *folder.glob("debootstrap_*.deb"), folder])
    program = folder / "usr/sbin/debootstrap"
    return [str(program)], {"DEBOOTSTRAP_DIR": str(folder / "usr/share/debootstrap")}


def _mirror() -> str:
    filters = ["Created-By: Packages", "Release: bookworm", "Component: main"]
    found = _check(["apt-get", "indextargets", "--format", "$(REPO_URI)", *filters])
    return (found.split() or [MIRROR])[0]


def context(checkout: Path, folder: Path) -> Path:
    """Copies what docker would copy from: the files that .dockerignore leaves."""
    lines = (checkout / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert not any(pattern.startswith("!") for pattern in patterns), "exceptions: unknown here"
    folder.mkdir()
    with tempfile.TemporaryDirectory() as empty:
        # To an empty repository all files are new. Git's globs are those of .dockerignore.
        _check(["git", "init", "--quiet", "--bare", empty])
        git = ["git", f"--git-dir={empty}", f"--work-tree={checkout}", "ls-files", "--others"]
        only = ["--exclude-per-directory=.gitignore", "-z", "--", "."]
        without = [f":(exclude,glob){pattern}" for pattern in patterns]
        names = _check([*git, *only, *without], cwd=checkout).rstrip("\0").split("\0")
    _check(["cp", "-dp", "--parents", "--", *names, folder], cwd=checkout)
    return folder


def build(
    file: Path, images: Mapping[str, Image], context: Path, folder: Path, **given: str
) -> dict[str, Image]:
    """Builds a Dockerfile with the given ARGs, and returns its stages' images by their names.

    What its stages start from is in `images`, by the names there, and is left as it is; the trees
    of the stages come into `folder`.
    """
    parsed = parse(file.read_text())
    arguments = {name: given.get(name, default) for name, default in parsed.arguments.items()}
    stages: dict[str, Image] = {}
    for stage in parsed.stages:
        start = images[Template(stage.image).substitute(arguments)]
        image = start.copy(folder / f"{file.name}-{stage.name}")
        follower = _Follower(image, context, stages, given)
        for instruction in stage.instructions:
            follower.follow(instruction)
        stages[stage.name] = image
    return stages


class _Follower:
    """Follows the instructions of one stage."""

    def __init__(
        self, image: Image, context: Path, stages: Mapping[str, Image], given: Mapping[str, str]
    ):
        self._image, self._context, self._stages, self._given = image, context, stages, given
        self._arguments: dict[str, str] = {}

    def follow(self, instruction: Instruction) -> None:
        text = instruction.text
        match instruction.name:
            case "ARG":
                name, default = text.split("=", maxsplit=1)
                self._arguments[name] = self._given.get(name, default)
            case "ENV":
                for word in shlex.split(self._expanded(text)):
                    name, value = word.split("=", maxsplit=1)
                    self._image.environment[name] = value
            case "WORKDIR":
                self._image.folder = text
                _check(["mkdir", "-p", self._image.tree / text[1:]])
            case "USER":
                self._image.user = text
            case "ENTRYPOINT":
                self._image.entry_point = json.loads(text)
            case "COPY":
                self._copy(instruction)
            case "RUN":
                self._run(text)
            case name:
                raise NotImplementedError(f"{name} {text}")

    def _expanded(self, text: str) -> str:
        return Template(text).substitute({**self._arguments, **self._image.environment})

    def _copy(self, copy: Instruction) -> None:
        if re.search(r"--(?!from=|chmod=)|[$*?\[]", copy.text):
            raise NotImplementedError(f"COPY {copy.text}")
        origin, mode = copy.option("from"), copy.option("chmod")
        root = self._context if origin is None else self._stages[origin].tree
        *sources, target = copy.words
        into = self._image.tree / os.path.join(self._image.folder, target)[1:]
        for source in sources:
            path = root / source.lstrip("/")
            if not path.is_dir() and not target.endswith("/"):
                raise NotImplementedError(f"COPY {copy.text}: a file with a new name")
            # A folder's content is copied, not the folder. All of it will be root's.
            parent, name = (path, ".") if path.is_dir() else (path.parent, path.name)
            bash = ["bash", "-euo", "pipefail", "-c", COPY, "copy", parent, name, into]
            _check([*bash, *([f"--mode={mode}"] if mode else [])])

    def _run(self, text: str) -> None:
        command = re.sub(r"^(--mount=type=cache\S* )+", "", text)
        if command.startswith("--") or self._image.user not in ("root", "0"):
            raise NotImplementedError(f"RUN {text}, as {self._image.user}")
        network = {name: value for name, value in os.environ.items() if self._serves(name, value)}
        variables = {**network, **self._arguments, **self._image.environment, "HOME": "/root"}
        finished = self._image.run("/bin/sh", "-c", command, user=0, **variables)
        if finished.returncode != 0:
            raise RuntimeError(f"RUN {text}: exit code {finished.returncode}\n{finished.stdout}")

    def _serves(self, name: str, value: str) -> bool:
        """Whether a variable of this machine is of the network, and names no file it lacks."""
        there = not value.startswith("/") or (self._image.tree / value[1:]).exists()
        return there and bool(NETWORK_VARIABLES.fullmatch(name))


def _check(command: list[str | Path], cwd: Path | None = None, **variables: str) -> str:
    """The output of a command that must succeed."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=cwd, env=environment, umask=0o022, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout

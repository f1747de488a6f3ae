"""A checkout of the scripts on a machine whose docker is a stand-in that writes down its calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

# Ends each argument with NUL and each call with one more. $FAILS: calls that fail, by how they
# begin; $BUILT: images that are there, with a space between them.
DOCKER = """
printf '%s\\0' "$@" '' >>"$CALLS"
echo 'some progress'
[[ -z $FAILS || "$*" != "$FAILS"* ]] || { printf 'no luck\\nat all\\n' >&2; exit 7; }
[[ $1 != image || " $BUILT " == *" $3 "* ]]
"""


class Machine:
    def __init__(self, root: Path):
        self.checkout = root / "check 'out'"
        self.calls_file = root / "calls"
        self.variables = {"FAILS": "", "BUILT": ""}
        self._programs = root / "programs"
        self._programs.mkdir()
        self.install("docker", DOCKER)
        self.install("nvidia-smi", "exit 1")
        (self.checkout / "docker").mkdir(parents=True)
        for file in "setup.sh", "run_local.sh", *(REPOSITORY / "docker").glob("*"):
            source = REPOSITORY / file
            shutil.copy(source, self.checkout / source.relative_to(REPOSITORY))

    def install(self, program: str, script: str) -> None:
        file = self._programs / program
        file.write_text(f"#!/usr/bin/env bash\n{script}\n")
        file.chmod(0o755)

    def hide(self, program: str) -> None:
        """Takes the program from the path."""
        (self._programs / program).unlink()
        for folder in os.environ["PATH"].split(":"):
            for file in Path(folder).glob("*"):
                link = self._programs / file.name
                if file.name != program and not link.exists():
                    link.symlink_to(file)
        self.variables["PATH"] = str(self._programs)

    def git(self, *arguments: str) -> str:
        user = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(self.checkout), *user, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> str:
        """Commits all files and returns the tag for that."""
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message=all")
        return self.git("rev-parse", "--short", "HEAD")

    def environment(self, **variables: str) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name != "SEED_RL_ACCELERATOR" and not name.startswith("GIT_")
        }
        path = f"{self._programs}:{os.environ['PATH']}"
        calls = str(self.calls_file)
        return {**inherited, "PATH": path, "CALLS": calls, **self.variables, **variables}

    def run(
        self, script: str, *arguments: str, cwd: Path | str = "/", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.checkout / script, *arguments],
            cwd=cwd,
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def output(self, script: str, *arguments: str, **options: str) -> str:
        """What a script that succeeds writes to its standard output."""
        finished = self.run(script, *arguments, **options)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    def refusal(self, script: str, *arguments: str, **options: str) -> str:
        """The last line that a script writes to standard error before it fails."""
        finished = self.run(script, *arguments, **options)
        assert (finished.returncode, finished.stdout) == (1, "")
        return finished.stderr.splitlines()[-1]

    def calls(self, command: str = "") -> list[list[str]]:
        """The arguments of the calls of docker, or of those with this command."""
        if not self.calls_file.exists():
            return []
        *calls, _ = self.calls_file.read_text().split("\0\0")
        listed = [call.split("\0") for call in calls]
        return [call for call in listed if command in ("", call[0])]

"""setup.sh with stand-ins for the machine's apt and user, a real uv, and a lock file of nothing."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

PROJECT = """
[project]
name = "tiny"
version = "1.0"
requires-python = ">=3.11,<3.14"

[project.optional-dependencies]
learner = []
cpu = []
gpu = []
tpu = []

[dependency-groups]
dev = []

[tool.uv]
package = false
"""

LOCK = """
version = 1
revision = 3
requires-python = ">=3.11, <3.14"

[[package]]
name = "tiny"
version = "1.0"
source = { virtual = "." }

[package.metadata]
provides-extras = ["cpu", "gpu", "learner", "tpu"]

[package.metadata.requires-dev]
dev = []
"""

# What dpkg-query says: of the packages that it is asked for, all but those in $MISSING are there.
DPKG_QUERY = """
for package in "$@"; do
  case " -W $MISSING " in *" $package "*) ;; *) echo "$package installed" ;; esac
done
"""


class Machine:
    """A checkout with setup.sh, and what its user and its apt are like."""

    def __init__(self, root: Path):
        self.checkout = root / "check out"
        self.apt_calls = root / "apt calls"
        self.packages = ""  # the apt packages that are missing, with a space between them
        self._programs = root / "programs"
        self._programs.mkdir()
        self._make_checkout()
        self.install("dpkg-query", DPKG_QUERY)
        self.install("apt-get", f'echo "$@" >>"{self.apt_calls}"')
        self.install("sudo", "exit 1")
        self.install("nvidia-smi", "exit 1")
        self.become_user(0)

    def install(self, program: str, script: str) -> None:
        file = self._programs / program
        file.write_text(f"#!/usr/bin/env bash\n{script}\n")
        file.chmod(0o755)

    def become_user(self, user: int) -> None:
        self.install("id", f"echo {user}")

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen:
        inherited = {
            k: v for k, v in os.environ.items() if k not in ("PYTHON", "SEED_RL_ACCELERATOR")
        }
        path = f"{self._programs}:{os.environ['PATH']}"
        return subprocess.Popen(
            [self.checkout / "setup.sh", *arguments],
            cwd="/",
            env={**inherited, "PATH": path, "MISSING": self.packages, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def set_up(self, *arguments: str, **variables: str) -> str:
        """Runs setup.sh and returns what it says."""
        return finish(self.start(*arguments, **variables))

    def refusal(self, *arguments: str, **variables: str) -> str:
        """Runs setup.sh, which fails, and returns its complaint."""
        process = self.start(*arguments, **variables)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1
        return errors

    @property
    def site_packages(self) -> Path:
        (path,) = (self.checkout / ".venv" / "lib").glob("python3*/site-packages")
        return path

    def add_own_package(self) -> Path:
        """What is left of a `pip install` by the user."""
        metadata = self.site_packages / "own-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
        (metadata / "RECORD").write_text(
            "own-1.0.dist-info/METADATA,,\nown-1.0.dist-info/RECORD,,\n"
        )
        return metadata

    def _make_checkout(self) -> None:
        (self.checkout / "seed_rl" / "grpc").mkdir(parents=True)
        shutil.copy(REPOSITORY / "setup.sh", self.checkout)
        (self.checkout / "pyproject.toml").write_text(PROJECT)
        (self.checkout / "uv.lock").write_text(LOCK)
        # With nothing to compile, setup.sh's last step is to run one of these modules.
        for module in "build", "messages_build":
            step = self.checkout / "seed_rl" / "grpc" / f"{module}.py"
            step.write_text(f"print('made by {module}')")
        if (REPOSITORY / ".uv").exists():  # else setup.sh fetches its uv
            (self.checkout / ".uv").symlink_to(REPOSITORY / ".uv")


def finish(process: subprocess.Popen) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_root_it_prints_the_apt_line_and_stops(machine):
    machine.become_user(1000)
    machine.packages = "cmake g++"
    assert machine.refusal() == (
        "setup: packages are missing; install them, then start again:\n"
        "  sudo apt-get update && sudo apt-get install -y --no-install-recommends cmake g++\n"
    )
    assert not machine.apt_calls.exists()
    assert not (machine.checkout / ".venv").exists()


def test_without_root_and_with_all_packages_it_sets_up(machine):
    machine.become_user(1000)
    machine.set_up()
    assert (machine.checkout / ".venv" / "bin" / "python").exists()


@pytest.mark.parametrize("user", [0, 1000])
def test_it_installs_only_missing_packages(machine, user):
    machine.become_user(user)
    machine.install("sudo", 'shift; "$@"')  # sudo -n without a password
    machine.packages = "ninja-build"
    assert "installing with apt (about a minute): ninja-build\n" in machine.set_up()
    options = "-qq -o DPkg::Lock::Timeout=300"
    assert machine.apt_calls.read_text().splitlines() == [
        f"{options} update",
        f"{options} install -y --no-install-recommends ninja-build",
    ]


def test_second_start_installs_nothing_and_says_nothing_of_it(machine):
    assert "installing the Python environment for cpu" in machine.set_up()
    stamp = machine.checkout / ".venv" / "seed_rl.stamp"
    made = stamp.stat().st_mtime_ns
    assert machine.set_up() == "made by build\n"
    assert stamp.stat().st_mtime_ns == made
    assert not machine.apt_calls.exists()


def test_environment_with_tools_for_tests_serves_runs_too(machine):
    assert "installing the Python environment" in machine.set_up()
    assert "installing the Python environment" in machine.set_up("--dev")
    assert "installing" not in machine.set_up()
    assert "installing" not in machine.set_up("--dev")


def test_actors_need_no_compilers_and_no_tensorflow(machine):
    machine.packages = "cmake g++ libgrpc++-dev"
    output = machine.set_up(SEED_RL_ACCELERATOR="none")
    assert "for none" in output and "with apt" not in output
    assert output.endswith("made by messages_build\n")


def test_football_actors_need_compilers_for_the_engine(football):
    football.become_user(1000)
    football.packages = "cmake g++ libgrpc++-dev"
    complaint = football.refusal("--domain=football", SEED_RL_ACCELERATOR="none")
    assert complaint.endswith("--no-install-recommends cmake g++\n")


@pytest.mark.parametrize(
    ("gpus", "given", "printed"),
    [("", "", "cpu"), ("GPU 0: some", "", "gpu"), ("", "none", "none")],
)
def test_it_tells_the_accelerator_without_setting_up(machine, gpus, given, printed):
    machine.install("nvidia-smi", f"echo '{gpus}'")
    assert machine.set_up("--print_accelerator", SEED_RL_ACCELERATOR=given) == f"{printed}\n"
    assert not (machine.checkout / ".venv").exists()


def test_new_lock_file_is_installed_beside_the_users_packages(machine):
    machine.set_up()
    own = machine.add_own_package()
    lock = machine.checkout / "uv.lock"
    lock.write_text(lock.read_text() + "\n")
    assert "installing the Python environment" in machine.set_up()
    assert own.exists()


def test_another_tensorflow_means_a_clean_environment(machine):
    machine.set_up()
    own = machine.add_own_package()
    machine.install("nvidia-smi", "echo 'GPU 0: some'")
    assert "installing the Python environment for gpu" in machine.set_up()
    assert not own.exists()
    assert "for tpu" in machine.set_up(SEED_RL_ACCELERATOR="tpu")


def test_interrupted_installation_is_repeated(machine):
    machine.set_up()
    (machine.checkout / ".venv" / "seed_rl.stamp").unlink()
    assert "installing the Python environment" in machine.set_up()


def test_starts_at_the_same_time_wait_for_each_other(machine):
    starts = [machine.start() for _ in range(3)]
    said = "".join(map(finish, starts))
    assert said.count("installing the Python environment") == 1


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (["--prod"], {}, "NAME or --print_accelerator, got '--prod'."),
        ([], {"SEED_RL_ACCELERATOR": "npu"}, "expected cpu, gpu, tpu or none, got 'npu'."),
        ([], {"PYTHON": "false"}, "expected a Python 3.11 to 3.13 with its venv module, got false"),
    ],
)
def test_wrong_input_is_one_sentence(machine, arguments, variables, message):
    assert message in machine.refusal(*arguments, **variables)


@pytest.fixture
def football(machine: Machine, tmp_path: Path) -> Machine:
    """A machine with Boost.Python for this interpreter, on which the engine was built before."""
    (machine.checkout / "football").mkdir()
    shutil.copy(REPOSITORY / "football" / "setup.sh", machine.checkout / "football")
    library = f"libboost_python3{sys.version_info.minor}.so.1.74.0"
    machine.install("ldconfig", f"echo '    {library} (libc6,x86-64) => /lib/{library}'")
    soabi = sysconfig.get_config_var("SOABI")
    make_wheel(tmp_path / "cache" / "seed_rl" / "wheels" / f"{soabi}-{library}")
    return machine


def make_wheel(folder: Path) -> None:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "gfootball-2.10.2-py3-none-any.whl", "w") as wheel:
        info = "gfootball-2.10.2.dist-info"
        wheel.writestr("gfootball.py", "")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: gfootball\nVersion: 2.10.2\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def test_football_is_installed_from_the_wheel_that_was_kept(football, tmp_path):
    cache = str(tmp_path / "cache")
    engine = "gfootball.py"
    football.set_up(XDG_CACHE_HOME=cache)
    assert not (football.site_packages / engine).exists()
    for _ in range(2):
        football.set_up("--domain=football", XDG_CACHE_HOME=cache)
        assert (football.site_packages / engine).exists()
    football.set_up("--domain=football", XDG_CACHE_HOME=cache, SEED_RL_ACCELERATOR="tpu")
    assert (football.site_packages / engine).exists()


def test_football_needs_packages_of_its_own(football):
    football.become_user(1000)
    football.packages = "libboost-python-dev"
    assert football.refusal("--domain=football").endswith(" libboost-python-dev\n")
    football.set_up("--domain=atari")


def test_football_names_the_interpreter_that_boost_has(football, tmp_path):
    football.install("ldconfig", "echo 'libboost_python399.so.1.74.0 (libc6) => /lib/x'")
    complaint = football.refusal("--domain=football", XDG_CACHE_HOME=str(tmp_path / "cache"))
    expected = "installed for, which football needs (python3.99), got python3."
    assert complaint.startswith("setup: PYTHON: expected an interpreter that Boost.Python is ")
    assert expected in complaint


def test_run_script_explains_itself_without_setting_up(tmp_path):
    script = shutil.copy(REPOSITORY / "run_local.sh", tmp_path)
    asked = subprocess.run([script, "--help"], capture_output=True, text=True)
    assert asked.returncode == 0
    assert asked.stdout.startswith("Usage: ./run_local.sh ENVIRONMENT AGENT NUM_ACTORS")
    unasked = subprocess.run([script], capture_output=True, text=True)
    assert unasked.returncode == 1
    assert unasked.stderr == asked.stdout


@pytest.mark.parametrize(
    ("arguments", "asks_for"),
    [
        ("football vtrace 2", "--domain=football"),
        ("football/ vtrace 2 8 --game=5_vs_5", "--domain=football"),
        ("football vtrace --help", ""),
        ("football vtrace --helpfull", ""),
        ("football vtrace two", ""),
    ],
)
def test_run_script_sets_up_a_domain_only_for_a_run(tmp_path, arguments, asks_for):
    script = shutil.copy(REPOSITORY / "run_local.sh", tmp_path)
    setup = tmp_path / "setup.sh"
    setup.write_text('#!/bin/sh\necho "$@"\nexit 1\n')
    setup.chmod(0o755)
    finished = subprocess.run([script, *arguments.split()], capture_output=True, text=True)
    assert (finished.returncode, finished.stdout) == (1, f"{asks_for}\n")

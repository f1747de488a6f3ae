"""gcp/train_*.sh and gcp/setup.sh as users start them, with stand-ins for gcloud and docker."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gcp.arguments import DOMAINS

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
PLACE = ["--project=a-project", "--region=europe-west4", "--bucket=a-bucket"]
READY = [*PLACE, "--image_tag=a-tag", "--name=a-run"]

# Records a call, with the file that --config names in the place of its name; then answers as told
# for the longest beginning of the call.
STAND_IN = """#!/usr/bin/env python3
import json, os, sys
call = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
words = [json.load(open(w[9:])) if w.startswith("--config=") else w for w in call]
with open("{calls}", "a") as calls:
    print(json.dumps(words), file=calls)
answers = json.load(open("{answers}"))
fitting = [known for known in answers if " ".join(call).startswith(known)]
output, code = answers[max(fitting, key=len)] if fitting else ("", 0)
print(output)
sys.exit(code)
"""


class Finished(NamedTuple):
    code: int
    output: str
    errors: str

    @property
    def complaint(self) -> str:
        """The one sentence of a refusal."""
        assert self.code == 1, self
        assert "Traceback" not in self.errors
        return self.errors.splitlines()[-1]


class Cloud:
    """A user's machine and account.

    Attributes:
      answers: of gcloud and docker, output and exit code, by the beginning of the call.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.answers: dict[str, tuple[str, int]] = {
            "gcloud auth list": ("somebody@example.com", 0),
            "gcloud config get-value project": ("gclouds-project", 0),
            "gcloud services list": (
                "aiplatform.googleapis.com\nartifactregistry.googleapis.com\n"
                "storage.googleapis.com",
                0,
            ),
        }
        for program in "gcloud", "docker":
            self.install(program, STAND_IN.format(calls=self._calls, answers=self._answers))

    @property
    def _calls(self) -> Path:
        return self._folder / "calls"

    @property
    def _answers(self) -> Path:
        return self._folder / "answers"

    def install(self, program: str, script: str) -> None:
        (self.programs / program).write_text(script)
        (self.programs / program).chmod(0o755)

    def start(
        self, script: str, *arguments: str, stdin: int = subprocess.DEVNULL, path: str | None = None
    ) -> Finished:
        self._answers.write_text(json.dumps(self.answers))
        process = subprocess.run(
            [REPOSITORY / "gcp" / script, *arguments],
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PATH": path or f"{self.programs}:{os.environ['PATH']}"},
            cwd=self._folder,
        )
        return Finished(process.returncode, process.stdout, process.stderr)

    def calls(self, beginning: str = "") -> list[list[Any]]:
        if not self._calls.exists():
            return []
        calls = [json.loads(line) for line in self._calls.read_text().splitlines()]
        return [call for call in calls if " ".join(map(str, call)).startswith(beginning)]


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)


def dry_run(cloud: Cloud, script: str, *arguments: str) -> dict[str, Any]:
    finished = cloud.start(script, *READY, "--dry_run", *arguments)
    assert finished.code == 0, finished
    assert cloud.calls() == []
    return json.loads(finished.output)


@pytest.mark.parametrize(
    "name, script, arguments",
    [
        ("football", "train_football.sh", []),
        ("atari", "train_atari.sh", []),
        ("dmlab", "train_dmlab.sh", []),
        (
            "atari_tpu",
            "train_atari.sh",
            [
                "--accelerator=tpu_v5e",
                "--accelerator_count=4",
                "--spot",
                "--agent=vtrace",
                "--flagfile=",
                "--actor_machines=2",
                "--actor_machine=c2-standard-16",
                "--actors_per_machine=15",
                "--envs_per_actor=8",
                "--",
                "--game=Breakout",
                "--batch_size=64",
            ],
        ),
        (
            "football_tuning",
            "train_football.sh",
            ["--accelerator=v100", f"--tune={GOLDEN / 'tuning.json'}"],
        ),
    ],
)
def test_a_dry_run_prints_the_job_and_calls_nobody(
    cloud: Cloud, name: str, script: str, arguments: list[str]
) -> None:
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    assert _without_time(dry_run(cloud, script, *arguments)) == expected


def _without_time(spec: Any) -> Any:
    """A tuning job's name ends with the time, so that no study goes on from another's trials."""
    text, count = re.subn(r"a-run-\d{8}-\d{6}", "a-run-TIME", json.dumps(spec))
    assert (count > 0) == ("studySpec" in spec)
    return json.loads(text)


def test_what_is_behind_the_dashes_arrives_as_it_is(cloud: Cloud) -> None:
    flags = ["--game=a b", '--x=it\'s "$HOME" `id` \\ *', "--dry_run", "--game", "Pong"]
    spec = dry_run(cloud, "train_atari.sh", "--", *flags)
    for pool in spec["workerPoolSpecs"]:
        assert pool["containerSpec"]["args"][-len(flags) :] == flags


def test_a_run_is_checked_secured_and_submitted(cloud: Cloud) -> None:
    spec = dry_run(cloud, "train_football.sh")
    finished = cloud.start("train_football.sh", *READY, "--yes")
    assert finished.code == 0, finished
    place = ["--project=a-project", "--region=europe-west4"]
    (create,) = cloud.calls("gcloud ai custom-jobs create")
    assert create[4:] == [*place, "--display-name=a-run", spec]
    (copy,) = cloud.calls("gcloud storage cp")
    assert [Path(word).name for word in copy[3:6]] == ["token", "cert.pem", "key.pem"]
    assert copy[6:] == ["gs://a-bucket/seed_rl/a-run/credentials/"]
    assert cloud.calls("gcloud storage buckets describe")[0][4] == "gs://a-bucket"
    order = [" ".join(map(str, call[:4])) for call in cloud.calls("gcloud")]
    assert order[-2:] == [" ".join(copy[:4]), "gcloud ai custom-jobs create"]
    assert not cloud.calls("docker")  # --image_tag
    assert "gs://a-bucket/seed_rl/a-run" in finished.output


def test_tuning_is_submitted_with_its_counts(cloud: Cloud) -> None:
    tune = f"--tune={GOLDEN / 'tuning.json'}"
    spec = dry_run(cloud, "train_football.sh", tune)
    assert cloud.start("train_football.sh", *READY, "--yes", tune).code == 0
    (create,) = cloud.calls("gcloud ai hp-tuning-jobs create")
    assert create[4:6] == ["--max-trial-count=12", "--parallel-trial-count=3"]
    assert _without_time(create[-1]) == _without_time(spec)


def test_images_are_built_and_pushed(cloud: Cloud) -> None:
    finished = cloud.start("train_atari.sh", *PLACE, "--yes")
    assert finished.code == 0, finished
    registry = "europe-west4-docker.pkg.dev"
    assert cloud.calls("gcloud auth configure-docker")[0][3:] == ["--quiet", registry]
    pushed = [call[2] for call in cloud.calls("docker push")]
    (create,) = cloud.calls("gcloud ai custom-jobs create")
    images = [pool["containerSpec"]["imageUri"] for pool in create[-1]["workerPoolSpecs"]]
    assert sorted(pushed) == sorted(images)
    assert all(image.startswith(f"{registry}/a-project/seed-rl/atari-") for image in images)
    assert cloud.calls("docker build")


def test_the_estimate_is_told_and_can_be_the_users_own(cloud: Cloud) -> None:
    told = cloud.start("train_football.sh", *READY, "--dry_run").errors
    # 16 and 4 x 32 processors at 0.0546, a T4 at 0.4025; 80 frames/s for each of 128 processors.
    assert "about $8.26 an hour" in told and "10,240 frames/s" in told
    own = ["--price_per_hour=3.6", "--frames_per_second=1000"]
    told = cloud.start("train_football.sh", *READY, "--dry_run", *own).errors
    assert "$3.60 an hour (yours)" in told
    assert "$1,000 and 278 hours for 1e9 frames" in told


@pytest.mark.parametrize("answer, submitted", [("y\n", 1), ("\n", 0), ("n\n", 0)])
def test_it_asks_before_it_submits(cloud: Cloud, answer: str, submitted: int) -> None:
    terminal, stdin = pty.openpty()
    os.write(terminal, answer.encode())
    finished = cloud.start("train_football.sh", *READY, stdin=stdin)
    os.close(stdin)
    os.close(terminal)
    assert finished.code == 1 - submitted
    assert len(cloud.calls("gcloud ai custom-jobs create")) == submitted
    assert len(cloud.calls("gcloud storage cp")) == submitted


def test_a_run_that_has_a_job_is_left_alone(cloud: Cloud) -> None:
    job = "projects/1/locations/europe-west4/customJobs/7"
    cloud.answers[
        "gcloud ai custom-jobs list --project=a-project --region=europe-west4 --filter"
    ] = (
        job,
        0,
    )
    complaint = cloud.start("train_football.sh", *READY, "--yes").complaint
    assert "--name: " in complaint and complaint.endswith(f"gcloud ai custom-jobs cancel {job}")
    assert "displayName=a-run AND (state=JOB_STATE_QUEUED" in str(cloud.calls())
    assert not cloud.calls("gcloud storage cp")


def test_without_a_terminal_it_does_not_submit_unasked(cloud: Cloud) -> None:
    assert "--yes" in cloud.start("train_football.sh", *READY).complaint
    assert not cloud.calls("gcloud ai custom-jobs create")


@pytest.mark.parametrize(
    "call, named",
    [
        ("docker version", "docker: .*systemctl start docker"),
        ("gcloud auth list", "gcloud auth login"),
        ("gcloud projects describe", "--project: .*gcloud projects list"),
        ("gcloud services list", "--project: .*gcloud projects get-iam-policy a-project"),
        ("gcloud ai custom-jobs list", "--region: .*europe-west4"),
        ("gcloud storage buckets describe", "gcloud storage buckets create gs://a-bucket"),
        ("gcloud artifacts repositories describe", "gcloud artifacts repositories create seed-rl"),
    ],
)
def test_what_is_missing_comes_with_the_command_that_mends_it(
    cloud: Cloud, call: str, named: str
) -> None:
    assert cloud.start("setup.sh", *PLACE).code == 0
    cloud.answers[call] = ("", 1)
    complaint = cloud.start("setup.sh", *PLACE).complaint

    assert re.search(named, complaint), complaint
    assert cloud.start("train_football.sh", *PLACE, "--yes").code == 1
    assert not cloud.calls("gcloud ai custom-jobs create")


def test_disabled_services_are_named(cloud: Cloud) -> None:
    cloud.answers["gcloud services list"] = ("aiplatform.googleapis.com\nother", 0)
    assert cloud.start("setup.sh", *PLACE).complaint.endswith(
        "run: gcloud services enable artifactregistry.googleapis.com storage.googleapis.com "
        "--project=a-project"
    )


def test_setup_takes_gclouds_project(cloud: Cloud) -> None:
    assert "gclouds-project in us-central1 is ready" in cloud.start("setup.sh").output
    cloud.answers["gcloud config get-value project"] = ("(unset)", 0)
    assert "gcloud config set project PROJECT" in cloud.start("setup.sh").complaint


def test_docker_is_needed_for_images_only(cloud: Cloud) -> None:
    cloud.answers["docker"] = ("", 1)
    assert cloud.start("setup.sh", *PLACE, "--no_images").code == 0
    assert cloud.start("train_football.sh", *READY, "--yes").code == 0


def test_they_run_beside_another_package_of_that_name(cloud: Cloud, tmp_path: Path) -> None:
    (tmp_path / "gcp").mkdir()
    (tmp_path / "gcp" / "__init__.py").touch()
    dry_run(cloud, "train_atari.sh")


@pytest.mark.parametrize("tool", ["gcloud", "docker", "openssl"])
def test_a_missing_tool_is_named(cloud: Cloud, tool: str, tmp_path: Path) -> None:
    for program in "bash", "env", "python3", "grep", "readlink", "dirname", "openssl":
        if not (cloud.programs / program).exists():
            (cloud.programs / program).symlink_to(str(shutil.which(program)))
    (cloud.programs / tool).unlink()
    finished = cloud.start("setup.sh", *PLACE, path=str(cloud.programs))
    assert finished.complaint.startswith(f"gcp/setup.sh: {tool}: expected this program")


@pytest.mark.parametrize(
    "call",
    ["gcloud storage cp", "gcloud ai custom-jobs create", "docker push", "gcloud auth configure"],
)
def test_a_program_that_fails_ends_it(cloud: Cloud, call: str) -> None:
    cloud.answers[call] = ("", 1)
    finished = cloud.start("train_atari.sh", *PLACE, "--yes")
    assert finished.code == 1
    assert len(cloud.calls("gcloud ai custom-jobs create")) == ("create" in call)
    assert "Error: `" in finished.complaint and "exit code 1" in finished.complaint


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["--accelerator=h100"], ["--accelerator", "h100", "'t4'"]),
        (["--accelerator_count=3"], ["--accelerator_count", "3"]),
        (["--actor_machines=0"], ["--actor_machines", "from 1 to", "'0'"]),
        (["--actor_machine=big"], ["--actor_machine", "n1-standard-32", "big"]),
        (["--agent=ppo"], ["--agent", "football/AGENT_main.py", "ppo"]),
        (["--agent=../atari/vtrace"], ["--agent", "../atari/vtrace"]),
        (["--flagfile=/etc/passwd"], ["--flagfile", "/etc/passwd"]),
        (["--image_tag=a tag"], ["--image_tag", "'a tag'"]),
        (["--name=.."], ["--name", "'..'"]),
        (["--flagfile=none.flags"], ["--flagfile", "none.flags"]),
        (["--name=a run"], ["--name", "'a run'"]),
        (["--bucket=gs://x"], ["--bucket", "without gs://", "gs://x"]),
        (["--price_per_hour=-1"], ["--price_per_hour", "from 0.01", "-1"]),
        (["--tune=none.json"], ["--tune", "none.json", "No such file"]),
        (["--tune=/dev/null"], ["--tune", "expected JSON"]),
        (["--accelerator=v100", "--learner_machine=a2-highgpu-1g"], ["--learner_machine", "v100"]),
        (["--game=Pong"], ["--game=Pong"]),
        (["--project=example.com:x"], ["--project", "example.com:x"]),
        (["--region="], ["--region", "us-central1", "''"]),
        (["--actor_machine=n1-standard-0"], ["--actor_machine", "n1-standard-0"]),
        (["--actor_machine=n1-standard-\u0663"], ["--actor_machine"]),
        (["--actor_machines=" + "9" * 400], ["--actor_machines", "99999"]),
        (["--price_per_hour=1e308"], ["--price_per_hour", "1e308"]),
        (["--agent=" + "x" * 300], ["--agent", "football/AGENT_main.py"]),
        (["--", "--logdir=/x"], ["--logdir=/x"]),
        (["--", "-tuning"], ["-tuning"]),
        (["--", "--", "--seed=1"], ["--", "again"]),
        (["--", "seed"], ["seed"]),
        (["Pong"], ["Pong"]),
    ],
)
def test_a_mistake_gets_one_sentence(cloud: Cloud, arguments: list[str], parts: list[str]) -> None:
    complaint = cloud.start("train_football.sh", *READY, "--dry_run", *arguments).complaint
    assert complaint.startswith("Error: ")
    for part in parts:
        assert part in complaint
    assert not cloud.calls()


@pytest.mark.parametrize(
    "study",
    [
        {},
        {"metrics": [], "parameters": [{}]},
        {"metrics": [{"metricId": "a", "goal": "MAXIMIZE"}] * 2, "parameters": [{}]},
        {"metrics": [{"metricId": "a", "goal": "MAXIMIZE"}], "parameters": []},
        [],
    ],
)
def test_a_study_must_be_whole(cloud: Cloud, study: Any, tmp_path: Path) -> None:
    (tmp_path / "tune.json").write_text(json.dumps({"studySpec": study}))
    finished = cloud.start("train_atari.sh", *READY, "--dry_run", f"--tune={tmp_path}/tune.json")
    assert finished.complaint.startswith("Error: --tune: expected a studySpec")


@pytest.mark.parametrize(
    "content, named",
    [
        ({"maxTrials": 3}, "maxTrialCount, parallelTrialCount, studySpec"),
        ({"maxTrialCount": "3"}, "maxTrialCount, got '3'"),
        ({"parallelTrialCount": 0}, "parallelTrialCount, got 0"),
        ({"parallelTrialCount": 11}, "got 11"),
        ([1], "maxTrialCount"),
        (None, "maxTrialCount"),
    ],
)
def test_a_tuning_file_is_checked(cloud: Cloud, content: Any, named: str, tmp_path: Path) -> None:
    (tmp_path / "tune.json").write_text(json.dumps(content))
    finished = cloud.start("train_atari.sh", *READY, "--dry_run", f"--tune={tmp_path}/tune.json")
    assert finished.complaint.startswith("Error: --tune: expected") and named in finished.complaint


@pytest.mark.parametrize("domain", DOMAINS)
def test_help_needs_nothing(cloud: Cloud, domain: str) -> None:
    finished = cloud.start(f"train_{domain}.sh", "--help")
    assert finished.code == 0 and f"usage: gcp/train_{domain}.sh" in finished.output
    assert cloud.start("setup.sh", "--help").code == 0
    assert not cloud.calls()

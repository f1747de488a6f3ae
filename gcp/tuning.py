"""What a hyper-parameter tuning job is to try, from the user's file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seed_rl.errors import UserError

_KEYS = {"maxTrialCount": 10, "parallelTrialCount": 2, "studySpec": None}  # with their defaults


@dataclasses.dataclass(frozen=True)
class Tuning:
    """A study, and how much of it.

    Attributes:
      study: Vertex AI's StudySpec, with parameters and one metric.
      max_trials: in all.
      parallel_trials: at once.
    """

    study: Mapping[str, Any]
    max_trials: int
    parallel_trials: int

    @classmethod
    def read(cls, file: str) -> Tuning:
        """Reads JSON {"studySpec": ..., "maxTrialCount": ..., "parallelTrialCount": ...}.

        Raises:
          UserError: it is not that.
        """
        try:
            content = json.loads(Path(file).read_text())
        except OSError as error:
            raise UserError(f"--tune: cannot read '{file}': {error.strerror}.") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"--tune: expected JSON, got '{file}' ({error}).") from error
        if not isinstance(content, dict) or not content.keys() <= _KEYS.keys():
            raise UserError(f"--tune: expected {', '.join(_KEYS)} in '{file}', got others.")
        values = {**_KEYS, **content}
        for key in "maxTrialCount", "parallelTrialCount":
            if type(values[key]) is not int or values[key] < 1:
                raise UserError(
                    f"--tune: expected a whole number above 0 as {key}, got {values[key]!r}."
                )
        if values["parallelTrialCount"] > values["maxTrialCount"]:
            raise UserError(
                f"--tune: expected at most the {values['maxTrialCount']} of maxTrialCount as "
                f"parallelTrialCount, got {values['parallelTrialCount']}."
            )
        _check_study(values["studySpec"])
        return cls(values["studySpec"], values["maxTrialCount"], values["parallelTrialCount"])


def _check_study(study: Any) -> None:
    try:
        (metric,) = study["metrics"]
        complete = isinstance(metric["metricId"], str) and metric["goal"] and study["parameters"]
        names = [each["parameterId"] for each in study["parameters"]]
        complete = complete and all(isinstance(name, str) and name for name in names)
    except (LookupError, TypeError, ValueError):
        complete = False
    if not complete:
        raise UserError(
            "--tune: expected a studySpec that has one entry in metrics (metricId, the tag of a "
            "scalar, and goal) and parameters (parameterId, the name of a flag), got another."
        )

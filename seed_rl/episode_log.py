"""What is told of ended episodes: returns and lengths, and how they compare with a human's."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Mapping, Sequence

from seed_rl.human_scores import HumanScore, summarize
from seed_rl.multitask import task_number

_RECENT_EPISODES = 100
_ALL = ""  # in the place of a task: all of them together


class EpisodeLog:
    """Keeps the last 100 returns and scores, of training and evaluation, of each task and of all.

    Args:
      num_training_envs: environments with ids from this on are evaluation ones.
      tasks: names; environment i plays task i mod their number.
      human_scores: by task; of those that have one, human-normalised scores are told.
      episode_frequency: of each kind's episodes, every so many are told.
    """

    def __init__(
        self,
        num_training_envs: int,
        tasks: Sequence[str] = (_ALL,),
        human_scores: Mapping[str, HumanScore] | None = None,
        episode_frequency: int = 1,
    ):
        self._num_training_envs = num_training_envs
        self._tasks = tasks
        self._human_scores = {
            task: score for task, score in (human_scores or {}).items() if task in tasks
        }
        self._episode_frequency = episode_frequency
        self._counts = collections.Counter[str]()
        self._recent = collections.defaultdict[tuple[str, str, str], collections.deque[float]](
            lambda: collections.deque(maxlen=_RECENT_EPISODES)
        )

    def add(
        self, env_id: int, episode_return: float, length: int, score: float | None = None
    ) -> dict[str, float]:
        """Takes in an ended episode; score is None in domains without.

        Returns:
          Scalars to write, by tag: return, length and mean_return (and score and mean_score) of
          `training` or `evaluation`, and in a run with several tasks also of the episode's task,
          and the human-normalised scores once there is an episode of every task that has one.
          Nothing if it is not this episode's turn.
        """
        kind = "training" if env_id < self._num_training_envs else "evaluation"
        task = self._tasks[task_number(env_id, self._num_training_envs, len(self._tasks))]
        values = {"return": episode_return} | ({} if score is None else {"score": score})
        scalars: dict[str, float] = {}
        for part in (_ALL,) if self._is_single else (_ALL, task):
            end = f"/{part}" if part else ""
            scalars[f"{kind}/length{end}"] = length
            for name, value in values.items():
                recent = self._recent[kind, name, part]
                recent.append(value)
                scalars[f"{kind}/{name}{end}"] = value
                scalars[f"{kind}/mean_{name}{end}"] = statistics.fmean(recent)
        for name, value in self._human_normalized(kind).items():
            scalars[f"{kind}/human_normalized_{name}"] = value
        self._counts[kind] += 1
        return scalars if self._counts[kind] % self._episode_frequency == 0 else {}

    def headline(self) -> str | None:
        """How training goes, in a few words; None before there is anything to say.

        With several tasks that have human scores, the median of those as soon as each has an
        episode; else the mean return, and the mean score where there are scores.
        """
        if scores := self._human_normalized("training"):
            return f"median human-normalised {scores['median']:.1f}%"
        recent = {name: self._recent["training", name, _ALL] for name in ("return", "score")}
        means = [
            f"{name} {statistics.fmean(values):.2f}" for name, values in recent.items() if values
        ]
        return ", ".join(means) or None

    @property
    def _is_single(self) -> bool:
        return len(self._tasks) == 1

    def _human_normalized(self, kind: str) -> dict[str, float]:
        if self._is_single or not self._human_scores:
            return {}
        returns = {task: self._recent[kind, "return", task] for task in self._human_scores}
        if not all(returns.values()):
            return {}
        means = {task: statistics.fmean(values) for task, values in returns.items()}
        return summarize(means, self._human_scores)

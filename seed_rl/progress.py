"""What a run says on the terminal: one live line, or plain lines where output goes to a file."""

from __future__ import annotations

import collections
import contextlib
import math
import os
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, TextIO

WINDOW_SECONDS = 10.0  # rates are means over this time
LIVE_SECONDS = 0.5  # between two pictures on a terminal, and between two samples of the window
PLAIN_SECONDS = 10.0  # between two lines in a file

_TO_START = "\r"
_CLEAR_TO_END = "\x1b[K"


class _Sample(NamedTuple):
    time: float
    frames: int
    training_steps: int


class Progress:
    """Shows how far training is, how fast it goes, how well it does and how long it will take.

    Args:
      total_frames: environment frames at which training ends.
      stream: where to write; standard output if None. On a terminal the line is live.
      clock: seconds from any start.
    """

    def __init__(
        self,
        total_frames: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._total_frames = total_frames
        self._stream = stream or sys.stdout
        self._clock = clock
        self._is_live = _is_live(self._stream)
        self._samples: collections.deque[_Sample] = collections.deque()
        self._latest: _Sample | None = None
        self._headline: str | None = None
        self._shown_at = -math.inf

    def update(self, frames: int, training_steps: int, headline: str | None) -> None:
        """Takes the state of training; call it as often as you like.

        Args:
          frames: environment frames so far, those before a restart included.
          training_steps: updates of the network so far.
          headline: how well it does, in a few words; None while that is not known.
        """
        self._latest = _Sample(self._clock(), frames, training_steps)
        self._headline = headline
        self._add_to_window(self._latest)
        interval = LIVE_SECONDS if self._is_live else PLAIN_SECONDS
        if self._latest.time - self._shown_at >= interval:
            self._shown_at = self._latest.time
            self._show()

    def say(self, message: str) -> None:
        """Prints a line of its own, above the live one."""
        say(message, self._stream)
        if self._is_live and self._latest:
            self._show()

    def close(self) -> None:
        """Leaves the last state behind as a plain line."""
        if self._latest:
            say(self._line(), self._stream)
        self._latest = None

    def _add_to_window(self, sample: _Sample) -> None:
        if not self._samples or sample.time - self._samples[-1].time >= LIVE_SECONDS:
            self._samples.append(sample)
        # The oldest sample is the one at or just before the window's start.
        while len(self._samples) > 1 and self._samples[1].time <= sample.time - WINDOW_SECONDS:
            self._samples.popleft()

    def _show(self) -> None:
        if self._is_live:
            # One column stays free: a full line would move some terminals on to the next.
            width = (os.get_terminal_size(self._stream.fileno()).columns or 80) - 1
            _write(self._stream, _TO_START + self._line()[:width] + _CLEAR_TO_END)
        else:
            say(self._line(), self._stream)

    def _line(self) -> str:
        """The state in words, as short as they can be: a terminal may have 80 columns."""
        assert self._latest
        _, frames, _ = self._latest
        frame_rate, step_rate = self._rates()
        seconds_left = max(0, self._total_frames - frames) / frame_rate if frame_rate else None
        parts = (
            f"{format_count(frames)}/{format_count(self._total_frames)} frames"
            f" {frames / self._total_frames:.1%}",
            f"{_or_dash(frame_rate, format_count)} frames/s",
            f"{_or_dash(step_rate, format_count)} updates/s",
            self._headline or "return -",
            f"{_or_dash(seconds_left, format_duration)} left",
        )
        return ", ".join(parts)

    def _rates(self) -> tuple[float | None, float | None]:
        """Frames and training steps per second over the window; None where it is empty."""
        assert self._latest
        oldest, latest = self._samples[0], self._latest
        seconds = latest.time - oldest.time
        if seconds <= 0:
            return None, None
        return (
            (latest.frames - oldest.frames) / seconds,
            (latest.training_steps - oldest.training_steps) / seconds,
        )


def say(message: str, stream: TextIO | None = None) -> None:
    """Prints a line; on a terminal in the place of a live line, whichever process wrote that."""
    stream = stream or sys.stdout
    if _is_live(stream):
        message = _TO_START + message + _CLEAR_TO_END
    _write(stream, message + "\n")


def format_count(count: float) -> str:
    """Up to three digits: 0.05, 7, 950, 12.3k, 1.23M, 1.00G."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            decimals = max(0, 2 - int(math.log10(count / size)))
            return f"{count / size:.{decimals}f}{unit}"
    return f"{count:.0f}" if count >= 100 else f"{count:.3g}"


def format_duration(seconds: float) -> str:
    """The two largest units: 45s, 13m05s, 2h13m, 3d04h."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    if minutes:
        return f"{minutes}m{seconds:02}s"
    return f"{seconds}s"


def _or_dash(value: float | None, form: Callable[[float], str]) -> str:
    return "-" if value is None else form(value)


def _is_live(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _write(stream: TextIO, text: str) -> None:
    # Training goes on when the terminal was closed or nobody reads the pipe any more.
    with contextlib.suppress(OSError):
        stream.write(text)
        stream.flush()

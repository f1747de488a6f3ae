"""The progress line on a terminal (a pty) and in a file, under a clock that the test turns."""

import io
import os
import pty
import re
import termios
from collections.abc import Iterator

import pytest

from seed_rl.progress import Progress, format_count, format_duration, say


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal:
    """A terminal of some width: `stream` writes to it, `read` returns what has come since."""

    def __init__(self, columns: int):
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        self.stream = os.fdopen(slave, "w")

    def read(self) -> str:
        end = "\0"  # what comes after all that there is to read
        self.stream.write(end)
        self.stream.flush()
        text = ""
        while not text.endswith(end):
            text += os.read(self._master, 4096).decode()
        return text.removesuffix(end)

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def terminal(monkeypatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal(columns=50)
    yield terminal
    terminal.close()


def test_file_gets_a_plain_line_every_ten_seconds(clock):
    file = io.StringIO()
    progress = Progress(10_000_000, file, clock)
    for second in range(31):
        clock.now = 100.0 + second
        progress.update(
            frames=1_000_000 + 2_000 * second, training_steps=second // 2, headline=None
        )
    lines = file.getvalue().splitlines(keepends=True)
    assert len(lines) == 4
    assert lines[0].startswith(
        "1.00M/10.0M frames 10.0%, - frames/s, - updates/s, return -, - left"
    )
    assert lines[3] == (
        "1.06M/10.0M frames 10.6%, 2.00k frames/s, 0.5 updates/s, return -, 1h14m left\n"
    )


def test_rates_forget_what_is_older_than_the_window(clock):
    file = io.StringIO()
    progress = Progress(1_000_000, file, clock)
    progress.update(0, 0, None)
    for second in range(1, 41):  # 100 frames/s for 20 s, then 300
        clock.now = 100.0 + second
        frames = 100 * second + 200 * max(0, second - 20)
        progress.update(frames, second, "return -0.50")
    rates = [re.search(r"(\S+) frames/s", line)[1] for line in file.getvalue().splitlines()]
    assert rates == ["-", "100", "100", "300", "300"]
    assert "return -0.50" in file.getvalue()


def test_frames_of_before_a_restart_do_not_count_for_the_rate(clock):
    file = io.StringIO()
    progress = Progress(10_000, file, clock)
    progress.update(5_000, 100, "return 1.00")
    clock.now += 10
    progress.update(5_500, 110, "return 1.00")
    assert "50 frames/s, 1 updates/s, return 1.00, 1m30s left" in file.getvalue()


def test_stalled_training_shows_no_time_left(clock):
    file = io.StringIO()
    progress = Progress(10_000, file, clock)
    progress.update(5_000, 100, None)
    clock.now += 10
    progress.update(5_000, 100, None)
    assert file.getvalue().endswith("0 frames/s, 0 updates/s, return -, - left\n")


def test_terminal_shows_one_line_cut_to_its_width(clock, terminal):
    progress = Progress(10_000_000, terminal.stream, clock)
    progress.update(1_000_000, 0, None)
    line = "1.00M/10.0M frames 10.0%, - frames/s, - updates/s"
    assert len(line) == 50 - 1
    assert terminal.read() == f"\r{line}\x1b[K"
    clock.now += 0.4
    progress.update(1_001_000, 1, None)
    assert terminal.read() == ""
    clock.now += 0.1
    progress.update(1_002_000, 2, None)
    assert terminal.read() == "\r1.00M/10.0M frames 10.0%, 4.00k frames/s, 4 updat\x1b[K"


def test_width_is_that_of_the_moment(clock, terminal):
    progress = Progress(10, terminal.stream, clock)
    termios.tcsetwinsize(terminal.stream.fileno(), (24, 12))
    progress.update(1, 0, None)
    assert terminal.read() == "\r1/10 frames\x1b[K"


def test_message_takes_the_place_of_the_live_line_and_that_comes_back(clock, terminal):
    progress = Progress(10, terminal.stream, clock)
    progress.say("hello")
    assert terminal.read() == "\rhello\x1b[K\r\n"
    progress.update(1, 0, None)
    live = terminal.read()
    progress.say("checkpoint saved")
    assert terminal.read() == f"\rcheckpoint saved\x1b[K\r\n{live}"


def test_close_leaves_the_latest_state_as_a_whole_line(clock, terminal):
    progress = Progress(10_000, terminal.stream, clock)
    progress.update(9_000, 0, None)
    clock.now += 0.25
    progress.update(10_000, 1, "return 20.50")
    terminal.read()
    progress.close()
    assert terminal.read() == (
        "\r10.0k/10.0k frames 100.0%, 4.00k frames/s, 4 updates/s, return 20.50, 0s left\x1b[K\r\n"
    )
    progress.close()
    assert terminal.read() == ""


def test_dumb_terminal_is_a_file(clock, terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    say("hello", terminal.stream)
    assert terminal.read() == "hello\r\n"


def test_training_goes_on_when_nobody_reads_any_more(clock):
    reader, writer = os.pipe()
    os.close(reader)
    progress = Progress(10, os.fdopen(writer, "w", closefd=False), clock)
    progress.update(1, 0, None)
    progress.say("hello")
    progress.close()
    os.close(writer)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (0.05, "0.05"),
        (57.26, "57.3"),
        (999, "999"),
        (1_000, "1.00k"),
        (12_345, "12.3k"),
        (1_234_567, "1.23M"),
        (1e9, "1.00G"),
    ],
)
def test_format_count(count, text):
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.9, "0s"), (59, "59s"), (785, "13m05s"), (7_999, "2h13m"), (4 * 3600 + 3 * 86400, "3d04h")],
)
def test_format_duration(seconds, text):
    assert format_duration(seconds) == text

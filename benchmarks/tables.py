"""Markdown tables that grow while a benchmark runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

_MISSING = "-"


@dataclasses.dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
      title: with the unit: "memory MB".
      format: format specification of its numbers, such as ",.0f"; without one it holds text.
      width: least width; the title's if that is more.
    """

    title: str
    format: str = ""
    width: int = 0

    def header(self) -> str:
        return self._aligned(self.title)

    def rule(self) -> str:
        dashes = "-" * (self._width - 1)
        return f"{dashes}:" if self.format else f":{dashes}"

    def cell(self, value: Any) -> str:
        return self._aligned(_MISSING if value is None else format(value, self.format))

    @property
    def _width(self) -> int:
        return max(self.width, len(self.title), 3)

    def _aligned(self, text: str) -> str:
        return text.rjust(self._width) if self.format else text.ljust(self._width)


class Table:
    """Prints its header at once and each row as it is added, so that a long run shows its way."""

    def __init__(self, columns: Sequence[Column]):
        self._columns = columns
        _print_row([column.header() for column in columns])
        _print_row([column.rule() for column in columns])

    def add(self, *values: Any) -> None:
        """Prints a row: a number, text or None (not measured) for each column."""
        _print_row(
            [column.cell(value) for column, value in zip(self._columns, values, strict=True)]
        )


def _print_row(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)

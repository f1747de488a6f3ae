"""Tables that grow row by row."""

import pytest

from benchmarks.tables import Column, Table

COLUMNS = (Column("agent", width=7), Column("steps/s", ",.0f", width=9), Column("ms", ".1f"))


def test_a_table_is_aligned_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(COLUMNS)
    table.add("vtrace", 1234567.4, 0.25)
    table.add("r2d2", None, 10)
    assert capsys.readouterr().out.splitlines() == [
        "| agent   |   steps/s |  ms |",
        "| :------ | --------: | --: |",
        "| vtrace  | 1,234,567 | 0.2 |",
        "| r2d2    |         - | 10.0 |",
    ]


def test_a_row_is_there_as_soon_as_it_is_added(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(COLUMNS)
    capsys.readouterr()
    table.add("vtrace", 1, 2)
    assert "vtrace" in capsys.readouterr().out


def test_a_row_has_a_value_for_each_column() -> None:
    table = Table(COLUMNS)
    with pytest.raises(ValueError):
        table.add("vtrace", 1)

import numpy as np
import pytest

from dmlab.actions import ACTION_SETS, action_table


@pytest.mark.parametrize(
    ("name", "size"), [("default", 9), ("extended", 15), ("extended_jump", 19)]
)
def test_rows_are_what_the_engine_takes(name: str, size: int) -> None:
    table = ACTION_SETS[name]
    assert table.shape == (size, 7)
    for row in table:
        assert row.dtype == np.intc
        assert row.flags.c_contiguous
        assert row.any()  # all do something
    assert len(np.unique(table, axis=0)) == size


def test_usual_actions() -> None:
    look, pitch, strafe, move, fire, jump, crouch = ACTION_SETS["default"].T.tolist()
    assert look == [0, 0, 0, 0, -20, 20, -20, 20, 0]
    assert strafe == [0, 0, -1, 1, 0, 0, 0, 0, 0]
    assert move == [1, -1, 0, 0, 0, 0, 1, 1, 0]
    assert fire == [0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert pitch == jump == crouch == [0] * 9


@pytest.mark.parametrize("name", ["extended", "extended_jump"])
def test_extended_sets_have_a_mirror_image_of_every_turn(name: str) -> None:
    rows = {tuple(row) for row in ACTION_SETS[name].tolist()}
    assert {(-look, *others) for look, *others in rows} == rows


@pytest.mark.parametrize(
    "action",
    [
        (513, 0, 0, 0, 0, 0, 0),
        (0, -513, 0, 0, 0, 0, 0),
        (0, 0, 2, 0, 0, 0, 0),
        (0, 0, 0, -2, 0, 0, 0),
        (0, 0, 0, 0, -1, 0, 0),
        (0, 0, 0, 0, 0, 2, 0),
        (0, 0, 0, 0, 0, 0, -1),
    ],
)
def test_actions_out_of_range(action: tuple[int, ...]) -> None:
    fine = (512, -512, -1, 1, 1, 0, 1)
    assert action_table([fine]).tolist() == [list(fine)]
    with pytest.raises(ValueError, match=r"raw_actions\[1\]: expected \[-512, .*\] to \[512, .*\]"):
        action_table([fine, action])

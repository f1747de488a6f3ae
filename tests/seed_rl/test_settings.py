"""Settings: from dataclass to flags and back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from absl import flags

from seed_rl.settings import define_flags, from_flags, setting


@dataclasses.dataclass(frozen=True)
class Fruit:
    kind: str = setting("apple", "What it is.", choices=("apple", "pear"))
    name: str = setting("", "What it is called.")
    count: int = setting(3, "How many.", minimum=1, maximum=10)
    weight: float = setting(0.5, "In kilograms.", minimum=0.0)
    ripe: bool = setting(False, "Whether it may be eaten.")
    price: float | None = setting(None, "Unset: not for sale.", minimum=0.0)


def parse(*arguments: str, defaults: dict[str, Any] | None = None) -> Fruit:
    values = flags.FlagValues()
    define_flags(Fruit, defaults, values)
    values(["program", *arguments])
    return from_flags(Fruit, values)


def test_without_flags_the_dataclass_is_its_defaults() -> None:
    assert parse() == Fruit()


def test_every_type_is_parsed() -> None:
    fruit = parse("--kind=pear", "--name=x=y", "--count=7", "--weight=1e-3", "--ripe", "--price=2")
    assert fruit == Fruit("pear", "x=y", 7, 0.001, True, 2.0)
    assert isinstance(fruit.price, float)


def test_a_bool_can_be_unset() -> None:
    assert parse("--noripe", defaults={"ripe": True}).ripe is False


def test_an_experiment_s_defaults_stand_in_but_flags_go_first() -> None:
    defaults = {"count": 5, "weight": 2.0, "price": 9.0, "somebody_else_s": 1}
    assert parse("--weight=3", defaults=defaults) == Fruit(count=5, weight=3.0, price=9.0)


@pytest.mark.parametrize("argument", ["--count=1", "--count=10", "--weight=0"])
def test_bounds_are_inclusive(argument: str) -> None:
    parse(argument)


@pytest.mark.parametrize(
    "argument",
    [
        "--count=0",
        "--count=11",
        "--count=2.5",
        "--weight=-1",
        "--weight=nan",
        "--price=inf",
        "--price=-1",
        "--kind=plum",
        "--ripe=7",
    ],
)
def test_a_value_that_cannot_be_names_the_flag(argument: str) -> None:
    with pytest.raises(flags.IllegalFlagValueError, match=argument.split("=")[0]):
        parse(argument)


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(flags.UnrecognizedFlagError, match="colour"):
        parse("--colour=red")


def test_help_is_the_field_s() -> None:
    values = flags.FlagValues()
    define_flags(Fruit, flag_values=values)
    assert values["weight"].help == "In kilograms."
    assert values["kind"].parser.enum_values == ["apple", "pear"]


def test_a_type_without_a_flag_is_refused() -> None:
    @dataclasses.dataclass(frozen=True)
    class Basket:
        fruits: tuple = setting((), "Cannot be a flag.")

    with pytest.raises(TypeError, match="fruits: expected a bool, int, float or str field"):
        define_flags(Basket, flag_values=flags.FlagValues())

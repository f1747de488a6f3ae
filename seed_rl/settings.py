"""Settings: frozen dataclasses, each field of which is also an absl flag.

The field is the only declaration: the flag's name, type, default, bounds and help come from it.

    @dataclasses.dataclass(frozen=True)
    class OptimizerSettings:
        learning_rate: float = setting(1e-4, "Adam's learning rate.", minimum=0.0)

    settings.define_flags(OptimizerSettings)          # before absl parses the command line
    optimizer = settings.from_flags(OptimizerSettings)  # after
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from absl import flags

flags.disclaim_key_flags()

S = TypeVar("S")


def setting(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] | None = None,
) -> Any:
    """A dataclass field with what its flag needs: help, bounds (inclusive), allowed values."""
    return dataclasses.field(
        default=default,
        metadata={"help": help, "minimum": minimum, "maximum": maximum, "choices": choices},
    )


def define_flags(
    settings: type,
    defaults: Mapping[str, Any] | None = None,
    flag_values: flags.FlagValues = flags.FLAGS,
) -> None:
    """Defines a flag for every field of the dataclass `settings`.

    Args:
      settings: a dataclass whose fields were made with `setting`.
      defaults: defaults of one experiment, by field name, which stand in for the dataclass's own.
        Names of other dataclasses' fields are passed over.
      flag_values: where the flags go.
    """
    hints = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        default = (defaults or {}).get(field.name, field.default)
        _define_flag(field, _plain_type(hints[field.name]), default, flag_values)


def from_flags(settings: type[S], flag_values: flags.FlagValues = flags.FLAGS) -> S:
    """The dataclass `settings` as the parsed command line fills it."""
    return settings(**{f.name: flag_values[f.name].value for f in dataclasses.fields(settings)})  # type: ignore[arg-type]


def _plain_type(hint: Any) -> type:
    """The T of `T` or `T | None`."""
    if isinstance(hint, types.UnionType):
        (hint,) = [argument for argument in typing.get_args(hint) if argument is not types.NoneType]
    return hint


def _define_flag(
    field: dataclasses.Field, kind: type, default: Any, flag_values: flags.FlagValues
) -> None:
    meta = field.metadata
    common = {"help": meta["help"], "flag_values": flag_values}
    bounds = {"lower_bound": meta["minimum"], "upper_bound": meta["maximum"]}
    if meta["choices"]:
        flags.DEFINE_enum(field.name, default, list(meta["choices"]), **common)
    elif kind is bool:
        flags.DEFINE_bool(field.name, default, **common)
    elif kind is int:
        flags.DEFINE_integer(field.name, default, **bounds, **common)
    elif kind is float:
        flags.DEFINE_float(field.name, default, **bounds, **common)
        # Bounds know nothing of NaN.
        flags.register_validator(
            field.name, _is_finite, "expected a finite number.", flag_values=flag_values
        )
    elif kind is str:
        flags.DEFINE_string(field.name, default, **common)
    else:
        raise TypeError(f"{field.name}: expected a bool, int, float or str field, got {kind}.")


def _is_finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)

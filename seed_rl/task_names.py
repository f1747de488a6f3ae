"""Tasks as users name them in --game: lists of names, names for lists, mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping

from seed_rl.errors import UserError


def split_names(
    value: str,
    name: Callable[[str], str],
    lists: Mapping[str, tuple[str, ...]] | None = None,
) -> tuple[str, ...]:
    """The tasks that a flag names: "Pong", "Pong,Breakout" or "atari57".

    Args:
      value: the flag's.
      name: from one entry to the name that the task goes by; raises UserError if there is none.
      lists: by the name that stands for all of the list.

    Raises:
      UserError: there is no such task, or one is there twice.
    """
    if lists and value in lists:
        return lists[value]
    names = tuple(name(entry.strip()) for entry in value.split(","))
    for each in names:
        if names.count(each) > 1:
            raise UserError(f"--game: expected each task once, got {each} more than once.")
    return names


def unknown_name(name: str, what: str, known: Collection[str], otherwise: str) -> UserError:
    """The error for a name that no task has.

    Args:
      name: as the user has given it.
      what: it was to be, such as "Atari game".
      known: names that there are, of which the error offers those that are near.
      otherwise: what the error says was expected if none is near.
    """
    by_lower = {each.lower(): each for each in known}
    near = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"expected {otherwise}."
    return UserError(f"--game={name}: no such {what}; {hint}")

"""The error for a user's mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable

USER_ERROR_MARK = "Error: "  # begins the line that a program prints for one
USER_ERROR_CODE = 1
CRASH_CODE = 70  # of any other error, which another try may survive


class UserError(ValueError):
    """One sentence that names the flag or argument, what was given and what was expected.

    Programs end with the sentence and USER_ERROR_CODE, without a traceback.
    """


def exit_code(program: Callable[[], int]) -> int:
    """Runs a program, and tells the user's mistake if it raises one. Returns its exit code."""
    try:
        return program()
    except UserError as error:
        print(f"{USER_ERROR_MARK}{error}", file=sys.stderr)
        return USER_ERROR_CODE

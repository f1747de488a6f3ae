"""The error for a user's mistake."""

USER_ERROR_MARK = "Error: "  # begins the line that a program prints for one


class UserError(ValueError):
    """One sentence that names the flag or argument, what was given and what was expected.

    Programs end with the sentence and exit code 1, without a traceback.
    """

"""The error for a user's mistake."""

USER_ERROR_MARK = "Error: "  # begins the line that a program prints for one
USER_ERROR_CODE = 1
CRASH_CODE = 70  # of any other error, which another try may survive


class UserError(ValueError):
    """One sentence that names the flag or argument, what was given and what was expected.

    Programs end with the sentence and USER_ERROR_CODE, without a traceback.
    """

"""The error for a user's mistake."""


class UserError(ValueError):
    """One sentence that names the flag or argument, what was given and what was expected.

    Programs end with the sentence and exit code 1, without a traceback.
    """

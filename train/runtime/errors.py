"""The errors that the command line shows as a line instead of a traceback."""


class UsageError(ValueError):
    """An error that the user can fix: one line says what is wrong, where, and what is allowed."""


class NotFiniteError(UsageError):
    """A loss or a gradient is NaN or infinite."""


class ProcessLostError(RuntimeError):
    """Another process of a distributed run has ended; the message is one line."""

"""Exceptions for errors that the caller can correct; messages say where, what and how."""


class BadInput(ValueError):
    """Invalid file, table or setting.

    The message is a sentence for the user, displayed unchanged by pages, command line and
    notebooks. The command line exits with status 2.
    """


class NotFound(KeyError):
    """Unknown run, upload or data set."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else "not found"


class Unavailable(RuntimeError):
    """Valid request that cannot be served now for lack of a worker, disk space or the database."""


class NotAllowed(PermissionError):
    """Action that is reserved for the owner of a run, table or session, or for the operator."""

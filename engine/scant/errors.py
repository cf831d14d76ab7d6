"""Errors that are the caller's to mend: each says what, where, what was got, and what to do."""


class BadInput(ValueError):
    """A file, table or setting that cannot be used as it is.

    The message is one sentence meant for the person who gave the input; pages, command line and
    notebooks show it word for word. The command line exits with status 2.
    """


class NotFound(KeyError):
    """No run, upload or data set under that name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else "not found"


class Unavailable(RuntimeError):
    """The request is right, but it cannot be served now: no worker, no room, or no database."""


class NotAllowed(PermissionError):
    """The act is for somebody else: the owner of the run, table or session, or an operator."""

"""Error messages of the `scant` command for bad input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from scant.errors import BadInput, NotFound


@contextmanager
def sentences(*further: type[Exception]) -> Iterator[None]:
    """Report bad input as one sentence on stderr with exit status 2, without a traceback.

    Args:
        *further: Further exceptions whose messages are such sentences.
    """
    caught: tuple[type[Exception], ...] = (BadInput, NotFound, *further)
    try:
        yield
    except caught as error:
        typer.echo(f"scant: {error}", err=True)
        raise typer.Exit(2) from None

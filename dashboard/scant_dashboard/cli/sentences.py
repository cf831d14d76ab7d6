"""How the commands of `scant` end where the input is at fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from scant.errors import BadInput, NotFound


@contextmanager
def sentences(*further: type[Exception]) -> Iterator[None]:
    """Bad input ends in one sentence on stderr and status 2, never in a traceback.

    Args:
        *further: Other errors whose message is such a sentence.
    """
    caught: tuple[type[Exception], ...] = (BadInput, NotFound, *further)
    try:
        yield
    except caught as error:
        typer.echo(f"scant: {error}", err=True)
        raise typer.Exit(2) from None

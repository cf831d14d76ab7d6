"""Conversion of errors on opening a database to messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from scant.errors import BadInput


@contextmanager
def opening(url: str) -> Iterator[None]:
    """Convert errors of the database library to messages without passwords.

    Raises:
        BadInput: The URL is invalid, the driver is not installed, or the database cannot be reached
            or written.
    """
    try:
        yield
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            "The address of the database cannot be read; set DATABASE_URL to one such as "
            "postgresql://user:password@host/name or sqlite:///file.db, or unset it."
        ) from None
    except ModuleNotFoundError as error:
        raise BadInput(
            f"The database {_named(url)} needs the package {error.name!r}; install it, for "
            "Postgres with: pip install 'scant[postgres]'."
        ) from None
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise BadInput(
            f"The database {_named(url)} cannot be opened: {reason[0][:200] if reason else error}; "
            "check that it is there, is a database and can be written."
        ) from None
    except OSError as error:
        raise BadInput(
            f"The data folder {str(error.filename or '')!r} cannot be made or written: "
            f"{error.strerror}; name another with --data-dir or SCANT_DATA_DIR."
        ) from None


def _named(url: str) -> str:
    return make_url(url).render_as_string(hide_password=True) if url else "in the data folder"

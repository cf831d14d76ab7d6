"""Reading and writing of JSON annotation files."""

from __future__ import annotations

import json
from typing import Any

from scant.errors import BadInput


def parsed(content: bytes, file: str) -> Any:
    """Parse a JSON file; NaN and Infinity are accepted here and rejected by `Entries.add`.

    Raises:
        BadInput: The file is not JSON or nested too deeply.
    """
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not UTF-8 text; export the labels again.") from None
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{file} is not JSON: {error.msg.lower()} in line {error.lineno}, column "
            f"{error.colno}; export the labels again."
        ) from None
    except (ValueError, RecursionError):  # too many digits, or nested too deeply
        raise BadInput(
            f"{file} is nested too deeply or has an endless number; export the labels again."
        ) from None


def dumped(value: Any) -> bytes:
    """Encode a value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False).encode()


def objects(value: Any, where: str) -> list[dict[str, Any]]:
    """Check that a value is a list of objects; None is an empty list.

    Raises:
        BadInput: The value is something else.
    """
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise BadInput(f"{where}: a list of objects is expected; export the labels again.")
    return value

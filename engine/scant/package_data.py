"""Where the files of the top-level folder `data/` are: in a checkout, and once installed."""

from __future__ import annotations

import csv
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def package_rows(*parts: str) -> list[dict[str, str]]:
    """Read a CSV file of `data/` as rows of texts by column.

    Args:
        *parts: Its path below `data/`.
    """
    text = package_file(*parts).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def package_file(*parts: str) -> Traversable:
    """A file or folder of `data/` (which a wheel has inside the package `scant`).

    Args:
        *parts: Its path below `data/`; whether it exists is for the caller to see.
    """
    installed = files("scant").joinpath("data")
    checkout = Path(__file__).parents[2] / "data"
    root: Traversable = installed if installed.is_dir() else checkout
    return root.joinpath(*parts)

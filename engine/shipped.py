"""Where the files of the top-level folder `data/` are: in a checkout, and once installed."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def shipped(*parts: str) -> Traversable:
    """A file or folder of `data/` (which is installed as the package `engine.data`).

    Args:
        *parts: Its path below `data/`; whether it exists is for the caller to see.
    """
    installed = files("engine").joinpath("data")
    checkout = Path(__file__).parent.parent / "data"
    root: Traversable = installed if installed.is_dir() else checkout
    return root.joinpath(*parts)

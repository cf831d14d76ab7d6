"""A page's texts, stored as Markdown beside its code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from scant_dashboard.translate import spoken


def read_prose(package: str) -> tuple[str, str]:
    """Return the story and the equations of a page, in the session's language.

    Args:
        package: The page's package (its `__package__`), which contains `story.md` and
            `equations.md`, and their translations such as `story.de.md`.
    """
    return _read(package, "story", spoken()), read_equations(package)


def read_equations(package: str) -> str:
    """Return the equations of a page, in the session's language; see `read_prose`."""
    return _read(package, "equations", spoken())


@cache
def _read(package: str, name: str, language: str) -> str:
    translated = files(package).joinpath(f"{name}.{language}.md")
    file = translated if translated.is_file() else files(package).joinpath(f"{name}.md")
    return file.read_text(encoding="utf-8")

"""A page's texts, stored as Markdown beside its code."""

from __future__ import annotations

from importlib.resources import files


def read_prose(package: str) -> tuple[str, str]:
    """Return the story and the equations of a page, read from its package's resources.

    Args:
        package: The page's package (its `__package__`), which contains `story.md` and
            `equations.md`.
    """
    story, equations = (
        files(package).joinpath(name).read_text(encoding="utf-8")
        for name in ("story.md", "equations.md")
    )
    return story, equations

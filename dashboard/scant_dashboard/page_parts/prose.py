"""A page's prose, stored as Markdown beside its code."""

from __future__ import annotations

from importlib.resources import files


def read_prose(package: str) -> tuple[str, str]:
    """The story and the equations of a page; as resources, which an installed wheel has too.

    Args:
        package: The page's package (its `__package__`), which holds `story.md` and `equations.md`.
    """
    story, equations = (
        files(package).joinpath(name).read_text(encoding="utf-8")
        for name in ("story.md", "equations.md")
    )
    return story, equations

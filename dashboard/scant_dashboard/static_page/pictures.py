"""Pictures of figures within static pages, and pages apart from the models of their figures.

The pictures are made in a browser when the pages are shipped (scripts/ship_pages.py). They have
their places by the figures' keys, so that a server which makes its own page takes them from there.
"""

from __future__ import annotations

import hashlib
import re

PLOT = re.compile(r"<div class='plot'[^>]* data-key='(\w+)'[^>]*>")
PICTURE = re.compile(r"<svg class='(?:wide|narrow)'.*?</svg>", re.DOTALL)
MODELS = re.compile(r"(?:<script[^>]* type='application/json'[^>]*>[^<]*</script>)+")
NUMBERS = re.compile(r"-?\d[\d.]*(?:e[+-]?\d+)?")


def key_of(figure: str) -> str:
    """Return the key of a figure: a hash of its JSON without numbers, which differ by processor."""
    return hashlib.sha256(NUMBERS.sub("", figure).encode()).hexdigest()[:12]


def pictures(page: str) -> list[tuple[str, str]]:
    """Return each figure's key with its pictures, "" for none, in the page's order."""
    starts = [*PLOT.finditer(page)]
    ends = [*(match.start() for match in starts[1:]), len(page)][: len(starts)]
    return [
        (match[1], "".join(PICTURE.findall(page, match.end(), end)))
        for match, end in zip(starts, ends, strict=True)
    ]


def with_pictures(page: str, made: list[tuple[str, str]]) -> str:
    """Return a page with pictures put into its figures, by key and in order."""
    rest: dict[str, list[str]] = {}
    for key, picture in made:
        rest.setdefault(key, []).append(picture)
    return PLOT.sub(lambda match: match[0] + (rest.get(match[1]) or [""]).pop(0), page)


def apart(page: str) -> tuple[str, str]:
    """Return a page without its figures' models, and these as HTML, an element per figure."""
    models = "".join(f"<div>{match[0]}</div>" for match in MODELS.finditer(page))
    return MODELS.sub("", page), models

"""Figures that are drawn again only once they have changed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from bokeh.document import Document

from scant_dashboard.static_figures.figure import drawn


class Drawings:
    """Draws figures as `drawn`, and keeps each drawing until a model of its figure changes.

    It hears of changes as a browser would: the figures belong to a document, which nobody sees. One
    that is in another document already is drawn each time.
    """

    def __init__(self) -> None:
        self._doc = Document()
        self._doc.on_change(self._heard)
        self._kept: dict[str, str] = {}  # by a figure's id
        self._owners: defaultdict[str, set[str]] = defaultdict(set)  # of a model's id, its figures

    def __call__(self, figure: Any) -> str:
        """The figure as HTML; see `drawn`."""
        if figure.document is None:
            self._doc.add_root(figure)
        if figure.document is not self._doc:
            return drawn(figure)
        html = self._kept.get(figure.id, "")
        if not html:
            for model in figure.references():
                self._owners[model.id].add(figure.id)
            html = self._kept[figure.id] = drawn(figure)
        return html

    def _heard(self, event: Any) -> None:
        for figure in self._owners.get(getattr(getattr(event, "model", None), "id", ""), ()):
            self._kept.pop(figure, None)

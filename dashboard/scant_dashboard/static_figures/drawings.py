"""A cache of rendered figures."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from bokeh.document import Document

from scant_dashboard.static_figures.figure import figure_html


class Drawings:
    """Renders figures by `figure_html`, and caches the result until a model of the figure changes.

    Changes are detected through a private document to which the figures are added. Figures of
    another document are rendered each time.
    """

    def __init__(self) -> None:
        self._doc = Document()
        self._doc.on_change(self._on_change)
        self._cache: dict[str, str] = {}  # HTML by id of the figure
        # Ids of the figures by id of a model.
        self._owners: defaultdict[str, set[str]] = defaultdict(set)

    def __call__(self, figure: Any) -> str:
        """Return the figure as HTML; see `figure_html`."""
        if figure.document is None:
            self._doc.add_root(figure)
        if figure.document is not self._doc:
            return figure_html(figure)
        html = self._cache.get(figure.id, "")
        if not html:
            for model in figure.references():
                self._owners[model.id].add(figure.id)
            html = self._cache[figure.id] = figure_html(figure)
        return html

    def _on_change(self, event: Any) -> None:
        for figure in self._owners.get(getattr(getattr(event, "model", None), "id", ""), ()):
            self._cache.pop(figure, None)

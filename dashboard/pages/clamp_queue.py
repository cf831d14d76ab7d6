"""The clamp page's queue: the patches about which the model wants to be told next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dashboard.plots.base import Shown
from dashboard.plots.images import PhotographsPlot

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

MOST = 8
NO_IMAGES = "The rows of this pool are numbers, not images."
EMPTY = "There is no patch left to ask about."


class Queue(Shown):
    """The patches of greatest interest, each with its probability as a bar."""

    title = "What it would ask next"

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self._run: History | None = None
        self.plot = PhotographsPlot(self.title, "queue", least=110, most=170, lines=1,
                                    rows_of=MOST, pick=self._picked)  # fmt: skip
        self.figures, self.panel = self.plot.figures, self.plot.panel
        self.picked: Callable[[int], None] = lambda row: None
        self._rows: list[int] = []
        self._held: dict[int, np.ndarray] = {}

    def open(self, run: History) -> None:
        """Show the queue that the run ended with."""
        self._run = run
        assert run.report is not None
        arrays = run.report.arrays
        # A crowd that watches one run should not ask all at once when it ends.
        if run.recorded or self._page.mine:
            self._ask(arrays["queue"], arrays["queue_p"])

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self._run, self._rows, self._held = None, [], {}
        self.plot.clear()

    def _picked(self, number: int) -> None:
        if number < len(self._rows):
            self.picked(self._rows[number])

    def _ask(self, queue: np.ndarray, p: np.ndarray) -> None:
        assert self._run is not None
        rows = [int(r) for r in queue[:MOST]]
        chances = [float(v) for v in p[:MOST]]
        self._rows = rows
        if not self._run.words.get("images"):
            said = ", ".join(f"row {r} (p = {v:.2f})" for r, v in zip(rows, chances))
            self.plot.describe(f"{NO_IMAGES} Next: {said}." if rows else EMPTY)
        elif not rows:
            self.plot.clear()
            self.plot.describe(EMPTY)
        elif lacking := [r for r in rows if r not in self._held]:
            self._page.ask("patches", lambda answer: self._brought(rows, chances, lacking, answer),
                           rows=lacking)  # fmt: skip
        else:
            self._show(rows, chances)

    def _brought(
        self, rows: list[int], p: list[float], lacking: list[int], answer: dict[str, np.ndarray]
    ) -> None:
        found = dict(zip(lacking, np.asarray(answer["image"], float) / 255))
        self._held = {r: v for r, v in (self._held | found).items() if r in rows}
        if rows == self._rows:
            self._show(rows, p)

    def _show(self, rows: list[int], p: list[float]) -> None:
        shrunk = np.stack([self._held[r][::2, ::2] for r in rows])
        words = [[f"p = {v:.2f}, row {r}"] for r, v in zip(rows, p)]
        least, most = min(p), max(p)
        self.plot.show(
            shrunk, words, f"The next {len(rows)} patches, p from {least:.2f} to {most:.2f}; the "
            "bars are probabilities.", bars=np.array(p),
        )  # fmt: skip
        self._page.read(at_once=True)

"""The clamp page's queue: the rows that the model selects next."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.images import PhotographsPlot
from scant_dashboard.translate import later, tr

N_PATCHES = 8
CANDIDATE = 0  # a role
NO_IMAGES = later("The rows of this pool are numbers, not images.")
QUESTION = later("Which of these does the model select next?")
LETTERS = ("A", "B", "C", "D")
SPREAD = later(
    "The first has the highest score; the others follow with some distance between them, so that a"
    " batch is not redundant."
)
GUESSED = later("{n} rows of the pool, p from {low:.2f} to {high:.2f}; the bars are probabilities.")
SELECTED = later("The next {n} rows, p from {low:.2f} to {high:.2f}; the bars are probabilities.")
EMPTY = later("All rows are labeled or skipped.")


class Queue(PlotView):
    """The patches that the model selects next, each with its probability as a bar."""

    title = later("Next queries")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self.plot = PhotographsPlot(self.title, "queue", min_side=110, max_side=170, lines=1,
                                    rows_of=N_PATCHES, pick=self._picked)  # fmt: skip
        self.figures = self.plot.figures
        self.reveal = page.guess_first()
        self.reveal.watch(self._on_reveal)
        self.panel = column(self.reveal.panel, self.plot.panel, css=":host { gap: 10px; }")
        self.picked: Callable[[int], None] = lambda row: None
        self._rows: list[int] = []
        self._puzzle: list[int] = []
        self._held: dict[int, np.ndarray] = {}

    def open(self, run: RunState) -> None:
        """Show the queue at the end of the run."""
        self._run = run
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        if run.recorded or self._page.owns_run:
            self._ask()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._run, self._rows, self._held = None, [], {}
        self.reveal.ask("")
        self.plot.clear()

    def _picked(self, number: int) -> None:
        if number < len(self._rows) and not self.reveal.hidden:
            self.picked(self._rows[number])

    def _on_reveal(self) -> None:
        """Show or hide the answer, as the question requires."""
        if self._run is not None:
            self._ask()

    def _ask(self) -> None:
        assert self._run is not None
        assert self._run.report is not None
        arrays = self._run.report.arrays
        rows = [int(r) for r in arrays["queue"][:N_PATCHES]]
        p = [float(v) for v in arrays["queue_p"][:N_PATCHES]]
        if rows and self._run.metadata.get("images") and self.reveal.first:
            self._ask_guess(rows[0], p[0])
            rows = self._puzzle
            p = [float(p) for p in arrays["pool_p"][rows]]
        self._rows = rows
        if self.reveal.hidden:
            self.plot.clear()
        if not self._run.metadata.get("images"):
            message = ", ".join(tr("row {row} (p = {p:.2f})", row=r, p=v) for r, v in zip(rows, p))
            message = f"{tr(NO_IMAGES)} {tr('Next: {rows}.', rows=message)}"
            self.plot.describe(message if rows else tr(EMPTY))
        elif not rows:
            self.plot.clear()
            self.plot.describe(tr(EMPTY))
        elif lacking := [r for r in rows if r not in self._held]:
            self._page.ask("patches", lambda answer: self._received(rows, p, lacking, answer),
                           rows=lacking)  # fmt: skip
        else:
            self._show(rows, p)

    def _ask_guess(self, first: int, p: float) -> None:
        """Ask which of several patches is first in the queue."""
        if self.reveal.question:
            return
        assert self._run is not None
        assert self._run.report is not None
        self._puzzle = guess_candidates(self._run.report.arrays, first)
        letters = LETTERS[: len(self._puzzle)]
        self.reveal.ask(tr(QUESTION), letters)
        letter = letters[self._puzzle.index(first)]
        answer = tr("It selects {letter}, with p = {p:.2f}.", letter=letter, p=p)
        self.reveal.know(answer, self._puzzle.index(first))

    def _received(
        self, rows: list[int], p: list[float], lacking: list[int], answer: dict[str, np.ndarray]
    ) -> None:
        result = dict(zip(lacking, np.asarray(answer["image"], float) / 255))
        self._held = {r: v for r, v in (self._held | result).items() if r in rows}
        if rows == self._rows:
            self._show(rows, p)

    def _show(self, rows: list[int], p: list[float]) -> None:
        shrunk = np.stack([self._held[r][::2, ::2] for r in rows])
        if self.reveal.hidden:
            captions = [[letter] for letter in LETTERS]
            message = tr("{n} rows of the pool, {first} to {last}.", n=len(rows),
                         first=LETTERS[0], last=LETTERS[len(rows) - 1])  # fmt: skip
            self.plot.show(shrunk, captions, message)
        else:
            guessed = self.reveal.first
            named = LETTERS if guessed else [tr("row {row}", row=r) for r in rows]
            captions = [[tr("{name}, p = {p:.2f}", name=name, p=v)] for name, v in zip(named, p)]
            message = tr(GUESSED if guessed else SELECTED, n=len(rows), low=min(p), high=max(p))
            message += "" if guessed else self._undecided() + self._order()
            self.plot.show(shrunk, captions, message, bars=np.array(p))
        self._page.read(at_once=True)

    def _undecided(self) -> str:
        """Count the unlabeled patches near one half, where the publication selects."""
        assert self._run is not None
        assert self._run.report is not None
        arrays, delta = self._run.report.arrays, float(self._run.record.settings["delta"])
        free = np.asarray(arrays["role"]) == CANDIDATE
        free[np.asarray(arrays["asked"], int)] = False
        near = int((np.abs(np.asarray(arrays["pool_p"])[free] - 0.5) <= delta).sum())
        return " " + tr("For {near:,} of the {left:,} rows left, p is within {delta:g} of one "
                        "half.", left=free.sum(), near=near, delta=delta)  # fmt: skip

    def _order(self) -> str:
        """Explain why some of the probabilities are far from one half."""
        settings = self._run.record.settings if self._run is not None else {}
        if settings.get("acquisition") == "random" or settings.get("diverse") == "none":
            return ""
        return f" {tr(SPREAD)}"


def guess_candidates(arrays: Mapping[str, np.ndarray], first: int) -> list[int]:
    """Return rows in ascending order: the first of the queue and three that are not in it.

    The three have the lowest, the median and the highest probability of the remaining candidates.
    """
    p = np.asarray(arrays["pool_p"], float)
    free = np.asarray(arrays["role"]) == CANDIDATE
    free[np.asarray(arrays["asked"], int)] = free[np.asarray(arrays["queue"], int)] = False
    left = np.flatnonzero(free)
    left = left[np.argsort(p[left], kind="stable")]
    others = {int(left[i]) for i in (0, len(left) // 2, -1)} if len(left) else set()
    return sorted({first, *others})

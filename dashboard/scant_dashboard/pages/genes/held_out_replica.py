"""The prediction of a replica by a model that was trained without it."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import panel_material_ui as pmui

from scant.metrics import Z_95
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.question_view import QuestionView
from scant_dashboard.page_parts.widgets import controls_row, stacked
from scant_dashboard.pages.genes.grid import Grid, replicas_of
from scant_dashboard.pages.genes.typical import typical_replica
from scant_dashboard.plots.replicas import ReplicaGrid
from scant_dashboard.template import text

HELP = (
    "<p>Click a cell, or choose an output and one of its replicas. A second model trains briefly "
    "without this replica, and its prediction appears beside the measurements. Chosen first: the "
    "replica whose points vary as much as the median one's, because the NMSE is relative to that "
    "variation; of a flat replica it may be far above 1.</p>"
)
NEW = "a new replica"
TALL = 220  # pixels of a row of the pair


class HeldOutReplica(QuestionView):
    """Hide a replica, continue training without it, and compare the predictions with its data."""

    title = "Hide a replica and see it return"
    prompt = "Hide a replica to see it return."

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: dict[str, Any] = {}
        self._query = ("", "")
        self._suspended = False
        self.grid = Grid("Click a replica", pick=self._clicked)
        self.pair = ReplicaGrid("Before and after", row_height=TALL)
        super().__init__(self.grid, self.pair)
        self.output = pmui.Select(label="Output", options=[], disabled=True, width=240, margin=0)
        self.replica = pmui.Select(label="Replica", options=[], disabled=True, width=240, margin=0)
        self.button = pmui.Button(label="Hide it", variant="outlined", disabled=True, margin=0)
        self.reading = text(HELP)
        self.output.param.watch(lambda _: self._list_replicas(), "value")
        self.replica.param.watch(lambda _: self._name(), "value")
        self.button.on_click(lambda _: self._ask())
        self.panel = stacked(
            controls_row(self.output, self.replica, self.button),
            self.reading,
            self.pair.panel,
            self.grid.panel,
        )
        self.pair.panel.visible = False

    def open(self, run: RunState) -> None:
        """Offer the run's outputs; no query until the visitor asks."""
        assert run.report is not None
        self._metadata = dict(run.metadata)
        self.grid.show(run.report.arrays, self._metadata)
        self._suspended = True
        for control in (self.output, self.replica, self.button):
            control.disabled = False
        self.output.options = list(self._metadata["outputs"])
        shown = self._metadata["shown"]
        d, r = typical_replica(self._metadata["observed"]) or (0, 0)
        self.output.value = shown[d]
        self._list_replicas()
        self.replica.value = replicas_of(self._metadata, [shown[d]])[0][r]
        self._suspended = False

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._metadata = {}
        self.grid.clear(run)
        self.grid.plot.choose(None)
        self.pair.clear()
        self.pair.panel.visible = False
        self.reading.object = HELP
        for control in (self.output, self.replica, self.button):
            control.disabled = True

    def _list_replicas(self) -> None:
        """Offer the replicas of the chosen output."""
        if self._metadata:
            names = [*replicas_of(self._metadata, [self.output.value])[0], NEW]
            selected = self.replica.value if self.replica.value in names else names[0]
            self.replica.param.update(options=names, value=selected)
            self._name()

    def _name(self) -> None:
        self.button.label = "Expect it" if self.replica.value == NEW else "Hide it"
        outputs, output = self._metadata.get("shown", ()), self.output.value
        if output in outputs and self.replica.value != NEW:
            row = outputs.index(output)
            names = self.grid.plot.replicas[row]
            self.grid.plot.choose(row, names.index(self.replica.value))
        else:
            self.grid.plot.choose(None)

    def _clicked(self, output: str, replica: str) -> None:
        if self._metadata:
            self.output.value = output
            self.replica.value = replica
            self._ask()

    def _ask(self) -> None:
        self._query = (self.output.value, self.replica.value)
        output, replica = self._query
        if replica == NEW:
            self._page.ask("new", self._expected, output=output)
        else:
            self._page.ask("hide", self._on_answer, output=output, replica=replica)

    def _on_answer(self, answer: dict[str, np.ndarray]) -> None:
        output, replica = self._query
        x, y = (np.asarray(answer[name], float) for name in "xy")
        n = len(x)
        self.pair.lay_out(
            [output],
            [[f"{replica}, as trained", replica]],
            np.tile(x, 2),
            np.tile(y, 2),
            np.zeros(2 * n, int),
            np.repeat([0, 1], n),
            np.repeat([self._held_out(output, replica), True], n),
            (float(answer["grid"][0]), float(answer["grid"][-1])),
        )
        mean, std_f, std_y = (
            np.stack([answer[f"{when}_{name}"] for when in ("before", "after")])[None]
            for name in ("mean", "std_f", "std_y")
        )
        self.pair.show(answer["grid"], mean, std_f, std_y)
        self.pair.panel.visible = True
        inside, error = (float(np.ravel(answer[name])[0]) for name in ("inside", "nmse"))
        self.pair.describe(  # the grid's own text would count the points twice
            f"{output}, {replica}, with and without its data. Without it, the 95% band of new "
            f"measurements contains {inside:.0f} of its {n} points."
        )
        self.reading.object = (
            f"<p role='note'>Without <strong>{escape(replica)}</strong> of {escape(output)} the "
            f"model predicts its {n} points with an NMSE of "
            f"<strong>{error:.3f}</strong> (0 is best, the mean gives "
            f"1); the 95% band of new measurements contains {inside:.0f} of {n}.</p>"
        )

    def _held_out(self, output: str, replica: str) -> bool:
        """Whether the run itself was trained without this replica, as far as is known."""
        observed, outputs = self._metadata["observed"], self._metadata["shown"]
        if output not in outputs:
            return False
        d, r = outputs.index(output), replicas_of(self._metadata, [output])[0].index(replica)
        cells = zip(observed["output"], observed["replica"], observed["test"])
        return all(test for one, other, test in cells if (one, other) == (d, r))

    def _expected(self, answer: dict[str, np.ndarray]) -> None:
        output = self._query[0]
        grid, mean = answer["grid"], answer["mean"]
        low, high = mean.min(), mean.max()
        limits = np.array([low, high]) + np.array([-1, 1]) * Z_95 * answer["std_y"].max()
        none = np.zeros(2, int)
        self.pair.lay_out([output], [["a new replica"]], grid[[0, -1]], limits, none, none,
                      np.zeros(2, bool))  # fmt: skip
        for source in (self.pair.points, self.pair.held):
            source.data = {name: values[:0] for name, values in source.data.items()}
        self.pair.show(grid, *(answer[n][None, None] for n in ("mean", "std_f", "std_y")))
        self.pair.panel.visible = True
        self.reading.object = (
            f"<p role='note'>A new replica of {escape(output)} would be between "
            f"{low:.3g} and {high:.3g}; a single measurement would lie within "
            f"± {Z_95 * float(np.mean(answer['std_y'])):.2g} of the curve on average.</p>"
        )

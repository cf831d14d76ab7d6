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
from scant_dashboard.pages.genes.grid import Grid, name_input, replicas_of
from scant_dashboard.pages.genes.typical import typical_replica
from scant_dashboard.plots.replicas import ReplicaGrid
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

HELP = later(
    "Click a replica, or choose an output and one of its replicas. A second model trains briefly "
    "without this replica, and its prediction appears beside the measurements. The first choice "
    "is a replica of median variation, because the NMSE is relative to the variation of the "
    "points; for a flat replica it may be far above 1."
)
NEW = later("a new replica")
HIDE = later("Hide it")
TALL = 220  # pixels of a row of the pair


class HeldOutReplica(QuestionView):
    """Hide a replica, continue training without it, and compare the predictions with its data."""

    title = later("Hide a replica and see it return")
    prompt = later("Hide a replica to see it return.")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: dict[str, Any] = {}
        self._query = ("", "")
        self._suspended = False
        self.grid = Grid(tr("Click a replica"), pick=self._clicked)
        self.pair = ReplicaGrid(tr("Before and after"), row_height=TALL)
        super().__init__(self.grid, self.pair)
        usual = {"disabled": True, "width": 240, "margin": 0}
        self.output = pmui.Select(label=tr("Output"), options=[], **usual)
        self.replica = pmui.Select(label=tr("Replica"), options={}, **usual)
        self.button = pmui.Button(label=tr(HIDE), variant="outlined", disabled=True, margin=0)
        self.reading = text(f"<p>{tr(HELP)}</p>")
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
        name_input(self.pair, self._metadata)
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
        self.reading.object = f"<p>{tr(HELP)}</p>"
        for control in (self.output, self.replica, self.button):
            control.disabled = True

    def _list_replicas(self) -> None:
        """Offer the replicas of the chosen output."""
        if self._metadata:
            names = [*replicas_of(self._metadata, [self.output.value])[0], NEW]
            selected = self.replica.value if self.replica.value in names else names[0]
            options = {tr(NEW) if name == NEW else name: name for name in names}
            self.replica.param.update(options=options, value=selected)
            self._name()

    def _name(self) -> None:
        self.button.label = tr("Expect it") if self.replica.value == NEW else tr(HIDE)
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
            [[tr("{replica}, as trained", replica=replica), replica]],
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
            tr("{output}, {replica}, with and without its data. Without it, the 95% band of new "
               "measurements contains {inside:.0f} of its {n} points.", output=output,
               replica=replica, inside=inside, n=n)
        )  # fmt: skip
        message = tr(
            "Without <strong>{replica}</strong> of {output} the model predicts its {n} points with "
            "an NMSE of <strong>{error:.3f}</strong> (0 is best, the mean gives 1); the 95% band "
            "of new measurements contains {inside:.0f} of {n}.",
            replica=escape(replica), output=escape(output), n=n, error=error, inside=inside,
        )  # fmt: skip
        self.reading.object = f"<p role='note'>{message}</p>"

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
        self.pair.lay_out([output], [[tr(NEW)]], grid[[0, -1]], limits, none, none,
                      np.zeros(2, bool))  # fmt: skip
        for source in (self.pair.points, self.pair.held):
            source.data = {name: values[:0] for name, values in source.data.items()}
        self.pair.show(grid, *(answer[n][None, None] for n in ("mean", "std_f", "std_y")))
        self.pair.panel.visible = True
        message = tr(
            "A new replica of {output} would be between {low:.3g} and {high:.3g}; a single "
            "measurement would lie within ± {half:.2g} of the curve on average.",
            output=escape(output), low=low, high=high,
            half=Z_95 * float(np.mean(answer["std_y"])),
        )  # fmt: skip
        self.reading.object = f"<p role='note'>{message}</p>"

"""Learning curve of the aggregation page: fine observations, with and without coarse ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import panel_material_ui as pmui
from jaxtyping import Float

from scant.studies.aggregation.settings import EXACT
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.on_demand import SliderCurve
from scant_dashboard.plots.score_curve import ScoreCurve
from scant_dashboard.translate import later, ntr, tr

WHOLE = later("computing the whole curve from exact posteriors")
REPEATS = 3  # trainings per slider position, each with another random subset
ASIDE = later(
    "At each slider position the model continues training from this run with that"
    " number of fine values, on three random draws, and adds a point to the curve. With Gaussian "
    "likelihoods the button computes the whole curve: exact posteriors at this run's lengthscales "
    "and noise. Bands show the minimum and the maximum."
)


HELPED = later(
    "With {first:.0f} fine observations, SMSE is {together:.3f} with all tasks and {alone:.3f} "
    "with this one alone. The other tasks help up to {last:.0f} fine observations."
)
NOT_HELPED = later(
    "With {first:.0f} fine observations, SMSE is {together:.3f} with all tasks and {alone:.3f} "
    "with this one alone. The other tasks do not help with more of them either."
)


class ScarcityPlot(ScoreCurve):
    """SMSE and SNLP, each with a band over repeats (Yousefi 2021, Figs. 5.2-5.3)."""

    def __init__(self, title: str) -> None:
        scores = {
            "smse": tr("SMSE\n(1: predicting the mean)"),
            "snlp": tr("SNLP (nats,\n0: predicting the mean)"),
        }
        super().__init__(title, scores, tr("fine observations"),
                         (tr("all tasks"), tr("this task alone")), size=6, band=True,
                         x_axis_type="log")  # fmt: skip

    def show(
        self,
        n: Float[np.ndarray, " k"],
        smse: Float[np.ndarray, "2 3 k"],
        snlp: Float[np.ndarray, "2 3 k"],
    ) -> None:
        """Show mean, minimum and maximum over repeats at `n` fine observations."""
        helped = smse[0, 0] < smse[1, 0]
        values = {"first": n[0], "together": smse[0, 0, 0], "alone": smse[1, 0, 0]}
        reading = (
            tr(HELPED, last=n[helped][-1], **values) if helped.any() else tr(NOT_HELPED, **values)
        )
        self.draw(
            reading,
            [(n, *line) for line in (*smse, *snlp)],
        )


class Scarcity(SliderCurve):
    """SMSE and SNLP against the number of fine observations, with and without the other tasks."""

    title = later("How many fine values are the coarse ones worth?")
    span = (0, 1.5, 0.05)

    def __init__(self, page: PageContext) -> None:
        self.button = pmui.Button(
            label=tr("Compute the whole curve"), variant="outlined", disabled=True, margin=0
        )
        self.button.on_click(lambda _: self._work(tr(WHOLE), "scarcity", self._whole))
        self._whole_curve = False
        plot = ScarcityPlot(self.title)
        aside = f"<p class='quiet'>{tr(ASIDE)}</p>"
        super().__init__(page, plot, tr("Number of fine observations"), aside, (self.button,))
        self.help += " " + tr("The button draws the whole curve at once.")

    def open(self, run: RunState) -> None:
        """Enable the slider, and the button for Gaussian likelihoods."""
        numbers = list(run.metadata.get("counts", ()))
        if numbers:
            self._offer(numbers, numbers[0])
        gaussian = all(kind in EXACT for kind in run.metadata["likelihoods"])
        self.button.disabled = not (numbers and gaussian)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        super().clear(run)
        self._whole_curve = False
        self.button.disabled = True

    def _ask(self, stop: int) -> None:
        """Train with `stop` fine values, up to `REPEATS` times."""
        repeat = len(self._points.get(stop, ()))
        if repeat < REPEATS:
            doing = ntr("training with {n} fine value, draw {draw} of {draws}",
                        "training with {n} fine values, draw {draw} of {draws}", stop,
                        draw=repeat + 1, draws=REPEATS)  # fmt: skip
            self._work(doing, "retrain", partial(self._trained, stop), n=stop, repeat=repeat)

    def _trained(self, n: int, answer: dict[str, np.ndarray]) -> None:
        self._points.setdefault(n, []).append(np.stack([answer["smse"], answer["snlp"]]))
        self._whole_curve = False
        self._show()
        if n == self.slider.value:
            self._on_stop()

    def _question(self, n: int) -> str:
        return ntr(
            "With {n} fine value: what is the model's SMSE (1: predicting the mean)?",
            "With {n} fine values: what is the model's SMSE (1: predicting the mean)?",
            n,
        )

    def _answer(self, repeats: Sequence[np.ndarray]) -> tuple[str, float, Sequence[float]]:
        own = np.stack(repeats)[:, 0, 0]  # SMSE with all tasks
        mean = float(own.mean())
        band = (own.min(), own.max()) if len(own) > 1 else ()
        return tr("Its SMSE is {value:.2f}.", value=mean), mean, band

    def _draw(self, points: Mapping[int, Sequence[np.ndarray]]) -> None:
        numbers = sorted(points)
        each = [np.stack(points[k]) for k in numbers]
        spread = [(f.mean(0), f.min(0), f.max(0)) for f in each]  # each: score, model
        scores = np.transpose(np.array(spread), (2, 3, 1, 0))
        self.plot.show(np.array(numbers, float), scores[0], scores[1])

    def _show(self) -> None:
        if not self._whole_curve:
            super()._show()

    def _whole(self, answer: dict[str, np.ndarray]) -> None:
        """Draw the whole curve, which replaces the single points and any open question."""
        self._points, self._guessed, self._whole_curve = {}, None, True
        self.reveal.ask("")
        self.container.objects = [self._below]
        self.plot.show(answer["n"], answer["smse"], answer["snlp"])

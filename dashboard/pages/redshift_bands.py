"""The redshift page's question to the model: what if a band had not been measured?"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from dashboard.plots.base import BESIDE, NOTHING
from dashboard.plots.density import DensityPlot
from dashboard.plots.scatter import ScatterPlot
from dashboard.plots.table import comparison
from dashboard.shell import text

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

PLOTS = ":host { grid-template-columns: repeat(auto-fit, minmax(min(100%, 360px), 1fr)); }"
SHOWN = 2500  # galaxies in the scatter at most; the metrics are of all
METRICS = ("RMSE", "mean log-likelihood", "F_0.15 (%)", "F_0.05 (%)")


class BandsOff:
    """Untick a band: every galaxy's p(z) and the metrics move. Click a galaxy for its p(z)."""

    title = "What if a band had not been measured?"

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self._arrays: dict[str, np.ndarray] = {}
        self._shown = np.empty(0, int)  # the test rows in the scatter
        self._whole: np.ndarray | None = None  # metrics with every band
        self._now: np.ndarray | None = None
        self._row: int | None = None
        self._before: tuple[np.ndarray, np.ndarray] | None = None
        self._quiet = self._warned = False
        self.scatter = ScatterPlot("redshift z", title="Click a galaxy", pick=self._pick)
        self.density = DensityPlot("z", title="Its p(z)")
        self.figures = (*self.scatter.figures, *self.density.figures)
        self._build_controls()
        plots = pn.Column(
            self.scatter.panel,
            self.density.panel,
            stylesheets=[BESIDE, PLOTS],
            sizing_mode="stretch_width",
            margin=0,
        )
        self.panel = pn.Column(
            _in_row(self.bands, self.galaxy),
            _in_row(self.guess_first, self.guess, self.reveal),
            self.reading,
            plots,
            stylesheets=[":host { gap: 10px; max-height: none !important; }"],
            sizing_mode="stretch_width",
            margin=0,
        )

    @property
    def alt(self) -> str:
        chosen = "Click a galaxy for its p(z)." if self.density.alt == NOTHING else self.density.alt
        return f"{self.scatter.alt} {chosen}"

    def say(self) -> None:
        """Tell the readings to a screen reader."""
        self.scatter.say()
        self.density.say()

    def open(self, run: History) -> None:
        """Take the run's bands and test rows; nothing is asked before the visitor asks."""
        assert run.report is not None
        self._arrays = dict(run.report.arrays)
        n = len(self._arrays["z_true"])
        self._shown = np.unique(np.linspace(0, n - 1, min(n, SHOWN)).astype(int))
        names = [str(b) for b in run.words.get("bands", ())]
        self._quiet = True
        self.bands.param.update(options=names, value=names, disabled=len(names) < 2)
        self.galaxy.param.update(value=None, end=n - 1, disabled=False)
        self._quiet = False
        self._show_all(self._arrays)
        # A crowd that watches one run should not ask all at once when it ends.
        if run.recorded or self._page.mine:
            self._choose(int(self._shown[len(self._shown) // 2]))

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self.scatter.clear()
        self.density.clear()
        self._whole = self._now = self._row = self._before = None
        self.reading.object = ""
        self._quiet = True
        self.bands.disabled = self.galaxy.disabled = True
        self.scatter.select(None)
        self._quiet = False

    def _build_controls(self) -> None:
        self.bands = pmui.CheckBoxGroup(
            label="Bands measured", inline=True, disabled=True, margin=0
        )
        self.galaxy = pmui.IntInput(
            label="Galaxy (row of the test set)",
            start=0,
            disabled=True,
            width=220,
            size="small",
            margin=(6, 0),
        )
        self.guess_first = pmui.Switch(label="Guess, then reveal", value=False, margin=0)
        self.guess = pmui.FloatSlider(
            label="RMSE will grow by a factor of", start=1, end=6, step=0.1, value=2,
            visible=False, width=260,
        )  # fmt: skip
        self.reveal = pmui.Button(label="Reveal", variant="outlined", visible=False, margin=0)
        self.reading = text("")
        self.bands.param.watch(self._toggled, "value")
        self.galaxy.param.watch(lambda e: self._typed(e.new), "value")
        self.guess_first.param.watch(lambda _: self._hide_or_show(), "value")
        self.reveal.on_click(lambda _: self._read(revealed=True))

    @property
    def _off(self) -> list[str]:
        return [b for b in self.bands.options if b not in (self.bands.value or ())]

    def _toggled(self, _change: Any) -> None:
        if self._quiet:
            return
        off = self._off
        if len(off) == len(self.bands.options):
            self._page.say("Leave at least one band measured; without any there is nothing to see.")
            self._warned = True
            return
        if self._warned:  # what others have said is not ours to take back
            self._page.say("")
            self._warned = False
        self._hide_or_show()
        self._page.ask("without", self._answered, off=off)
        self._ask_density()

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        self._now = answer["metrics"]
        if not self._off:
            self._whole = self._now
        self._show_all(answer)
        self._read(revealed=not self.guess_first.value)
        if self._whole is None and self._off:
            self._page.ask("without", self._answered_whole, off=[])

    def _answered_whole(self, answer: dict[str, np.ndarray]) -> None:
        self._whole = answer["metrics"]
        self._read(revealed=not self.guess_first.value)

    def _show_all(self, arrays: dict[str, np.ndarray]) -> None:
        parts = [arrays[k][self._shown] for k in ("std_model", "std_noise", "std_input")]
        std = np.sqrt(sum(p**2 for p in parts))
        self.scatter.show(self._arrays["z_true"][self._shown], arrays["z_mean"][self._shown], std)

    def _pick(self, place: int) -> None:
        if not self._quiet:
            self._choose(int(self._shown[place]))

    def _typed(self, row: int | None) -> None:
        if not self._quiet and row is not None and row != self._row:
            self._choose(row)

    def _choose(self, row: int) -> None:
        self._row, self._before = row, None
        self._quiet = True
        self.galaxy.value = row
        place = np.searchsorted(self._shown, row)
        seen = place < len(self._shown) and self._shown[place] == row
        self.scatter.select(int(place) if seen else None)
        self._quiet = False
        self._ask_density()

    def _ask_density(self) -> None:
        if self._row is not None:
            self._page.ask("density", self._show_density, row=self._row, off=self._off)

    def _show_density(self, answer: dict[str, np.ndarray]) -> None:
        assert self._row is not None
        if not self._off:
            self._before = (answer["grid"], answer["density"])
        self.density.show(
            answer["grid"],
            answer["density"],
            answer["components"],
            float(self._arrays["z_true"][self._row]),
            self._before if self._off else None,
        )

    def _hide_or_show(self) -> None:
        guessing = bool(self.guess_first.value and self._off)
        self.guess.visible = self.reveal.visible = guessing
        self._read(revealed=not guessing)

    def _read(self, revealed: bool) -> None:
        off = ", ".join(self._off)
        if self._now is None:
            self.reading.object = ""
        elif not revealed:
            self.reading.object = (
                f"<p role='note'>Without {escape(off)}: how much will the error grow? Guess, "
                "then reveal.</p>"
            )
        else:
            self.reading.object = self._table(off) + self._verdict()

    def _verdict(self) -> str:
        if self._whole is None or self._now is None or not self._off:
            return ""
        factor = self._now[0] / self._whole[0]
        guessed = f" You guessed {self.guess.value:.1f}." if self.guess_first.value else ""
        return (
            f"<p role='note'><strong>RMSE grows by a factor of {factor:.1f}.</strong>{guessed}</p>"
        )

    def _table(self, off: str) -> str:
        rows = [("every band measured", self._whole)]
        if off:
            rows.append((f"without {off}", self._now))
        said = {
            label: [_figure(name, value) for name, value in zip(METRICS, values)]
            for label, values in rows
            if values is not None
        }
        return comparison(said, METRICS)


def _figure(name: str, value: float) -> str:
    return f"{value:.1f}" if "%" in name else f"{value:.4f}"


def _in_row(*controls: Any) -> Any:
    return pn.FlexBox(
        *controls, align_items="center", gap="8px 24px", margin=0, sizing_mode="stretch_width"
    )

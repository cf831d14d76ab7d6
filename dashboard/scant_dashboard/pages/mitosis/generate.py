"""New rows of the mitosis page, generated from a class's latent space."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pandas as pd
import panel as pn
import panel_material_ui as pmui
from PIL import Image

from scant_dashboard.controls.download import download
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import controls_row, stacked
from scant_dashboard.pages.mitosis.cells import GENERATED, ink
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.images import GalleryPlot
from scant_dashboard.plots.table import comparison
from scant_dashboard.template import text
from scant_dashboard.translate import later, ntr, tr

MAX_ROWS, BEGIN, PAIRS = 64, 16, 8
ASIDE = later(
    "A new row is generated at a position near the rows of a class: its shared part lies near one "
    "row, its private part near another. The same seed gives the same rows. Download them as "
    "images in a folder named after the class, or as table rows; both can be uploaded as data."
)
HELP = later("Press the button to generate new rows.")
DATED = (2000, 1, 1, 0, 0, 0)  # fixed date of files in a ZIP, so that equal rows give equal files


class Generate(PlotView):
    """Generated rows of a class, and reconstructions of real ones."""

    title = later("Draw new rows")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: dict[str, Any] = {}
        self._made = np.empty((0, 0, 0))  # generated: gray images or features
        self._pairs = np.empty((0, 0)), np.empty((0, 0))  # features: real, redrawn
        self._readings = {"made": "", "anew": ""}
        self._suspended = True
        self.made = GalleryPlot(tr(GENERATED), "new", min_side=44, max_side=80, lines=0, rows_of=16)
        self.redrawn = GalleryPlot(
            tr("Held-out rows and their reconstructions"), "anew", min_side=44, max_side=80,
            lines=1, rows_of=PAIRS,
        )  # fmt: skip
        self.figures = (*self.made.figures, *self.redrawn.figures)
        self.numbers = text("", visible=False)
        self._build_controls()
        controls = controls_row(self.of, self.count, self.seed, self.button, gap=16)
        files = pn.FlexBox(*self.files, gap="10px", margin=0, sizing_mode="stretch_width")
        self.container = stacked(
            text(f"<h4>{self.made.title}</h4>"),
            self.made.panel,
            text(f"<h4>{self.redrawn.title}</h4>"),
            self.redrawn.panel,
        )
        self.panel = stacked(
            controls, text(f"<p class='quiet'>{tr(ASIDE)}</p>"), self.container, self.numbers, files
        )

    def _build_controls(self) -> None:
        self.of = pmui.Select(label=tr("Class"), options=[], disabled=True, width=170, size="small",
                              margin=0)  # fmt: skip
        self.count = pmui.IntSlider(label=tr("How many"), start=1, end=MAX_ROWS, value=BEGIN,
                                    width=180, disabled=True, margin=(0, 12))  # fmt: skip
        self.seed = pmui.IntInput(label=tr("Seed"), start=0, end=2**31 - 1, value=0, width=110,
                                  disabled=True, size="small", margin=0)  # fmt: skip
        self.button = pmui.Button(label=tr(self.title), variant="outlined", size="small",
                                  disabled=True, margin=0)  # fmt: skip
        self.of.param.watch(lambda _: self._draw(), "value")
        self.seed.param.watch(lambda _: self._draw(), "value")
        self.count.param.watch(lambda _: self._draw(), "value_throttled")
        self.button.on_click(lambda _: self._next())
        self.files = [
            download(self._page, label, name, make, disabled=True)
            for label, name, make in (
                (tr("New rows as images (ZIP)"), "new_rows.zip", self.zip),
                (tr("New rows as a table (CSV)"), "new_rows.csv", self.csv),
            )
        ]

    @property
    def alt(self) -> str:
        message = " ".join(reading for reading in self._readings.values() if reading)
        return message or tr(HELP)

    def say(self) -> None:
        """Put the text alternatives on the figures."""
        self.made.say()
        self.redrawn.say()

    def open(self, run: RunState) -> None:
        """Offer the classes, the rare one first; only the run's owner queries automatically."""
        self._metadata = dict(run.metadata)
        images = bool(self._metadata.get("size"))
        self.container.visible, self.files[0].visible = images, images
        self.of.param.update(
            options=list(self._metadata["classes"]), value=self._metadata["rare"], disabled=False
        )
        for control in (self.count, self.seed, self.button):
            control.disabled = False
        self._suspended = False
        if run.recorded or self._page.owns_run:
            self._draw()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._suspended = True
        self._made = np.empty((0, 0, 0))
        self._pairs = np.empty((0, 0)), np.empty((0, 0))
        self._readings = dict.fromkeys(self._readings, "")
        self.made.clear()
        self.redrawn.clear()
        self.numbers.visible = False
        for control in (self.of, self.count, self.seed, self.button, *self.files):
            control.disabled = True

    def _next(self) -> None:
        """Generate other rows, with the next seed."""
        if self._readings["made"]:
            self.seed.value = (int(self.seed.value or 0) + 1) % 2**31
        else:
            self._draw()

    def _draw(self) -> None:
        if self._suspended:
            return
        query = {"label": self.of.value, "seed": max(0, int(self.seed.value or 0))}
        self._page.ask("generate", self._show_generated, count=int(self.count.value), **query)
        self._page.ask("redraw", self._show_reconstructions, count=PAIRS, **query)

    def _show_generated(self, answer: dict[str, np.ndarray]) -> None:
        self._made = np.asarray(answer["generated"], float)
        for file in self.files:
            file.disabled = False
        kind, seed = str(self.of.value), int(self.seed.value or 0)
        self._readings["made"] = ntr(
            "{n} new row of the class {name}, generated with seed {seed}.",
            "{n} new rows of the class {name}, generated with seed {seed}.",
            len(self._made), name=kind, seed=seed,
        )  # fmt: skip
        if self._metadata.get("size"):
            self.made.show(ink(self._made), [[] for _ in self._made], self._readings["made"])
        else:
            self._list()

    def _show_reconstructions(self, answer: dict[str, np.ndarray]) -> None:
        real, redrawn = (np.asarray(answer[name], float) for name in ("real", "redrawn"))
        if not self._metadata.get("size"):
            self._pairs = real, redrawn
            self._list()
            return
        if not len(real):  # the class has no held-out row
            self._readings["anew"] = ""
            self.redrawn.clear()
            return
        off = float(np.abs(real - redrawn).mean())
        self._readings["anew"] = ntr(
            "{n} real row of the class {name}, beside its reconstruction: the mean error is "
            "{error:.2f} of the gray scale.",
            "{n} real rows of the class {name}, each beside its reconstruction: the mean error is "
            "{error:.2f} of the gray scale.",
            len(real), name=str(self.of.value), error=off,
        )  # fmt: skip
        captions = [[tr("row {row}", row=int(row) + 1)] for row in answer["rows"]]
        pairs = np.stack([ink(real), ink(redrawn)], 1).reshape(-1, *real.shape[1:])
        self.redrawn.show(
            np.clip(pairs, 0, 1),
            [w for one in captions for w in (one, [tr("reconstruction")])],
            self._readings["anew"],
        )

    def _list(self) -> None:
        """Without images, list each feature of generated rows and of reconstructions."""
        real, redrawn = self._pairs
        if not len(self._made) or not len(real):  # the other answer has not arrived yet
            return
        names = [str(n) for n in self._metadata.get("features", [])]
        off, spread = np.abs(real - redrawn).mean(0), self._made.std(0)
        rows = {
            n: [
                tr("{mean:.3g} ± {std:.2g}", mean=m, std=s),
                tr("{value:.3g}", value=r),
                tr("{value:.2g}", value=o),
            ]
            for n, m, s, r, o in zip(names, self._made.mean(0), spread, real.mean(0), off)
        }
        heads = [tr("new rows"), tr("real rows"), tr("error of the reconstruction")]
        self.numbers.object = comparison(rows, heads)
        self.numbers.visible = True

    # --- files -----------------------------------------------------------------------------------

    def zip(self) -> bytes:
        """Return the generated images as PNG files in a folder named after their class."""
        folder = "".join(c if c.isalnum() or c in "-_ " else "_" for c in str(self.of.value))
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for k, gray in enumerate(self._made):
                png = io.BytesIO()
                Image.fromarray(np.round(255 * gray).astype(np.uint8)).save(png, "PNG")
                name = f"{folder.strip() or 'class'}/new_{int(self.seed.value or 0)}_{k + 1:02}.png"
                archive.writestr(zipfile.ZipInfo(name, DATED), png.getvalue())
        return file.getvalue()

    def csv(self) -> bytes:
        """Return the generated rows as an uploadable table: label, then pixels or features."""
        flat = self._made.reshape(len(self._made), -1)
        names = [str(n) for n in self._metadata.get("features", [])]
        frame = pd.DataFrame(flat, columns=names or [f"p{i}" for i in range(flat.shape[1])])
        frame.insert(0, "label", str(self.of.value))
        return frame.round(6).to_csv(index=False).encode()

"""The mitosis page's new cells: drawn from a class's latent space, as many as one likes."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pandas as pd
import panel as pn
import panel_material_ui as pmui
from jaxtyping import Float
from PIL import Image
from scant.dashboard.controls.download import download
from scant.dashboard.frame.template import text
from scant.dashboard.live.run_state import RunState
from scant.dashboard.pages.mitosis.cells import ink
from scant.dashboard.plots.base import PlotView
from scant.dashboard.plots.images import GalleryPlot
from scant.dashboard.plots.table import comparison
from scant.dashboard.study_page.context import PageContext
from scant.dashboard.study_page.widgets import controls_row, stacked

MOST, BEGIN, PAIRS = 64, 16, 8
ASIDE = (
    "<p class='quiet'>A new cell is the model's image at a position near the cells of a class: its"
    " shared part lies near one cell, its private part near another. The same seed gives the same "
    "cells. Download them as images in a folder named after the class, or as table rows; both can "
    "be uploaded as data.</p>"
)
HELP = "Press the button to generate new cells."
DATED = (2000, 1, 1, 0, 0, 0)  # of a ZIP's files: the same cells are the same file


class Generate(PlotView):
    """New cells of a class, and real ones beside what the model makes of them."""

    title = "Draw new cells"

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: dict[str, Any] = {}
        self._made = np.empty((0, 0, 0))  # as the model drew them: gray, or features
        self._readings = {"made": "", "anew": ""}
        self._quiet = True
        self.made = GalleryPlot("Drawn by the model", "new", least=44, most=80, lines=0, rows_of=16)
        self.anew = GalleryPlot("Held-out cells and their reconstructions",
                                "anew", least=44, most=80, lines=1, rows_of=PAIRS)  # fmt: skip
        self.figures = (*self.made.figures, *self.anew.figures)
        self.numbers = text("", visible=False)
        self._build_controls()
        controls = controls_row(self.of, self.count, self.seed, self.button, gap=16)
        files = pn.FlexBox(*self.files, gap="10px", margin=0, sizing_mode="stretch_width")
        self.drawn = stacked(
            text(f"<h4>{self.made.title}</h4>"),
            self.made.panel,
            text(f"<h4>{self.anew.title}</h4>"),
            self.anew.panel,
        )
        self.panel = stacked(controls, text(ASIDE), self.drawn, self.numbers, files)

    def _build_controls(self) -> None:
        self.of = pmui.Select(label="Class", options=[], disabled=True, width=170, size="small",
                              margin=0)  # fmt: skip
        self.count = pmui.IntSlider(label="How many", start=1, end=MOST, value=BEGIN, width=180,
                                    disabled=True, margin=(0, 12))  # fmt: skip
        self.seed = pmui.IntInput(label="Seed", start=0, end=2**31 - 1, value=0, width=110,
                                  disabled=True, size="small", margin=0)  # fmt: skip
        self.button = pmui.Button(label="Draw new cells", variant="outlined", size="small",
                                  disabled=True, margin=0)  # fmt: skip
        self.of.param.watch(lambda _: self._draw(), "value")
        self.seed.param.watch(lambda _: self._draw(), "value")
        self.count.param.watch(lambda _: self._draw(), "value_throttled")
        self.button.on_click(lambda _: self._next())
        self.files = [
            download(self._page, label, name, make, disabled=True)
            for label, name, make in (
                ("New cells as images (ZIP)", "new_cells.zip", self.zip),
                ("New cells as a table (CSV)", "new_cells.csv", self.csv),
            )
        ]

    @property
    def alt(self) -> str:
        message = " ".join(reading for reading in self._readings.values() if reading)
        return message or HELP

    def say(self) -> None:
        """Tell the readings to a screen reader."""
        self.made.say()
        self.anew.say()

    def open(self, run: RunState) -> None:
        """Offer the classes, the rare one first; a visitor who trained the run sees cells at once.

        A crowd that watches one run should not ask all at once when it ends.
        """
        self._metadata = dict(run.metadata)
        images = bool(self._metadata.get("size"))
        self.drawn.visible, self.files[0].visible = images, images
        self.of.param.update(
            options=list(self._metadata["classes"]), value=self._metadata["rare"], disabled=False
        )
        for control in (self.count, self.seed, self.button):
            control.disabled = False
        self._quiet = False
        if run.recorded or self._page.mine:
            self._draw()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self._quiet = True
        self._made = np.empty((0, 0, 0))
        self._readings = dict.fromkeys(self._readings, "")
        self.made.clear()
        self.anew.clear()
        self.numbers.visible = False
        for control in (self.of, self.count, self.seed, self.button, *self.files):
            control.disabled = True

    def _next(self) -> None:
        """Other cells: those of the next seed."""
        if self._readings["made"]:
            self.seed.value = (int(self.seed.value or 0) + 1) % 2**31
        else:
            self._draw()

    def _draw(self) -> None:
        if self._quiet:
            return
        query = {"label": self.of.value, "seed": max(0, int(self.seed.value or 0))}
        self._page.ask("generate", self._drawn, count=int(self.count.value), **query)
        self._page.ask("redraw", self._redrawn, count=PAIRS, **query)

    def _drawn(self, answer: dict[str, np.ndarray]) -> None:
        self._made = np.asarray(answer["generated"], float)
        for file in self.files:
            file.disabled = False
        kind, seed = str(self.of.value), int(self.seed.value or 0)
        self._readings["made"] = (
            f"{len(self._made)} new cells of {kind}, generated with seed {seed}."
        )
        if self._metadata.get("size"):
            self.made.show(ink(self._made), [[] for _ in self._made], self._readings["made"])

    def _redrawn(self, answer: dict[str, np.ndarray]) -> None:
        real, anew = (np.asarray(answer[name], float) for name in ("real", "redrawn"))
        if not self._metadata.get("size"):
            self._list(real, anew)
            return
        off = float(np.abs(real - anew).mean())
        self._readings["anew"] = (
            f"{len(real)} real cells of {self.of.value}, each beside its reconstruction: the mean "
            f"error is {off:.2f} of the gray scale."
        )
        captions = [[f"row {int(row) + 1}"] for row in answer["rows"]]
        pairs = np.stack([ink(real), ink(anew)], 1).reshape(-1, *real.shape[1:])
        self.anew.show(
            np.clip(pairs, 0, 1),
            [w for one in captions for w in (one, ["reconstruction"])],
            self._readings["anew"],
        )

    def _list(self, real: Float[np.ndarray, "k d"], anew: Float[np.ndarray, "k d"]) -> None:
        """Where there are no images: each feature of new rows, and of real ones made anew."""
        names = [str(n) for n in self._metadata.get("features", [])]
        off, spread = np.abs(real - anew).mean(0), self._made.std(0)
        rows = {
            n: [f"{m:.3g} ± {s:.2g}", f"{r:.3g}", f"{o:.2g}"]
            for n, m, s, r, o in zip(names, self._made.mean(0), spread, real.mean(0), off)
        }
        heads = ["new rows", "real rows", "error of the reconstruction"]
        self.numbers.object = comparison(rows, heads)
        self.numbers.visible = True

    # --- to keep --------------------------------------------------------------------------------

    def zip(self) -> bytes:
        """The new cells as PNG files in a folder that is named as their class."""
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
        """The new cells as rows of a table that this page takes: label, pixels or features."""
        flat = self._made.reshape(len(self._made), -1)
        names = [str(n) for n in self._metadata.get("features", [])]
        frame = pd.DataFrame(flat, columns=names or [f"p{i}" for i in range(flat.shape[1])])
        frame.insert(0, "label", str(self.of.value))
        return frame.round(6).to_csv(index=False).encode()

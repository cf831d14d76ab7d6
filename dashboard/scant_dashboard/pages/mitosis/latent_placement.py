"""Class and latent position of a held-out row or an uploaded image."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant.errors import BadInput
from scant.tables.images.archives import read_image
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import controls_row, stacked
from scant_dashboard.pages.mitosis.cells import colors, ink, short
from scant_dashboard.pages.mitosis.spaces import HALVES, PRIVATE, SHARED, at
from scant_dashboard.plots.base import NOTHING, SIDE_BY_SIDE
from scant_dashboard.plots.images import GalleryPlot
from scant_dashboard.plots.latent import ClassesPlot
from scant_dashboard.plots.table import comparison
from scant_dashboard.plots.theme import GRAY
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

HELP = later(
    "Choose a held-out row, or upload an image (PNG or JPEG, dark on light ground); it is "
    "resized to the model's size, and its gray levels are used as they are."
)
NO_IMAGES = later("Choose a held-out row to see its class and probability.")
NONE = later("a held-out row…")
OFFERED = 30  # number of held-out rows offered, half of them rare
LIMIT = 10_000_000  # maximum bytes of an image


class LatentPlacement:
    """Classification of a held-out row or an image, with latent position and reconstructions."""

    title = later("Classify a row")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._metadata: dict[str, Any] = {}
        self._image = ""
        self._axes = [0, 1]
        self._suspended = False
        self.gallery = GalleryPlot(tr("The image and its reconstructions"), "cell",
                                   min_side=104, max_side=140)  # fmt: skip
        self.plane = ClassesPlot(tr("Where it would lie"), "place", height=340)
        self.figures = (*self.gallery.figures, *self.plane.figures)
        self.reading = text("")
        self.numbers = text("")
        self.row = pmui.Select(label=tr("Row"), options={tr(NONE): -1}, value=-1, disabled=True,
                               size="small", sizing_mode="stretch_width", max_width=300,
                               margin=0)  # fmt: skip
        self.file = pmui.FileInput(label=tr("Upload an image"), accept=".png,.jpg,.jpeg",
                                   disabled=True, size="small", variant="outlined",
                                   width=200, margin=0)  # fmt: skip
        self.row.param.watch(lambda _: self._chosen(), "value")
        self.file.param.watch(lambda _: self._on_upload(), "value")
        controls = controls_row(self.row, self.file, gap=16)
        left = stacked(self.gallery.panel, self.numbers)
        self.layout = pn.Column(left, self.plane.panel, stylesheets=[SIDE_BY_SIDE, HALVES],
                                sizing_mode="stretch_width", margin=0)  # fmt: skip
        self.panel = stacked(self.reading, controls, self.layout)

    @property
    def alt(self) -> str:
        return tr("No row yet.") if self.gallery.alt == NOTHING else self.gallery.alt

    def say(self) -> None:
        """Put the text alternatives on the figures."""
        self.gallery.say()
        self.plane.say()

    def open(self, run: RunState) -> None:
        """Offer held-out rows, half of them rare, starting with a rare one."""
        assert run.report is not None
        self._run, self._metadata = run, dict(run.metadata)
        label = np.asarray(run.report.arrays["test_label"], int)
        classes = [str(c) for c in self._metadata["classes"]]
        rare = classes.index(self._metadata["rare"])
        half = OFFERED // 2
        rows = [*np.flatnonzero(label == rare)[:half], *np.flatnonzero(label != rare)[:half]]
        options = {f"{k + 1}. {classes[label[row]]}": int(row) for k, row in enumerate(rows)}
        images = bool(self._metadata.get("size"))
        self.reading.object = f"<p class='quiet'>{tr(HELP if images else NO_IMAGES)}</p>"
        self.file.param.update(disabled=not images, visible=images)
        self._show_rows(classes)
        self._suspended = True
        self.row.param.update(options={tr(NONE): -1, **options}, value=-1, disabled=not options)
        self._suspended = False
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        if options and (run.recorded or self._page.owns_run):
            self.row.value = next(iter(options.values()))

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._run = None
        self.gallery.clear()
        self.plane.clear()
        self.numbers.object = ""
        self.row.disabled = self.file.disabled = True

    def _chosen(self) -> None:
        if self._run is None or self._suspended or self.row.value < 0:
            return
        self._image = ""
        self._page.cancel_question("place")
        self._page.ask("row", self._answered, index=int(self.row.value), of="test")

    def _on_upload(self) -> None:
        """Read the uploaded image off the document's thread, since it may be large."""
        if self._run is None or not self.file.value:
            return
        content, name = bytes(self.file.value), str(self.file.filename or "image")
        run, (h, w) = self._run, self._metadata["size"]

        too_large = tr(  # here, because `read` runs in a thread without a language
            "{name} has {size:,.0f} MB and the limit is {limit:,.0f} MB; choose a smaller image.",
            name=name, size=len(content) / 1e6, limit=LIMIT / 1e6,
        )  # fmt: skip

        def read() -> np.ndarray:
            if len(content) > LIMIT:
                raise BadInput(too_large)
            return read_image(content, name=name, size=(int(w), int(h)))

        def ask(gray: np.ndarray) -> None:
            if self._run is not run:
                return
            self._suspended = True
            self.row.value = -1
            self._suspended = False
            self._image = name
            levels = np.round(255 * gray).astype(np.uint8)
            pixels = b64encode(levels.tobytes()).decode()
            self._page.say("")
            self._page.cancel_question("row")
            self._page.ask("place", self._answered, pixels=pixels)

        self._page.background(asyncio.to_thread(read), ask)

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        classes = [str(c) for c in self._metadata["classes"]]
        p = np.asarray(answer["p"], float)
        order = np.argsort(-p, kind="stable")
        best, label = int(order[0]), int(np.ravel(answer["label"])[0])
        row = self._image or tr("This held-out row")
        message = tr("{row} is {name} with probability {p:.0%}.", row=row, name=classes[best],
                     p=p[best])  # fmt: skip
        if len(order) > 1:
            message = tr("{row} is {name} with probability {p:.0%}, {second} with {q:.0%}.",
                         row=row, name=classes[best], p=p[best], second=classes[order[1]],
                         q=p[order[1]])  # fmt: skip
        if label >= 0:
            message += " " + tr("Its true class is {name}.", name=classes[label])
        if self._metadata.get("size"):
            self._draw(answer, classes, p, order, message)
        else:
            self.gallery.describe(message)
        self._list(answer, classes, p)
        self._locate(answer, classes, best)

    def _draw(
        self, answer: dict[str, np.ndarray], classes: list[str], p: np.ndarray,
        order: np.ndarray, message: str,
    ) -> None:  # fmt: skip
        """Show the image and its reconstruction under each class."""
        reconstructions = np.asarray(answer["reconstruction"], float)[order]
        images = np.concatenate([np.asarray(answer["image"], float)[None], reconstructions])
        captions = [
            [tr("the image"), ""],
            *(
                [tr("if {name}", name=short(classes[c], 12)), tr("{share:.1%}", share=p[c])]
                for c in order
            ),
        ]
        self.gallery.show(
            np.clip(ink(images), 0, 1), captions,
            message + " " + tr("Beside the image is its reconstruction under each class; the bars "
                               "are probabilities."),
            [GRAY, *colors(order)],
            np.array([0.0, *p[order]]),
        )  # fmt: skip

    def _list(self, answer: dict[str, np.ndarray], classes: list[str], p: np.ndarray) -> None:
        evidence = np.asarray(answer["evidence"], float)
        rows = {c: [tr("{share:.1%}", share=a), tr("{value:.1f}", value=e)]
                for c, a, e in zip(classes, p, evidence)}  # fmt: skip
        what = tr("SVM's decision")
        if self._metadata["n_private"]:
            what = tr("bound on ln p(y* | class) (nats)")
        self.numbers.object = comparison(rows, [tr("probability"), what])

    def _show_rows(self, classes: list[str]) -> None:
        """Show the rows in the two most relevant shared dimensions."""
        assert self._run is not None
        assert self._run.report is not None
        arrays, shared = self._run.report.arrays, int(self._metadata["n_shared"])
        count = shared or arrays["latent_mean"].shape[1]
        relevance = np.asarray(arrays["relevance"], float)[:count]
        chosen = [int(i) for i in np.argsort(-relevance, kind="stable")[:2]]
        self._axes = [*chosen, *[count] * (2 - len(chosen))]
        mean, std = (at(arrays[n], range(count), self._axes) for n in ("latent_mean", "latent_std"))
        kind = SHARED if shared else PRIVATE
        axes = [tr(kind, n=i + 1) if i < count else "" for i in self._axes]
        label = np.asarray(arrays["latent_class"], int)
        self.plane.show(mean, std, label, classes, (axes[0], axes[1]))

    def _locate(self, answer: dict[str, np.ndarray], classes: list[str], best: int) -> None:
        """Mark the position under each class; a single mark if they coincide."""
        mean = np.asarray(answer["mean"], float)
        count = int(self._metadata["n_shared"]) or mean.shape[1]
        positions = at(mean, range(count), self._axes)
        once = bool(np.allclose(positions, positions[:1]))
        names = [""] if once else [tr("if {name}", name=short(c, 12)) for c in classes]
        if len(names) == 2:  # put the lower one's name a line lower to prevent overlap
            lower = int(np.argmin(positions[:, 1]))
            names[lower] = f"\n{names[lower]}"
        self.plane.points(positions[: len(names)], names)
        x, y = positions[best]
        self.plane.describe(
            tr("Under {name} its position is {x:.2f}, {y:.2f}; crosses mark the position under "
               "each class, among the training rows.", name=classes[best], x=x, y=y)
        )  # fmt: skip

"""Hinton diagrams of several matrices among the same classes, to one scale, colored by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import columns, empty, update_source
from scant_dashboard.plots.hinton import FIELD, shortened
from scant_dashboard.plots.theme import GRAY, GROUPS, Figure, models
from scant_dashboard.plots.tiles import Tiled

Matrices = Float[np.ndarray, "q c c"]
Order = Int[np.ndarray, " c"]

HEAD = 20  # pixels of the words above a matrix
KEY = 20  # pixels of a line of the key to the groups' colors
LETTER, SQUARE = 6.6, 11  # pixels of a letter in it, on average, and of a group's square
NAMED, READABLE = 20, 12  # classes at most whose names are written; pixels that one needs
LONGEST = 14  # characters of a name
STRIP, GAP = 0.035, 0.05  # of a tile's width: the groups' colors, the margin

_NAME = """
const names = source.data.name
return names[Math.round(value)] ?? ''
"""


class HintonGrid(Tiled):
    """White squares are positive, black negative, on gray; area is magnitude over the greatest.

    The greatest is that of all matrices together, so that they can be compared. Colors beside and
    above a matrix say which group (alphabet) a class is of.

    Args:
        title: The heading.
        what: What rows and columns are.
        least: Pixels of a matrix that are enough to see it.
        most: Pixels beyond which it does not grow.
        say: Makes the reading of the matrices, as `reading_of` does.
    """

    def __init__(
        self,
        title: str,
        what: str = "class",
        least: int = 150,
        most: int = 300,
        say: Callable[[Matrices, Sequence[str], Sequence[str], Sequence[str]], str] | None = None,
    ) -> None:
        self._what = what
        self._say = say or reading_of
        self._margin = 0.0
        self._shown: tuple[Matrices, list[str], list[str], list[str], Order] | None = None
        self._placed: tuple[object, ...] = ()
        self._key: list[tuple[float, float, str]] = []
        self.cells = columns("x", "y", "side", "value", "i", "j")
        self.fields = columns("left", "right", "bottom", "top")
        self.strips = models.ColumnDataSource(
            {"left": [], "right": [], "bottom": [], "top": [], "color": [], "group": []}
        )
        self.heads = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self.beside, self.below = (
            models.ColumnDataSource({"x": [], "y": [], "text": []}) for _ in range(2)
        )
        self.names = models.ColumnDataSource({"name": []})
        super().__init__(title, "hinton", least, most)

    def _high(self, side: float) -> float:
        named = self._shown is not None and any(self._shown[1])
        self._head = HEAD * self._type / side if named else 0.0
        self._key = self._written(side)
        self._margin = self._for_names(side)
        return 1 + self._head

    def _for_names(self, side: float) -> float:
        """The share of a tile beside and below its matrix that the classes' names take."""
        if self._shown is None:
            return 0.0
        longest = max((len(shortened(n, LONGEST)) for n in self._shown[2]), default=0)
        share = (LETTER * self._type * longest + 8) / side
        count = len(self._shown[2])
        readable = count and (1 - STRIP - GAP - share) * side / count >= READABLE * self._type
        return share if readable and count <= NAMED else 0.0

    def _above(self) -> float:
        return len({y for _, y, _ in self._key}) * KEY / self.side

    def _written(self, side: float) -> list[tuple[float, float, str]]:
        """Where the groups' names stand, in pixels; nowhere if there are more than colors."""
        names = list(dict.fromkeys(self._groups()))
        if not 1 < len(names) <= len(GROUPS):
            return []
        placed: list[tuple[float, float, str]] = []
        x, y = STRIP * side, 0.0
        for name in names:
            long = SQUARE + 6 + LETTER * self._type * len(name) + 14
            if placed and x + long > self._wide:
                x, y = STRIP * side, y + KEY
            placed.append((x, y, name))
            x += long
        return placed

    def _compose(self, plot: Figure) -> None:
        box = ("left", "right", "bottom", "top")
        plot.quad(*box, source=self.fields, color=FIELD, level="underlay", line_width=0)
        plot.quad(*box, source=self.strips, color="color", line_width=0)
        sign = models.LinearColorMapper(palette=["#000000", "#ffffff"], low=-1e-30, high=1e-30)
        squares = plot.rect("x", "y", "side", "side", source=self.cells, line_width=0,
                            fill_color={"field": "value", "transform": sign})  # fmt: skip
        plot.text("x", "y", "text", source=self.heads, text_color=GRAY, text_font_size="12px",
                  text_baseline="bottom")  # fmt: skip
        small = {"text_color": GRAY, "text_font_size": "11px", "text_baseline": "middle"}
        plot.text("x", "y", "text", source=self.beside, **small)
        plot.text("x", "y", "text", source=self.below, angle=-np.pi / 2, **small)
        named = models.CustomJSHover(args={"source": self.names}, code=_NAME)
        tips = [(self._what, "@i{custom}"), ("with", "@j{custom}"), ("value", "@value{0.0000}")]
        plot.add_tools(
            models.HoverTool(
                renderers=[squares], tooltips=tips, formatters={"@i": named, "@j": named}
            )
        )

    def show(
        self,
        matrices: Matrices,
        heads: Sequence[str],
        names: Sequence[str],
        groups: Sequence[str],
        order: Order | None = None,
    ) -> None:
        """Show matrices; entries that are not finite are left gray.

        Args:
            matrices: Their signed entries.
            heads: A few words above each.
            names: Of the c classes.
            groups: Which group each class is of.
            order: The classes' places from left to right; as they come where None.
        """
        c = matrices.shape[1]
        order = np.arange(c) if order is None else np.asarray(order, int)
        self._shown = (np.asarray(matrices, float), list(heads), list(names), list(groups), order)
        if list(self.names.data["name"]) != list(names):
            self.names.data = {"name": list(names)}
        self._lay(len(matrices))
        self._draw()
        self.describe(self._say(self._shown[0], heads, names, groups))

    def clear(self) -> None:
        super().clear()
        self._shown, self._placed = None, ()
        empty(self.names)
        self._lay(0)

    def _draw(self) -> None:
        if self._shown is None:
            return
        matrices, heads, names, groups, order = self._shown
        q, c = matrices.shape[:2]
        left, top = self._corner(np.arange(q)) + np.array([[STRIP], [self._head + STRIP]])
        cell = (1 - STRIP - GAP - self._margin) / max(c, 1)
        finite = np.where(np.isfinite(matrices), matrices, 0.0)[:, order][:, :, order]
        greatest = np.abs(finite).max(initial=0.0)
        area = np.abs(finite) / greatest if greatest > 0 else finite
        middle = (np.arange(c) + 0.5) * cell
        x, y = left[:, None, None] + middle[None, None, :], top[:, None, None] + middle[:, None]
        i, j = np.meshgrid(order, order, indexing="ij")
        update_source(
            self.cells,
            x=np.broadcast_to(x, finite.shape).ravel(),
            y=np.broadcast_to(y, finite.shape).ravel(),
            side=(0.95 * cell * np.sqrt(area)).ravel(),
            value=finite.ravel(),
            i=np.tile(i.ravel(), q),
            j=np.tile(j.ravel(), q),
        )
        place = (self._wide, q, c, *order, *heads, *names, *groups)
        if place != self._placed:  # what holds names is sent only when it has changed
            self._placed = place
            update_source(
                self.fields, left=left, right=left + c * cell, bottom=top + c * cell, top=top
            )
            self._write(left, top - STRIP, heads)
            self._name([names[k] for k in order], left, top, cell)
            self._color([groups[k] for k in order], left, top, cell)

    def _write(self, x: np.ndarray, y: np.ndarray, heads: list[str]) -> None:
        """The words above the matrices, and the groups' names in the key above all."""
        written = [((a + SQUARE + 6) / self.side, (b + 15) / self.side) for a, b, _ in self._key]
        self.heads.data = {
            "x": [*x, *(a for a, _ in written)],
            "y": [*y, *(b for _, b in written)],
            "text": [*heads, *(name for *_, name in self._key)],
        }

    def _name(self, names: list[str], left: np.ndarray, top: np.ndarray, cell: float) -> None:
        """The classes' names beside and below each matrix, where they can be read."""
        written = [shortened(n, LONGEST) for n in names] if self._margin else []
        middle, end = (np.arange(len(written)) + 0.5) * cell, len(names) * cell + 4 / self.side
        for source, x, y in (
            (self.beside, left[:, None] + end + 0 * middle, top[:, None] + middle),
            (self.below, left[:, None] + middle, top[:, None] + end + 0 * middle),
        ):
            source.data = {"x": x.ravel(), "y": y.ravel(), "text": written * len(left)}

    def _color(self, groups: list[str], left: np.ndarray, top: np.ndarray, cell: float) -> None:
        """Strips beside and above each matrix, a piece for each run of classes of one group."""
        color = {g: GROUPS[k % len(GROUPS)] for k, g in enumerate(dict.fromkeys(self._groups()))}
        ends, runs = [0], []
        for group, run in groupby(groups):
            runs.append(group)
            ends.append(ends[-1] + len(list(run)))
        first, last = np.array(ends[:-1]) * cell, np.array(ends[1:]) * cell
        thick = np.full(len(runs), STRIP * 0.7)
        pieces: list[tuple[np.ndarray, ...]] = []
        for x, y in zip(left, top):
            pieces.append((x + first, x + last, y - 0 * thick, y - thick))
            pieces.append((x - thick, x - 0 * thick, y + last, y + first))
        for a, b, _ in self._key:
            u, v, wide = a / self.side, b / self.side, SQUARE / self.side
            pieces.append(
                tuple(np.array([e]) for e in (u, u + wide, v + 1.3 * wide, v + 0.3 * wide))
            )
        sides = [np.concatenate(side) for side in zip(*pieces)]
        data = dict(zip(("left", "right", "bottom", "top"), sides))
        names = [*runs * (2 * len(left)), *(name for *_, name in self._key)]
        self.strips.data = {**data, "color": [color[n] for n in names], "group": names}

    def _groups(self) -> list[str]:
        return self._shown[3] if self._shown is not None else []


def reading_of(
    matrices: Matrices, heads: Sequence[str], names: Sequence[str], groups: Sequence[str]
) -> str:
    """How many matrices of how many classes, the largest entry, within groups against between."""
    q, c = matrices.shape[:2]
    many = "A matrix" if q == 1 else f"{q} matrices"
    size = np.abs(np.where(np.isfinite(matrices), matrices, 0.0))
    if not size.any():
        return f"{many} of {c} classes, all zeros."
    of = np.array(list(groups))
    same = of[:, None] == of[None, :]
    own = np.eye(c, dtype=bool)
    k, i, j = np.unravel_index(int(np.argmax(size)), size.shape)
    reading = (
        f"{many} of {c} classes; the largest entry is {matrices[k, i, j]:.3g}, in "
        f"{heads[int(k)]}: {names[int(i)]}"
        + (f" with {names[int(j)]}" if i != j else " with itself")
    )
    if (same & ~own).any() and (~same).any():
        within, between = size[:, same & ~own].mean(), size[:, ~same].mean()
        reading += (
            ". The mean size of entries between alphabets is "
            f"{between / max(within, 1e-300):.0%} of "
            "the mean within one"
        )
    return reading + "."

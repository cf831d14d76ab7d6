"""Hinton diagrams of several matrices over the same classes, on one scale, colored by group."""

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

HEAD = 20  # pixels of the text above a matrix
KEY = 20  # pixels of a line of the groups' legend
LETTER, SQUARE = 6.6, 11  # pixels of an average letter and of a group's square in the legend
NAMED, READABLE = 20, 12  # maximum number of named classes; pixels that a name needs
LONGEST = 14  # maximum characters of a name
STRIP, MARGIN = 0.035, 0.05  # as fractions of a tile's width: strip of group colors, margin

_NAME = """
const names = source.data.name
return names[Math.round(value)] ?? ''
"""


class HintonGrid(Tiled):
    """White squares are positive, black negative, on gray; area is relative magnitude.

    The maximum is taken over all matrices, so that they can be compared. Strips at the edges of a
    matrix show the group (alphabet) of each class.

    Args:
        title: The heading.
        what: Singular noun for a row or column.
        min_side: Minimum width of a matrix in pixels.
        max_side: Maximum width of a matrix in pixels.
        say: Returns the text alternative of the matrices, like `reading_of`.
    """

    def __init__(
        self,
        title: str,
        what: str = "class",
        min_side: int = 150,
        max_side: int = 300,
        say: Callable[[Matrices, Sequence[str], Sequence[str], Sequence[str]], str] | None = None,
    ) -> None:
        self._what = what
        self._say = say or reading_of
        self._margin = 0.0
        self._content: tuple[Matrices, list[str], list[str], list[str], Order] | None = None
        self._placed: tuple[object, ...] = ()
        self._key: list[tuple[float, float, str]] = []
        self.cells = columns("x", "y", "side", "value", "i", "j")
        self.fields = columns("left", "right", "bottom", "top")
        self.strips = models.ColumnDataSource(
            {"left": [], "right": [], "bottom": [], "top": [], "color": [], "group": []}
        )
        self.heads = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self.row_names, self.column_names = (
            models.ColumnDataSource({"x": [], "y": [], "text": []}) for _ in range(2)
        )
        self.names = models.ColumnDataSource({"name": []})
        super().__init__(title, "hinton", min_side, max_side)

    def _aspect(self, side: float) -> float:
        named = self._content is not None and any(self._content[1])
        self._head = HEAD * self._type / side if named else 0.0
        self._key = self._legend_positions(side)
        self._margin = self._name_margin(side)
        return 1 + self._head

    def _name_margin(self, side: float) -> float:
        """Return the margin for class names as a fraction of a tile's width; 0 if unreadable."""
        if self._content is None:
            return 0.0
        longest = max((len(shortened(n, LONGEST)) for n in self._content[2]), default=0)
        share = (LETTER * self._type * longest + 8) / side
        count = len(self._content[2])
        readable = count and (1 - STRIP - MARGIN - share) * side / count >= READABLE * self._type
        return share if readable and count <= NAMED else 0.0

    def _head_room(self) -> float:
        return len({y for _, y, _ in self._key}) * KEY / self.side

    def _legend_positions(self, side: float) -> list[tuple[float, float, str]]:
        """Return the groups' names and positions in pixels; none if there are more than colors."""
        names = list(dict.fromkeys(self._groups()))
        if not 1 < len(names) <= len(GROUPS):
            return []
        placed: list[tuple[float, float, str]] = []
        x, y = STRIP * side, 0.0
        for name in names:
            width = SQUARE + 6 + LETTER * self._type * len(name) + 14
            if placed and x + width > self._width:
                x, y = STRIP * side, y + KEY
            placed.append((x, y, name))
            x += width
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
        plot.text("x", "y", "text", source=self.row_names, **small)
        plot.text("x", "y", "text", source=self.column_names, angle=-np.pi / 2, **small)
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
        """Show q matrices; entries that are not finite are left gray.

        Args:
            matrices: Signed entries.
            heads: A short text above each.
            names: Names of the c classes.
            groups: Group of each class.
            order: Permutation of the classes for display; None keeps the given order.
        """
        c = matrices.shape[1]
        order = np.arange(c) if order is None else np.asarray(order, int)
        self._content = (np.asarray(matrices, float), list(heads), list(names), list(groups), order)
        if list(self.names.data["name"]) != list(names):
            self.names.data = {"name": list(names)}
        self._arrange(len(matrices))
        self._draw()
        self.describe(self._say(self._content[0], heads, names, groups))

    def clear(self) -> None:
        super().clear()
        self._content, self._placed = None, ()
        empty(self.names)
        self._arrange(0)

    def _draw(self) -> None:
        if self._content is None:
            return
        matrices, heads, names, groups, order = self._content
        q, c = matrices.shape[:2]
        left, top = self._corner(np.arange(q)) + np.array([[STRIP], [self._head + STRIP]])
        cell = (1 - STRIP - MARGIN - self._margin) / max(c, 1)
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
        layout = (self._width, q, c, *order, *heads, *names, *groups)
        if layout != self._placed:  # sources with names are sent only when they change
            self._placed = layout
            update_source(
                self.fields, left=left, right=left + c * cell, bottom=top + c * cell, top=top
            )
            self._write(left, top - STRIP, heads)
            self._name([names[k] for k in order], left, top, cell)
            self._color([groups[k] for k in order], left, top, cell)

    def _write(self, x: np.ndarray, y: np.ndarray, heads: list[str]) -> None:
        """Set the texts above the matrices and the legend of the groups."""
        written = [((a + SQUARE + 6) / self.side, (b + 15) / self.side) for a, b, _ in self._key]
        self.heads.data = {
            "x": [*x, *(a for a, _ in written)],
            "y": [*y, *(b for _, b in written)],
            "text": [*heads, *(name for *_, name in self._key)],
        }

    def _name(self, names: list[str], left: np.ndarray, top: np.ndarray, cell: float) -> None:
        """Set the class names at the edges of each matrix, if they are readable."""
        written = [shortened(n, LONGEST) for n in names] if self._margin else []
        middle, end = (np.arange(len(written)) + 0.5) * cell, len(names) * cell + 4 / self.side
        for source, x, y in (
            (self.row_names, left[:, None] + end + 0 * middle, top[:, None] + middle),
            (self.column_names, left[:, None] + middle, top[:, None] + end + 0 * middle),
        ):
            source.data = {"x": x.ravel(), "y": y.ravel(), "text": written * len(left)}

    def _color(self, groups: list[str], left: np.ndarray, top: np.ndarray, cell: float) -> None:
        """Set the strips at the edges of each matrix, one piece per run of equal groups."""
        color = {g: GROUPS[k % len(GROUPS)] for k, g in enumerate(dict.fromkeys(self._groups()))}
        bounds, runs = [0], []
        for group, run in groupby(groups):
            runs.append(group)
            bounds.append(bounds[-1] + len(list(run)))
        first, last = np.array(bounds[:-1]) * cell, np.array(bounds[1:]) * cell
        thick = np.full(len(runs), STRIP * 0.7)
        pieces: list[tuple[np.ndarray, ...]] = []
        for x, y in zip(left, top):
            pieces.append((x + first, x + last, y - 0 * thick, y - thick))
            pieces.append((x - thick, x - 0 * thick, y + last, y + first))
        for a, b, _ in self._key:
            u, v, size = a / self.side, b / self.side, SQUARE / self.side
            pieces.append(
                tuple(np.array([e]) for e in (u, u + size, v + 1.3 * size, v + 0.3 * size))
            )
        sides = [np.concatenate(side) for side in zip(*pieces)]
        data = dict(zip(("left", "right", "bottom", "top"), sides))
        names = [*runs * (2 * len(left)), *(name for *_, name in self._key)]
        self.strips.data = {**data, "color": [color[n] for n in names], "group": names}

    def _groups(self) -> list[str]:
        return self._content[3] if self._content is not None else []


def reading_of(
    matrices: Matrices, heads: Sequence[str], names: Sequence[str], groups: Sequence[str]
) -> str:
    """Describe the number and size of the matrices, the largest entry, and mean sizes by group."""
    q, c = matrices.shape[:2]
    count = "A matrix" if q == 1 else f"{q} matrices"
    size = np.abs(np.where(np.isfinite(matrices), matrices, 0.0))
    if not size.any():
        return f"{count} of {c} classes, all zeros."
    group = np.array(list(groups))
    same = group[:, None] == group[None, :]
    diagonal = np.eye(c, dtype=bool)
    k, i, j = np.unravel_index(int(np.argmax(size)), size.shape)
    reading = (
        f"{count} of {c} classes; the largest entry is {matrices[k, i, j]:.3g}, in "
        f"{heads[int(k)]}: {names[int(i)]}"
        + (f" with {names[int(j)]}" if i != j else " with itself")
    )
    if (same & ~diagonal).any() and (~same).any():
        within, between = size[:, same & ~diagonal].mean(), size[:, ~same].mean()
        reading += (
            ". The mean size of entries between alphabets is "
            f"{between / max(within, 1e-300):.0%} of "
            "the mean within one (0% if they shared no function)"
        )
    return reading + "."

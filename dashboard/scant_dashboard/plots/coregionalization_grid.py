"""Hinton diagrams of several matrices over the same classes, on one scale, colored by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import columns, empty, update_source
from scant_dashboard.plots.hinton import FIELD, shortened
from scant_dashboard.plots.theme import GRAY, GROUPS, Figure, models, place_legend_above
from scant_dashboard.plots.tiles import Tiled, at
from scant_dashboard.translate import later, ntr, tr

Matrices = Float[np.ndarray, "q c c"]
Order = Int[np.ndarray, " c"]

HEAD = 20  # pixels of the text above a matrix
LETTER = 6.6  # pixels of an average letter
NAMED, READABLE = 20, 12  # maximum number of named classes; pixels that a name needs
LONGEST = 14  # maximum characters of a name
STRIP, MARGIN = 0.035, 0.05  # as fractions of a tile's width: strip of group colors, margin
THIN = 0.3  # of a strip's width, left empty
# Parts of a tile: strip, cells, margin; downwards, the text above them comes first.
ACROSS, DOWN = 3, 4

BOX = ("left", "right", "bottom", "top")
_NAME = """
const names = source.data.name
return names[Math.round(value)] ?? ''
"""


class HintonGrid(Tiled):
    """White squares are positive, black negative, on gray; area is relative magnitude.

    The maximum is taken over all matrices, so that they can be compared. Strips at the edges of a
    matrix show the group of each class.

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
        what: str = later("class"),
        min_side: int = 150,
        max_side: int = 300,
        say: Callable[[Matrices, Sequence[str], Sequence[str], Sequence[str]], str] | None = None,
    ) -> None:
        self._what = what
        self._say = say or reading_of
        self._placed: tuple[object, ...] = ()
        self.cells = columns("x", "y", "side", "value", "i", "j")
        self.fields = columns(*BOX)
        self.strips = models.ColumnDataSource({n: [] for n in (*BOX, "color", "group")})
        self.heads = models.ColumnDataSource({"x": [], "y": [], "text": []})
        self.row_names, self.column_names = (
            models.ColumnDataSource({"x": [], "y": [], "text": []}) for _ in range(2)
        )
        self.names = models.ColumnDataSource({"name": []})
        super().__init__(title, "hinton", min_side, max_side)

    def _compose(self, plot: Figure) -> None:
        box = self._box()
        plot.quad(**box, source=self.fields, color=FIELD, level="underlay", line_width=0)
        plot.quad(**box, source=self.strips, color="color", line_width=0, legend_field="group")
        place_legend_above(plot)
        plot.legend[0].update(click_policy="none", visible=False)
        sign = models.LinearColorMapper(palette=["#000000", "#ffffff"], low=-1e-30, high=1e-30)
        side = {"field": "side", "transform": self.size}
        color = {"field": "value", "transform": sign}
        squares = plot.rect(**self._point(), width=side, height=side, source=self.cells,
                            line_width=0, fill_color=color)  # fmt: skip
        text = {**self._point(), "text": "text", "text_color": GRAY}
        plot.text(**text, source=self.heads, text_font_size="12px", text_baseline="bottom")
        small = {**text, "text_font_size": "11px", "text_baseline": "middle"}
        self._named = [
            plot.text(**small, source=self.row_names, x_offset=4),
            plot.text(**small, source=self.column_names, y_offset=4, angle=-np.pi / 2),
        ]
        named = models.CustomJSHover(args={"source": self.names}, code=_NAME)
        tips = [(tr(self._what), "@i{custom}"), (tr("with"), "@j{custom}"),
                (tr("value"), "@value{0.0000}")]  # fmt: skip
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
        if list(self.names.data["name"]) != list(names):
            self.names.data = {"name": list(names)}
        self._place(len(matrices), [*heads], [*names], [*groups], order)
        self._draw(np.asarray(matrices, float), order)
        self.describe(self._say(np.asarray(matrices, float), heads, names, groups))

    def clear(self) -> None:
        super().clear()
        self._placed = ()
        empty(self.names)

    def _draw(self, matrices: Matrices, order: Order) -> None:
        q, c = matrices.shape[:2]
        finite = np.where(np.isfinite(matrices), matrices, 0.0)[:, order][:, :, order]
        greatest = np.abs(finite).max(initial=0.0)
        area = np.abs(finite) / greatest if greatest > 0 else finite
        middle, tile = (np.arange(c) + 0.5) / max(c, 1), np.arange(q)[:, None, None]
        x, y = at(tile, 1, middle[None, :], ACROSS), at(tile, 2, middle[:, None], DOWN)
        i, j = np.meshgrid(order, order, indexing="ij")
        update_source(
            self.cells,
            x=np.broadcast_to(x, finite.shape).ravel(),
            y=np.broadcast_to(y, finite.shape).ravel(),
            side=(0.95 * np.sqrt(area) / max(c, 1)).ravel(),
            value=finite.ravel(),
            i=np.tile(i.ravel(), q),
            j=np.tile(j.ravel(), q),
        )

    def _place(
        self, q: int, heads: list[str], names: list[str], groups: list[str], order: Order
    ) -> None:
        """Set all but the squares; sources with names are sent only when they change."""
        layout = (q, *heads, *names, *groups, *order)
        if layout == self._placed or not q:
            return
        self._placed = layout
        named = [shortened(names[k], LONGEST) for k in order] if len(names) <= NAMED else []
        pixels = LETTER * max(map(len, named), default=0) + 8
        tile = [(STRIP, 0, 0), (1 - STRIP - MARGIN, 0, -pixels), (MARGIN, 0, pixels)]
        head = (0, HEAD if any(heads) else 0, 0)
        least = (READABLE * len(named), self._named if named else [])
        self._arrange(q, tile, [head, *tile], least)
        each = np.arange(q)
        left, top = at(each, 1, 0, ACROSS), at(each, 2, 0, DOWN)
        right, bottom = at(each, 1, 1, ACROSS), at(each, 2, 1, DOWN)
        update_source(self.fields, left=left, right=right, bottom=bottom, top=top)
        self.heads.data = {"x": left, "y": at(each, 1, 0, DOWN), "text": heads}
        middle = (np.arange(len(named)) + 0.5) / max(len(named), 1)
        for source, x, y in (
            (self.row_names, (1, 1 + 0 * middle), (2, middle)),
            (self.column_names, (1, middle), (2, 1 + 0 * middle)),
        ):
            source.data = {
                "x": at(each[:, None], *x, ACROSS).ravel(),
                "y": at(each[:, None], *y, DOWN).ravel(),
                "text": named * q,
            }
        self._color(each, [groups[k] for k in order], list(dict.fromkeys(groups)))

    def _color(self, tiles: np.ndarray, groups: list[str], every: list[str]) -> None:
        """Set the strips at the edges of each matrix, one piece per run of equal groups."""
        color = {g: GROUPS[k % len(GROUPS)] for k, g in enumerate(every)}
        runs = [(group, len(list(run))) for group, run in groupby(groups)]
        bounds = np.cumsum([0, *(count for _, count in runs)]) / max(len(groups), 1)
        first, last = bounds[:-1], bounds[1:]
        pieces = []
        for tile in tiles:
            x, y = at(tile, 0, THIN + 0 * first, ACROSS), at(tile, 1, THIN + 0 * first, DOWN)
            pieces.append((at(tile, 1, first, ACROSS), at(tile, 1, last, ACROSS),
                           at(tile, 1, 1 + 0 * first, DOWN), y))  # fmt: skip
            pieces.append((x, at(tile, 0, 1 + 0 * first, ACROSS), at(tile, 2, last, DOWN),
                           at(tile, 2, first, DOWN)))  # fmt: skip
        names = [name for name, _ in runs] * (2 * len(tiles))
        self.strips.data = {
            **dict(zip(BOX, map(np.concatenate, zip(*pieces)))),
            "color": [color[n] for n in names],
            "group": names,
        }
        # With more groups than colors, a legend would tell nothing apart.
        self.figures[0].legend[0].visible = 1 < len(every) <= len(GROUPS)


def reading_of(
    matrices: Matrices, heads: Sequence[str], names: Sequence[str], groups: Sequence[str]
) -> str:
    """Describe the number and size of the matrices, the largest entry, and mean sizes by group."""
    q, c = matrices.shape[:2]
    size = np.abs(np.where(np.isfinite(matrices), matrices, 0.0))
    if not size.any():
        return ntr(
            "A matrix of {classes} classes, all zeros.",
            "{n} matrices of {classes} classes, all zeros.",
            q,
            classes=c,
        )
    group = np.array(list(groups))
    same = group[:, None] == group[None, :]
    diagonal = np.eye(c, dtype=bool)
    k, i, j = np.unravel_index(int(np.argmax(size)), size.shape)
    reading = ntr(
        "A matrix of {classes} classes; the largest entry is {entry:.3g}, in {head}: {pair}.",
        "{n} matrices of {classes} classes; the largest entry is {entry:.3g}, in {head}: {pair}.",
        q,
        classes=c,
        entry=matrices[k, i, j],
        head=heads[int(k)],
        pair=tr("{name} with {other}", name=names[int(i)], other=names[int(j)])
        if i != j
        else tr("{name} with itself", name=names[int(i)]),
    )
    if (same & ~diagonal).any() and (~same).any():
        within, between = size[:, same & ~diagonal].mean(), size[:, ~same].mean()
        reading += " " + tr(
            "The mean size of entries between groups is {share:.0%} of the mean within one "
            "(0% if they shared no function).",
            share=between / max(within, 1e-300),
        )
    return reading

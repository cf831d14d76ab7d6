"""Which study suits a table, and why: a page that is wrong for a table names the right one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scant.studies import entry
from scant.tables.column_kinds import (
    Columns,
    is_class,
    is_dimension,
    is_value,
    other_targets,
    row_numbers,
    survival,
    target,
)
from scant.tables.column_matching import is_identifier, suggest
from scant.tables.error_columns import error_bases
from scant.tables.headers import key
from scant.tables.schema import ColumnPreview
from scant.tables.wide import samples

_MANY_CLASSES = 12  # more are rather characters or species than kinds of cells
_PIXELS = 40  # columns called p0, p1, ... or pixel0 that are an image
_MOST_MAPPED = 3  # values beside a time or a place, which are a map or a series


@dataclass(frozen=True)
class Suit:
    """A study that suits a table.

    Attributes:
        study: Its name.
        reason: The rest of a sentence "this table suits … because".
        target: The column that would be learned; "" where there are several.
    """

    study: str
    reason: str
    target: str = ""

    def sentence(self) -> str:
        """For a page that the table is wrong for."""
        return f"This table suits {entry(self.study).title} because {self.reason}."


def of_images(folders: int) -> Suit:
    """The study that suits a ZIP with images in so many folders."""
    study = "omniglot" if folders > _MANY_CLASSES else "mitosis"
    return Suit(study, f"it has images in {folders} folder{'s' * (folders > 1)}")


def suits(columns: Sequence[ColumnPreview], rows: int) -> list[Suit]:
    """The studies that suit a table, the best first; none where there is nothing to learn.

    Args:
        columns: Of the file, as `inspect_table` previews them.
        rows: How many it has.
    """
    whole: Columns = {c.name: c for c in columns}
    names = list(whole)
    errors = error_bases(names)
    free = {
        n: c for n, c in whole.items()
        if c.kind != "empty" and not is_identifier(n) and n not in errors
    }  # fmt: skip
    counted = row_numbers(free)
    free = {n: c for n, c in free.items() if n not in counted}
    numbers = [n for n, c in free.items() if c.kind == "number"]
    classes = [n for n, c in free.items() if is_class(c)]
    values = [n for n, c in free.items() if is_value(c)]
    either = {*classes, *values}
    name, sure = target(free, [n for n in free if n in either])
    textual = [n for n in classes if free[n].kind == "text"]
    ends = [next(iter(free), ""), *list(free)[-1:]]
    dims = [n for n, c in free.items() if c.kind == "date" or is_dimension(n)]
    words = [n for n, c in free.items() if c.kind == "text"]
    if not sure and len(words) == len(textual) == 1 and textual[0] in ends and not dims:
        name = textual[0]
    found = _by_form(whole, free, numbers, free[name].levels if name in classes else 0)
    others = [n for n in [*numbers, *textual] if n not in dims and n != name]
    mapped = dims and (name not in classes or free[name].kind == "number") and not sure
    if mapped and 0 < len([n for n in numbers if n not in dims]) <= _MOST_MAPPED:
        value = name if name not in dims else numbers[-1]
        found.append(Suit("aggregation", f"{value!r} is a value at a time or a place", value))
    if name in classes and (others or dims):
        found += _by_class(name, free[name], numbers, rows)
    elif name and (others or dims):
        left = other_targets(free, name)
        beside = f", beside {left[0]!r}" if left else ""
        found.append(Suit("redshift", f"{name!r} is a number to predict from others{beside}", name))
    return found


def _by_form(whole: Columns, free: Columns, numbers: Sequence[str], n_classes: int) -> list[Suit]:
    """Studies whose tables have a form of their own; of several views only two classes are told."""
    found = []
    names = list(whole)
    genes = suggest(names, entry("genes").table, whole)
    if {"output", "replica", "x", "y"} <= set(genes.values()):
        value = next(n for n, to in genes.items() if to == "y")
        found.append(Suit("genes", "it has outputs measured over time in replicas", value))
    textual = [n for n, c in free.items() if c.kind == "text"]
    timed = [n for n in numbers if not is_dimension(n)]
    if len(timed) > 2 and textual and 2 * len(timed) > len(names) and samples(timed):
        found.append(Suit("genes", "its columns are samples taken at several times"))
    if any(c.samples for c in whole.values()) and len(timed) > 2:
        found.append(Suit("genes", "its rows are samples taken at several times"))
    if {"x", "replica"} <= set(genes.values()) and "y" not in genes.values() and len(timed) > 1:
        found.append(Suit("genes", "it has a column for each output, over time and in replicas"))
    boxes = suggest(names, entry("aggregation").table, whole)
    ends = [n for n, to in boxes.items() if to.endswith(("_lo", "_hi"))]
    ranges = all(("min" in key(n) or "max" in key(n)) for n in ends)
    values = [n for n in numbers if n not in ends]
    dated = any(c.kind == "date" for c in free.values())  # then they are ranges of a day
    placed = any(is_dimension(boxes[n][:-3]) for n in ends)
    # A range beside many numbers is one input of several: of boxes only one value is learned.
    if ends and not (ranges and (dated or (len(values) > _MOST_MAPPED and not placed))):
        value, _ = target(free, values)
        found.append(Suit("aggregation", "its rows are averages between two bounds", value))
    both = survival(free)
    if both:
        reason = f"{both[0]!r} is a time until {both[1]!r}, which not all have reached"
        found.append(Suit("multiview", reason, both[0]))
    views = {n.partition(".")[0] for n in numbers if "." in n and not n[0].isdigit()}
    if len(views) > 1 and n_classes <= 2:
        found.append(
            Suit("multiview", f"its columns come in views: {', '.join(sorted(views)[:4])}")
        )
    return found


def _by_class(name: str, column: ColumnPreview, numbers: Sequence[str], rows: int) -> list[Suit]:
    """Studies of classes."""
    pixels = len([n for n in numbers if key(n)[:1] == "p" and key(n)[-1:].isdigit()]) >= _PIXELS
    if column.levels == 2 and 2 * column.missing > rows:
        return [Suit("clamp", f"most rows of {name!r} have no label yet", name)]
    if column.levels > _MANY_CLASSES or (pixels and column.levels > 5):
        return [Suit("omniglot", f"{name!r} has many classes ({column.levels})", name)]
    return [Suit("mitosis", f"{name!r} holds {column.levels} classes", name)]

"""The columns that predictions add to a table: their catalog, and the data dictionary of a file.

Every study predicts a value (`of_values`) or a class (`of_classes`); its `Entry.predicted` lists
what it adds, and a test holds it to that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from scant.studies.base import ArraySpec, Entry, array_specs
from scant.tables.schema import TableSchema

ALSO = "predicted_"  # before the name of an added column that the table has already
ROLE = "role"
AS_GIVEN = "as given"
INTERVALS = (50, 80, 95)  # per cent, of the central intervals
_LEARNED = ("y", "target", "y or time")  # units of what is learned, in the studies' catalogs

OUTSIDE = ArraySpec(
    "outside", "n", "1", "1 where the row is farther from the training rows than about 99 of 100 "
    "rows of the same distribution: its prediction is an extrapolation",
)  # fmt: skip
_ROLE = ArraySpec(
    ROLE, "n", "word", "use of the row in this run: train, validation or test; pool: the expert "
    "could be asked for its label; empty: none. After a fit on everything all are train",
)  # fmt: skip


@dataclass(frozen=True)
class FilePrediction:
    """What came of a file that was predicted.

    Attributes:
        content: A ZIP of the predictions and of columns.md.
        rows: How many were predicted.
        outside: Those that lie outside the training data.
        notes: What was inferred of the table, or looks suspicious.
        totals: Predicted parts against observed totals, where the rows make up polygons of a map.
    """

    content: bytes
    rows: int
    outside: int
    notes: tuple[str, ...]
    totals: pd.DataFrame | None = None


def of_values(unit: str, own: str, new: str = "a new observation") -> tuple[ArraySpec, ...]:
    """The catalog of predicted values.

    Args:
        unit: Of the value.
        own: The columns by which studies differ, as `array_specs` reads them.
        new: What the intervals are of.
    """
    ends = [
        ArraySpec(
            f"{end}{level}", "n", unit,
            f"{which} end of the interval that holds {new} with a probability of {level}%",
        )
        for level in INTERVALS
        for end, which in (("lo", "lower"), ("hi", "upper"))
    ]  # fmt: skip
    return (*array_specs(own.replace("[y]", f"[{unit}]")), *ends, OUTSIDE)


def of_classes(doubt: bool = True) -> tuple[ArraySpec, ...]:
    """The catalog of predicted classes.

    Args:
        doubt: Whether the model tells what more data would remove of its doubt.
    """
    own = array_specs("""
        label (n) [word] class that is predicted (`predicted` where the table has labels)
        probability (n) [probability] of that class
        p(class) (n) [probability] of each class, a column each
    """)
    more = array_specs("""
        entropy (n) [nats] uncertainty about the class: entropy of the probabilities
        information (n) [nats] the part of it that more data would remove
    """)
    return (*own, *(more if doubt else ()), OUTSIDE)


def data_dictionary(
    entry: Entry,
    given: Sequence[str],
    every: Iterable[str],
    target: str = "",
    further: Iterable[ArraySpec] = (),
) -> str:
    """What the columns of predictions are, as Markdown: `columns.md`.

    Args:
        entry: The study that predicts.
        given: The table's own columns.
        every: All columns of the output.
        target: The learned column, where a setting names it.
        further: Columns that are added beside those of the study's catalog.
    """
    specs = {spec.name: spec for spec in (*entry.predicted, _ROLE, *further)}
    own = {column.name: column.doc for column in entry.table.columns}
    if target and (setting := entry.table.target_setting):  # z may be a band, beside a z_spec
        own.pop(entry.settings.param[setting].default, None)
        own[target] = "what is predicted"
    lines = []
    for name in every:
        if name in given:
            unit, text = _unit(name), f"{AS_GIVEN}{_said(own.get(name, ''))}"
        else:
            spec = _spec(name, specs)
            unit, text = spec.unit, spec.doc
            if unit in _LEARNED:
                header = target or unit
                unit = _unit(header) if _unit(header) != AS_GIVEN else f"that of {header}"
            if name.startswith("p(") and name.endswith(")"):
                text = f"probability of the class {name[2:-1]}"
        lines.append(f"| {_cell(name)} | {_cell(text)} | {_cell(unit)} |")
    head = f"# Columns of these predictions\n\nStudy: {entry.title} (`{entry.name}`).\n"
    rule = (
        "\nColumns of the table come first, unchanged. A column that predictions add and whose "
        f"name the table has already begins with `{ALSO}`.\n"
    )
    table = ["", "| name | meaning | unit |", "| --- | --- | --- |", *lines]
    return head + rule + "\n".join(table) + "\n"


def added_names(taken: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Names for added columns: their own, with `predicted_` in front where the table has those.

    A class beside the table's own labels is called `predicted`, as it always was.
    """
    have, names = {str(name) for name in taken}, []
    for name in wanted:
        free = "predicted" if name == "label" and name in have else name
        while free in have:
            free = ALSO + free
        have.add(free)
        names.append(free)
    return names


def plain(table: TableSchema, columns: Sequence[str]) -> list[str]:
    """The columns of a table that people read: all but pixels and encoded images."""
    pixels = re.compile(r"p\d+|image")
    return [c for c in columns if not (table.images and pixels.fullmatch(c))]


def _spec(name: str, specs: dict[str, ArraySpec]) -> ArraySpec:
    while name not in specs and name.startswith(ALSO):
        name = name.removeprefix(ALSO)
    if name == "predicted":
        name = "label"
    if name.startswith("p(") and "p(class)" in specs:
        name = "p(class)"
    return specs.get(name, ArraySpec(name, "n", "", ""))


def _unit(name: str) -> str:
    """The unit that a header has in brackets; `AS_GIVEN` where it has none."""
    match = re.search(r"[\[(]([^\[\]()]+)[\])]\s*$", name)
    return match[1] if match else AS_GIVEN


def _said(doc: str) -> str:
    return f": {doc}" if doc else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

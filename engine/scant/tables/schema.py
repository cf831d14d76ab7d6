"""Types of tables: the schema of a study, a table as read, the preview of an upload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

COVARIATE = "covariate_"  # what columns beside boxes or polygons begin with that are no dimension
READING = "reading"  # where a frame's attributes and a study's metadata have `Table.reading`
RowNumbers = Sequence[int] | Int[np.ndarray, " n"]  # what messages call the rows of a table


@dataclass(frozen=True)
class Column:
    """A column that a schema names.

    Attributes:
        name: Its header.
        kind: "number", "label" (a class or group, read as text), "text" or "geometry" (polygons and
            points, see `scant.tables.geometry`).
        required: Must the table have it?
        missing: May cells be empty?
        doc: What it holds, with its unit.
        target: Is it what is learned, which a table to predict need not have?
        beside: The target that it belongs to: without that one there is nothing to learn.
        minimum_levels: A label with fewer different values cannot be fitted.
        aliases: Other names it is known by, tried where a table lacks `name`.
        only_with: A column without which a table's headers do not mean this one.
        positive: Must a number be above zero?
        levels: The only words that a label may be; any where there is none.
        synonyms: Other words for levels, in lower case, each with the level that it means.
        note: What is worth knowing of a table that has the column.
        without: What is worth knowing of a table to fit that lacks it.
        default: The label of every row where a table lacks the column.
        dates: Whether dates in it are days, and times hours.
        guessed: Whether a column of another name may be taken for it, with a question.
    """

    name: str
    kind: str = "number"
    required: bool = True
    missing: bool = False
    doc: str = ""
    target: bool = False
    beside: str = ""
    minimum_levels: int = 1
    aliases: tuple[str, ...] = ()
    only_with: str = ""
    positive: bool = False
    levels: tuple[str, ...] = ()
    synonyms: tuple[tuple[str, str], ...] = ()
    note: str = ""
    without: str = ""
    default: str = ""
    dates: bool = False
    guessed: bool = True


@dataclass(frozen=True)
class TableSchema:
    """The table a study takes: named columns, and what further columns mean.

    Attributes:
        columns: The columns with a meaning of their own.
        features: Whether every further numeric column is a feature.
        errors: Whether `<feature>_err` holds the standard deviation of a feature, and beside it
            `<feature>_lim` a limit than which it is fainter (`scant.tables.limits`).
        band: What of several quantities a feature measures, by its name ("u" of "dered_u"; "" where
            that is not known), by which errors and limits of another name find it.
        order: Features in the order in which they are shown and learned from.
        aside: A pattern of names' words, joined by "_", that no feature has: positions, flags.
        boxes: Whether an input `<dim>` may come as `<dim>_lo` and `<dim>_hi`.
        missing: Whether an empty feature cell is a missing value (else it is an error).
        one_target: Whether one of the columns that are learned must be there, whichever it is.
        minimum_rows: Fewer cannot be fitted.
        target_setting: The setting that names the target column, where the user may choose it;
            the first of `columns` is then the target.
        images: Whether a ZIP of images is taken in place of a CSV; features are then pixels, of
            which constant ones are kept.
        turned: Whether images that are light on the whole are turned over, so that what is dark
            is 1; otherwise their gray stays as it is.
        cut: Whether images are photographs, which are cut into patches, a row each, in place of
            being brought to one size.
        rates: Whether birth rates as the Human Fertility Database has them are taken as they are.
        replicas: Whether wide tables of outputs in replicas, with a column for each sample or for
            each output, are turned long.
        views: Whether features come in views, `<view>.<feature>`.
        maximum_columns: More are refused before they are read.
    """

    columns: tuple[Column, ...] = ()
    features: bool = False
    errors: bool = False
    band: Callable[[str], str] | None = None
    order: Callable[[Sequence[str]], list[str]] = list
    aside: str = ""
    boxes: bool = False
    missing: bool = False
    one_target: bool = False
    minimum_rows: int = 20
    target_setting: str = ""
    images: bool = False
    turned: bool = True
    cut: bool = False
    rates: bool = False
    replicas: bool = False
    views: bool = False
    maximum_columns: int = 25_000

    def with_target(self, name: str | None) -> TableSchema:
        """This schema with its target flagged, and called `name` where the user may choose it."""
        if not self.target_setting or not self.columns:
            return self
        own = self.columns[0].name
        first = replace(self.columns[0], name=name or own, target=True, guessed=name in (None, own))
        return replace(self, columns=(first, *self.columns[1:]))

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the columns that can be learned by themselves."""
        return tuple(c.name for c in self.columns if c.target and not c.beside)


@dataclass(frozen=True)
class Table:
    """A table that was read and checked against a schema.

    Attributes:
        frame: Numbers as float64, labels as text, NaN where missing, in the original row order;
            `attrs` carries `notes` and `sha256`, so that whoever fits it can say them.
        features: The columns of `frame` that the schema does not name, errors left out.
        ignored: Text of the columns that were left out, for the same rows.
        rows: The row of each line as a spreadsheet shows it (the header is row 1).
        notes: What was inferred, dropped or looks suspicious, a sentence each.
        sha256: Hash of names and values, the same for the same data in another file.
        reading: What else a file with the same headers is to be read with: keywords of `Reading`,
            and the levels of text columns that became inputs; ready for JSON. `frame.attrs` has
            it, too.
    """

    frame: pd.DataFrame
    features: tuple[str, ...]
    ignored: pd.DataFrame
    rows: Int[np.ndarray, " n"]
    notes: tuple[str, ...]
    sha256: str
    reading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnPreview:
    """A column of an upload: what it holds, before anything is decided.

    Attributes:
        name: Its header.
        kind: "number", "date", "text" or "empty".
        missing: Empty cells.
        minimum: Of numbers.
        maximum: Of numbers.
        levels: Different values.
        distinct: Whether no two rows have the same one.
        whole: Whether all numbers are whole.
        counts_rows: Whether each number is by one greater than that of the row above.
        samples: Whether its words name samples taken at several times ("24h_rep1").
        unit: What the header has in brackets.
    """

    name: str
    kind: str
    missing: int
    minimum: float | None = None
    maximum: float | None = None
    levels: int = 0
    distinct: bool = False
    whole: bool = False
    counts_rows: bool = False
    samples: bool = False
    unit: str = ""


@dataclass(frozen=True)
class Question:
    """What a reader cannot know, with its own guess.

    Attributes:
        about: The keyword of `Reading` that takes the answer: "part", "decimal", "missing_codes";
            or "mapping", and then the answer is a header, or several, and what they are mapped to
            is `column`; "": no column is.
        text: The question.
        options: Answers, each with what it means.
        guess: The answer that is taken for the preview.
        column: Of the schema, where `about` is "mapping".
    """

    about: str
    text: str
    options: tuple[tuple[Any, str], ...]
    guess: Any
    column: str = ""


@dataclass(frozen=True)
class Preview:
    """What the upload wizard shows of a file.

    Attributes:
        names: Headers, in order.
        head: The first rows as text.
        columns: What each column holds.
        n_rows: Data rows.
        mapping: Suggested schema name of each column of the file; "" leaves it out.
        problems: Sentences; where there is none the table can be fitted.
        warnings: Sentences on what was inferred or looks suspicious.
        absent: Names that the table must have and lacks; the first problem then says so.
        features: Columns that would be learned from, by their names in the schema.
        levels: Text columns of which inputs would be made, by their names in the schema.
        counts: What `counts` says of the table, as far as it could be read.
        questions: What is unsure, at most one question each on the part of the file, the style of
            its numbers, codes for missing values, and columns.
    """

    names: tuple[str, ...] = ()
    head: tuple[tuple[str, ...], ...] = ()
    columns: tuple[ColumnPreview, ...] = ()
    n_rows: int = 0
    mapping: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()


def counts(frame: pd.DataFrame, schema: TableSchema) -> dict[str, dict[str, int]]:
    """What an estimate of a fit's cost is told of a table beside its size.

    Returns:
        By column: rows of each value, where it is a label of the schema (a task, a class), nothing
        of others.
    """
    result: dict[str, dict[str, int]] = {str(name): {} for name in frame.columns}
    for column in schema.columns:
        if column.kind == "label" and column.name in frame:
            values = frame[column.name].dropna().astype(str)
            rows = values[values != ""].value_counts()
            result[column.name] = {str(value): int(n) for value, n in rows.items()}
    return result

"""Types of tables: schema of a study, checked table, preview of an upload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

COVARIATE = "covariate_"  # prefix of inputs beside boxes or polygons
READING = "reading"  # key of `Table.reading` in a frame's attributes and a study's metadata
RowNumbers = Sequence[int] | Int[np.ndarray, " n"]  # row numbers for messages


@dataclass(frozen=True)
class Column:
    """Column with a meaning for a study.

    Attributes:
        name: Header.
        kind: "number", "label" (a class or group, read as text), "text" or "geometry" (polygons and
            points, see `scant.tables.geometry`).
        required: True if a table must have the column.
        missing: True if cells may be empty.
        doc: Description with the unit.
        target: True for a target, which a table to predict may lack.
        beside: Target that the column refers to, such as that of its standard errors.
        minimum_levels: Minimum number of distinct values of a label.
        aliases: Alternative headers for a table without `name`.
        only_with: Column that must be present for this one to be recognized.
        positive: True if numbers must be positive.
        levels: Allowed values of a label; empty for any.
        synonyms: Pairs of a word in lower case and the level it means.
        note: Note on tables with the column.
        without: Note on tables to fit without the column.
        default: Label of all rows in a table without the column.
        dates: True to convert dates to days and times to hours.
        guessed: True if a column with another header may be suggested, with a question.
        labels: Column that takes the labels of classes, if numbers may be such labels.
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
    labels: str = ""

    @property
    def question(self) -> str:
        """Question which column of a file is this one."""
        if self.target and not self.beside:
            what = "holds the classes to learn" if self.kind == "label" else "is to be learned"
            return f"Which column {what}?"
        what, _, such = self.doc.partition(";")[0].partition(":")
        says = what.split()[:1] in (["which"], ["what"], ["whose"], ["where"], ["how"])
        examples = f" ({such.strip()})" if such else ""
        return f"Which column {'says' if says else 'is'} {what or self.name}{examples}?"


@dataclass(frozen=True)
class TableSchema:
    """Columns that a study takes and the treatment of further columns.

    Attributes:
        columns: Columns with a meaning for the study.
        features: True if all other numeric columns are features.
        errors: True if `<feature>_err` is the standard deviation of a feature and `<feature>_lim`
            an upper limit on its brightness (`scant.tables.limits`).
        band: Function from the name of a feature to its photometric band ("u" for "dered_u", "" if
            unknown), to match errors and limits with other names.
        order: Function that sorts features for display and training.
        aside: Regular expression on the words of a name, joined by "_", that excludes columns from
            the features, such as positions and flags.
        boxes: True if an input `<dim>` may be given as `<dim>_lo` and `<dim>_hi`.
        missing: True if an empty feature cell is a missing value instead of an error.
        one_target: True if any one of the targets suffices.
        minimum_rows: Minimum number of rows for a fit.
        target_setting: Setting with the name of the target column, if the user may choose it; the
            target is then the first of `columns`.
        class_setting: Setting with the classes to tell from the others, if two are learned.
        images: True to take a ZIP of images instead of a table; features are then pixels, or views
            of features of each image (`views`), and constant ones are kept.
        turned: True to invert images with a light background, so that 1 is dark.
        cut: True to cut photographs into patches, one row each, instead of resizing them.
        rates: True to take birth rates in the format of the Human Fertility Database.
        replicas: True to convert wide tables with a column for each sample or output to long ones.
        views: True if features are grouped into views, `<view>.<feature>`.
        maximum_columns: Maximum number of columns.
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
    class_setting: str = ""
    images: bool = False
    turned: bool = True
    cut: bool = False
    rates: bool = False
    replicas: bool = False
    views: bool = False
    maximum_columns: int = 25_000

    def with_target(self, name: str | None) -> TableSchema:
        """Return a copy with the target flagged and, if the user may choose it, named `name`."""
        if not self.target_setting or not self.columns:
            return self
        own = self.columns[0].name
        first = replace(self.columns[0], name=name or own, target=True, guessed=name in (None, own))
        return replace(self, columns=(first, *self.columns[1:]))

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets."""
        return tuple(c.name for c in self.columns if c.target and not c.beside)


@dataclass(frozen=True)
class Table:
    """Table that was checked against a schema.

    Attributes:
        frame: Numbers as float64, labels as text, NaN where missing, in the original row order;
            `attrs` has `notes`, `sha256` and `reading`.
        features: Columns of `frame` that are not in the schema, without their errors.
        ignored: Text of the columns that were left out, with the rows of `frame`.
        rows: Row numbers in a spreadsheet (the header is row 1).
        notes: Sentences on inferred, dropped or suspicious data.
        sha256: Hash of names and values, independent of the file format.
        reading: Keywords of `Reading` and levels of text columns to read another file with the same
            headers, as JSON types.
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
    """Summary of a column of an upload.

    Attributes:
        name: Header.
        kind: "number", "date", "text" or "empty".
        missing: Number of empty cells.
        minimum: Minimum of numbers.
        maximum: Maximum of numbers.
        levels: Number of distinct values.
        distinct: True if no value occurs twice.
        whole: True if all numbers are integers.
        counts_rows: True if each number is greater by one than the number in the row above.
        samples: True if the words are names of samples at several times, such as "24h_rep1".
        unit: Unit in brackets in the header.
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
    """Question to the user with a default answer.

    Attributes:
        about: Keyword of `Reading` for the answer: "part", "decimal", "missing_codes" and others.
            For "mapping" the answer is the header or headers to map to `column`, "" for none;
            for a setting (`TableSchema.class_setting`) its value.
        text: Question.
        options: Pairs of an answer and its description.
        guess: Answer used for the preview.
        column: Name in the schema if `about` is "mapping".
    """

    about: str
    text: str
    options: tuple[tuple[Any, str], ...]
    guess: Any
    column: str = ""


@dataclass(frozen=True)
class Preview:
    """Preview of a file in the upload wizard.

    Attributes:
        names: Headers in the order of the file.
        head: First rows as text.
        columns: Summaries of the columns.
        n_rows: Number of data rows.
        mapping: Suggested name in the schema by header; "" to leave a column out.
        problems: Sentences on problems that prevent a fit.
        warnings: Sentences on inferred or suspicious data.
        absent: Required names that the table lacks; the first problem names them.
        features: Names of the features after the mapping.
        levels: Levels of text columns to use as inputs, by name after the mapping.
        counts: Result of `counts` for the rows that could be read.
        refusal: Reason why a table without problems cannot be fitted with the present settings.
        questions: At most one question each on the part of the file, decimal mark, codes for
            missing values and columns.
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
    refusal: str = ""


def counts(frame: pd.DataFrame, schema: TableSchema) -> dict[str, dict[str, int]]:
    """Count the rows of each label, to estimate the cost of a fit.

    Returns:
        For each column the number of rows by value; empty unless the schema has it as a label.
    """
    result: dict[str, dict[str, int]] = {str(name): {} for name in frame.columns}
    for column in schema.columns:
        if column.kind == "label" and column.name in frame:
            values = frame[column.name].dropna().astype(str)
            rows = values[values != ""].value_counts()
            result[column.name] = {str(value): int(n) for value, n in rows.items()}
    return result

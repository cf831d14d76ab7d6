"""Table schemas, and the reading of users' CSVs (being built)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column that a schema names.

    `kind` is "number", "label" (a class or group, read as text) or "text".
    """

    name: str
    kind: str = "number"
    required: bool = True
    missing: bool = False  # may cells be empty?
    doc: str = ""


@dataclass(frozen=True)
class TableSchema:
    """The table a study takes: named columns, and what further columns mean.

    Attributes:
        columns: The columns with a meaning of their own.
        features: Whether every further numeric column is a feature.
        errors: Whether `<feature>_err` holds the standard deviation of a feature.
        boxes: Whether an input `<dim>` may come as `<dim>_lo` and `<dim>_hi`.
        missing: Whether an empty feature cell is a missing value (else it is an error).
        minimum_rows: Fewer cannot be fitted.
        target_setting: The setting that names the target column, where the user may choose it.
        images: Whether a ZIP of images is taken in place of a CSV.
    """

    columns: tuple[Column, ...] = ()
    features: bool = False
    errors: bool = False
    boxes: bool = False
    missing: bool = False
    minimum_rows: int = 20
    target_setting: str = ""
    images: bool = False

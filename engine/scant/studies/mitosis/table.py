"""Tables of objects of a few classes, one of them rare: dividing cells among others.

A row is one object to classify: its `label`, optionally its `group` (a slide, a patient: training
and held-out rows then have no group in common), and numbers. Columns `p0, p1, …` are pixels of an
image, row by row; other columns are then no features. An empty cell is a missing value. `TABLE` is
the schema by which the common reader checks files; `LabeledImages.of` converts tables to arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from scant.studies.aggregation.thinning import Seeded, thinned
from scant.studies.omniglot.table import UNKNOWN, columns_of
from scant.studies.split import SPLIT
from scant.tables.as_finite import finite
from scant.tables.schema import Column, RowNumbers, TableSchema

TABLE = TableSchema(
    columns=(
        Column(
            "label",
            "label",
            target=True,
            minimum_levels=2,
            doc="the class: mitosis, other",
            aliases=("class", "category", "diagnosis", "target"),
        ),
        Column(
            "group",
            "label",
            required=False,
            doc="where the row is from, a slide or a patient; groups are held out whole",
            aliases=("slide", "patient", "case"),
        ),
        SPLIT,
    ),
    features=True,
    missing=True,
    images=True,
    turned=False,
    minimum_rows=8,
)


@dataclass(frozen=True)
class LabeledImages:
    """Rows to classify, as arrays in the order of the table's rows.

    Attributes:
        classes: Names, in order of first appearance.
        label: Index into `classes`; `UNKNOWN` if the table has no label.
        groups: Names of the groups; empty if the table has no such column.
        group: Index into `groups`; 0 if there are none.
        x: Features, or pixels row by row; NaN where missing.
        features: Names of the columns of `x`.
    """

    classes: list[str]
    label: Int[np.ndarray, " n"]
    groups: list[str]
    group: Int[np.ndarray, " n"]
    x: Float[np.ndarray, "n d"]
    features: list[str]

    def __len__(self) -> int:
        return len(self.label)

    @property
    def pixels(self) -> bool:
        """True if the features are the pixels of images."""
        return len(self.features) > 3 and self.features == [
            f"p{i}" for i in range(len(self.features))
        ]

    def take(self, rows: Int[np.ndarray, " m"]) -> LabeledImages:
        """Return some of the rows."""
        return replace(self, label=self.label[rows], group=self.group[rows], x=self.x[rows])

    def frame(self) -> pd.DataFrame:
        """Return the table, the inverse of `of`. Unknown labels are empty cells."""
        text_columns = {"label": [None if c < 0 else self.classes[c] for c in self.label]}
        if self.groups:
            text_columns["group"] = [self.groups[g] for g in self.group]
        numbers = pd.DataFrame(self.x, columns=self.features)
        return pd.concat([pd.DataFrame(text_columns, dtype=object), numbers], axis=1)

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        classes: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        *,
        name: str = "the table",
        rows: RowNumbers | None = None,
    ) -> LabeledImages:
        """Convert a table, such as `read_table(file, TABLE).frame`, to arrays.

        Args:
            frame: Columns as in `TABLE`; `label` and `group` may be absent.
            classes: Classes of a trained model; others in the table are `UNKNOWN`. None: those of
                the table.
            features: Feature columns. None: the pixels, or all columns not in the schema.
            name: Name of the table in messages.
            rows: Row number of each line in messages; None: counted from 0.

        Raises:
            BadInput: A column is absent, pixels have a gap, a cell is infinite or no number.
        """
        row_numbers = np.arange(len(frame)) if rows is None else np.asarray(rows)
        labels, label = _levels(frame, "label", classes)
        groups, group = _levels(frame, "group", None)
        inputs = frame.drop(columns="group", errors="ignore")
        columns = columns_of(inputs, name) if features is None else list(features)
        group_index = np.maximum(group, 0)
        return cls(
            labels,
            label,
            groups,
            group_index,
            finite(frame, columns, name, row_numbers, gaps=True),
            columns,
        )


def breast_cancer(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Features of nuclei of 569 breast tumors (Street, Wolberg & Mangasarian 1993).

    The table is part of scikit-learn: no download. The rarer class is malignant, 212 rows; the
    setting `imbalance` thins it out.

    Returns:
        `label` (malignant, benign) and 30 features, in random order.
    """
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = [str(n).replace(" ", "_") for n in bunch.feature_names]
    label = [str(bunch.target_names[t]) for t in bunch.target]
    frame = pd.DataFrame(bunch.data, columns=names)
    frame.insert(0, "label", pd.Series(label, dtype=object))
    order = np.random.default_rng([settings.data_seed, 21]).permutation(len(frame))
    return thinned(frame.iloc[order].reset_index(drop=True), rows)


def _levels(
    frame: pd.DataFrame, column: str, given: Sequence[str] | None
) -> tuple[list[str], Int[np.ndarray, " n"]]:
    """Distinct values of a column, and each row's index among them."""
    if column not in frame:
        return list(given or ()), np.full(len(frame), UNKNOWN, dtype=np.int64)
    labels = [None if pd.isna(w) else str(w) for w in frame[column]]
    result = (
        list(dict.fromkeys(w for w in labels if w is not None)) if given is None else list(given)
    )
    index_of = {name: i for i, name in enumerate(result)}
    indices = [UNKNOWN if w is None else index_of.get(w, UNKNOWN) for w in labels]
    return result, np.array(indices, dtype=np.int64)

"""Rows with features in views, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from scant.errors import BadInput
from scant.tables.column_matching import listed


@dataclass(frozen=True)
class MultiviewData:
    """Rows with features in views, as arrays in the order of the table's rows.

    Attributes:
        task: "classification", "regression" or "survival".
        names: Names of the views, in order of first appearance.
        features: Columns, view by view.
        view: Index into `names` of each column.
        x: Values of the features, in the table's units.
        target: 1 for the positive class and 0 for another, the value, or the time; NaN where
            unknown.
        classes: Names of classes 0 and 1; empty for other tasks.
        event: False where a time is censored.
        patient: Index into `patients`; by default each row is a patient.
        patients: Names of the patients.
        group: Index into `groups`, of rows that are held out together: the patient of survival
            times; by default each row is a group.
        groups: Names of the groups.
    """

    task: str
    names: list[str]
    features: list[str]
    view: Int[np.ndarray, " f"]
    x: Float[np.ndarray, "n f"]
    target: Float[np.ndarray, " n"]
    classes: list[str]
    event: Bool[np.ndarray, " n"]
    patient: Int[np.ndarray, " n"]
    patients: list[str]
    group: Int[np.ndarray, " n"]
    groups: list[str]

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Int[np.ndarray, " m"]) -> MultiviewData:
        """Return some of the rows."""
        return replace(
            self,
            x=self.x[rows],
            target=self.target[rows],
            event=self.event[rows],
            patient=self.patient[rows],
            group=self.group[rows],
        )

    def only(self, names: Sequence[str]) -> MultiviewData:
        """Return the rows with some of the views, in the table's order.

        Raises:
            BadInput: A view does not exist, or none is named.
        """
        unknown = [name for name in names if name not in self.names]
        if unknown or not names:
            message = f"no view {unknown[0]!r}" if unknown else "no view named"
            raise BadInput(
                f"Setting 'views': there is {message}; choose among {listed(self.names)}."
            )
        views = [name for name in self.names if name in set(names)]
        selected = np.isin(self.view, [self.names.index(name) for name in views])
        return replace(
            self,
            names=views,
            features=[f for f, keep in zip(self.features, selected) if keep],
            view=np.unique(self.view[selected], return_inverse=True)[1],
            x=self.x[:, selected],
        )

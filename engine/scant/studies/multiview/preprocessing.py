"""Inputs of the multiview models: standardized features of views, or their components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.studies.multiview.data import MultiviewData


@dataclass(frozen=True)
class ViewTransforms:
    """Standardization of views, optionally with principal components.

    Attributes:
        names: Names of the views.
        columns: Columns of each view.
        centre, width: Mean and standard deviation of these columns over the training rows.
        basis: Principal directions of each view; empty if its features are the inputs.
    """

    names: list[str]
    columns: list[Int[np.ndarray, "_"]]
    centre: list[Float[np.ndarray, "_"]]
    width: list[Float[np.ndarray, "_"]]
    basis: list[Float[np.ndarray, "_ _"]]

    @classmethod
    def at(
        cls, observed: MultiviewData, names: list[str], rows: np.ndarray, components: int
    ) -> ViewTransforms:
        """Fit to rows, with `components` principal components per view; 0: all features."""
        columns = [np.flatnonzero(observed.view == observed.names.index(name)) for name in names]
        centre, width, basis = [], [], []
        for selected in columns:
            x = observed.x[np.ix_(rows, selected)]
            spread = x.std(0)
            centre.append(x.mean(0))
            width.append(np.where(spread > 1e-9, spread, 1.0))
            basis.append(_directions((x - centre[-1]) / width[-1], components))
        return cls(names, columns, centre, width, basis)

    def of(self, x: Float[np.ndarray, "n f"], device: torch.device) -> list[Tensor]:
        """Transform rows to inputs of the models, a tensor `"n d"` per view."""
        results = []
        for selected, centre, width, basis in zip(
            self.columns, self.centre, self.width, self.basis
        ):
            z = (x[:, selected] - centre) / width
            results.append(torch.as_tensor(z @ basis if basis.size else z).to(device))
        return results

    def tensors(self) -> dict[str, Tensor]:
        """Return tensors for `from_tensors`."""
        parts = {"columns": self.columns, "centre": self.centre, "width": self.width}
        return {
            f"{kind}.{i}": torch.as_tensor(values)
            for kind, per_view in (*parts.items(), ("basis", self.basis))
            for i, values in enumerate(per_view)
        }

    @classmethod
    def from_tensors(cls, names: list[str], tensors: Mapping[str, Tensor]) -> ViewTransforms:
        """Inverse of `tensors`."""
        parts = [
            [tensors[f"{kind}.{i}"].cpu().numpy() for i in range(len(names))]
            for kind in ("columns", "centre", "width", "basis")
        ]
        return cls(names, *parts)


def _directions(z: Float[np.ndarray, "n d"], components: int) -> Float[np.ndarray, "e k"]:
    if not components or components >= z.shape[1]:
        return np.empty((0, 0))
    _, _, rows = np.linalg.svd(z, full_matrices=False)
    largest = np.take_along_axis(rows, np.abs(rows).argmax(1)[:, None], 1)
    return np.asarray((rows * np.sign(largest))[:components].T)

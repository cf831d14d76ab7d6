"""The inputs of the multiview study: some views, by their features or by components."""

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
    """Standardization of views, and their principal components where those are the inputs.

    Attributes:
        names: The views.
        columns: The columns of each.
        centre, width: Mean and standard deviation of those columns over the training rows.
        basis: Principal directions of each view; empty where its features are the inputs.
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
        """Fit the transforms of views to some rows, with so many components of each; 0: all."""
        columns = [np.flatnonzero(observed.view == observed.names.index(name)) for name in names]
        centre, width, basis = [], [], []
        for own in columns:
            x = observed.x[np.ix_(rows, own)]
            spread = x.std(0)
            centre.append(x.mean(0))
            width.append(np.where(spread > 1e-9, spread, 1.0))
            basis.append(_directions((x - centre[-1]) / width[-1], components))
        return cls(names, columns, centre, width, basis)

    def of(self, x: Float[np.ndarray, "n f"], device: torch.device) -> list[Tensor]:
        """Rows as the models take them, a tensor `"n d"` of each view."""
        results = []
        for own, centre, width, basis in zip(self.columns, self.centre, self.width, self.basis):
            z = (x[:, own] - centre) / width
            results.append(torch.as_tensor(z @ basis if basis.size else z).to(device))
        return results

    def tensors(self) -> dict[str, Tensor]:
        """What `from_tensors` needs to give the same transforms again."""
        parts = {"columns": self.columns, "centre": self.centre, "width": self.width}
        return {
            f"{kind}.{i}": torch.as_tensor(values)
            for kind, all_of in (*parts.items(), ("basis", self.basis))
            for i, values in enumerate(all_of)
        }

    @classmethod
    def from_tensors(cls, names: list[str], tensors: Mapping[str, Tensor]) -> ViewTransforms:
        """The preprocessing with these tensors."""
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

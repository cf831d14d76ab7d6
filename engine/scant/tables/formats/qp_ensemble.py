"""Writing of densities as qp ensembles, a format of photometric redshift tools, with h5py.

The HDF5 files for `qp.read` have the groups `meta` (name and version of the parameterization),
`data` (parameters of each row) and `ancil` (further columns). qp is not required. Numbers have
single precision, that is 60 bytes for five Gaussians.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

_CHUNK = 8192  # maximum rows of a chunk
_INTEGER = r"-?(?:0|[1-9]\d{0,17})"  # text that is unchanged by conversion to an integer and back


class MixtureWriter:
    """Writer of Gaussian mixtures (`mixmod` of qp) in blocks of rows, with constant memory.

    Args:
        path: Path of the new file.

    Attributes:
        rows: Number of rows written.
    """

    def __init__(self, path: Path) -> None:
        import h5py

        self._file, self.rows = h5py.File(path, "w"), 0
        meta = self._file.create_group("meta")
        meta["pdf_name"], meta["pdf_version"] = np.array([b"mixmod"]), np.array([0])
        self._data, self._ancil = (self._file.create_group(name) for name in ("data", "ancil"))

    def __enter__(self) -> MixtureWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(
        self,
        weights: Float[np.ndarray, "n k"],
        means: Float[np.ndarray, "n k"],
        stds: Float[np.ndarray, "n k"],
        ancil: Mapping[str, Shaped[np.ndarray, " n"]],
    ) -> None:
        """Append rows.

        Args:
            weights: Weights of the k components; k must be the same in all calls.
            means: Means of the components.
            stds: Standard deviations, positive even for zero weights since qp divides by them.
            ancil: Further columns by name: floats, integers, or text as bytes.
        """
        for name, part in (("weights", weights), ("means", means), ("stds", stds)):
            self._append(self._data, name, part.astype(np.float32))
        for name, cells in ancil.items():
            self._append(self._ancil, name, cells)
        self.rows += len(weights)

    def _append(self, group: Any, name: str, cells: np.ndarray) -> None:
        chunk = min(_CHUNK, max(len(cells), 1))
        shape = cells.shape[1:]
        if name not in group:
            group.create_dataset(
                name, (0, *shape), cells.dtype, maxshape=(None, *shape), chunks=(chunk, *shape)
            )
        kind = np.promote_types(group[name].dtype, cells.dtype)
        if kind != group[name].dtype:
            self._widen(group, name, kind)
        rows = group[name]
        rows.resize(self.rows + len(cells), axis=0)
        rows[self.rows :] = cells.astype(kind)

    def _widen(self, group: Any, name: str, kind: np.dtype) -> None:
        """Convert a dataset to a wider dtype, such as longer text."""
        old = group[name]
        group.move(name, "narrow")
        new = group.create_dataset(name, old.shape, kind, maxshape=old.maxshape, chunks=old.chunks)
        for start in range(0, len(old), _CHUNK):
            new[start : start + _CHUNK] = old[start : start + _CHUNK].astype(kind)
        del group["narrow"]


def identifiers(column: pd.Series) -> Shaped[np.ndarray, " n"]:
    """Convert identifiers to integers, or to text as bytes if they are not integers."""
    if pd.api.types.is_float_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    text = column.astype(object).where(column.notna(), "").astype(str)
    if text.str.fullmatch(_INTEGER).all():
        return text.to_numpy(dtype=object).astype(np.int64)
    return np.strings.encode(text.to_numpy(dtype=object).astype(np.str_), "utf-8")

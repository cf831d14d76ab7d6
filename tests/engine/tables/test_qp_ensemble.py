"""Ensembles of qp: what h5py alone writes, `qp.read` opens."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from scant.tables.formats import qp_ensemble
from scant.tables.formats.qp_ensemble import MixtureWriter, identifiers


def written(path: Path, sizes: list[int], names: list[np.ndarray]) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    parts: list[list[np.ndarray]] = [[], [], []]
    with MixtureWriter(path) as file:
        for size, ids in zip(sizes, names, strict=True):
            rows = generator.uniform(0.1, 1.0, (3, size, 5))
            rows[0] /= rows[0].sum(1, keepdims=True)
            file.add(rows[0], rows[1], rows[2], {"object_id": ids, "zmode": rows[1, :, 0]})
            for part, own in zip(parts, rows, strict=True):
                part.append(own)
        assert file.rows == sum(sizes)
    return [np.concatenate(part) for part in parts]


def test_qp_reads_what_was_written_in_pieces(tmp_path: Path) -> None:
    qp = pytest.importorskip("qp", reason="the extra 'astro' is not installed")
    path = tmp_path / "x.hdf5"
    w, m, s = written(path, [7, 1, 5], [np.arange(7), np.array([7]), np.arange(8, 13)])
    read = qp.read(str(path))
    assert (read.npdf, read.gen_class.name) == (13, "mixmod")
    for name, own in (("weights", w), ("means", m), ("stds", s)):
        np.testing.assert_allclose(read.objdata[name], own, rtol=2e-7)
    np.testing.assert_array_equal(read.ancil["object_id"], np.arange(13))
    np.testing.assert_allclose(read.ancil["zmode"], m[:, 0], rtol=1e-6)
    grid = np.linspace(-1, 2, 7)
    away = (grid[None, :, None] - m[:, None]) / s[:, None]
    own = (w[:, None] * np.exp(-0.5 * away**2) / s[:, None]).sum(2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(read.pdf(grid), own, rtol=1e-5)
    parts = [part for _, _, part in qp.iterator(str(path), 6)]
    assert [part.npdf for part in parts] == [6, 6, 1]
    again = tmp_path / "again.hdf5"
    read.write_to(str(again))
    with h5py.File(path) as ours, h5py.File(again) as theirs:
        for group in ("meta", "data", "ancil"):
            assert set(ours[group]) == set(theirs[group])
        for name in ours["meta"]:
            assert ours["meta"][name].dtype == theirs["meta"][name].dtype
            np.testing.assert_array_equal(ours["meta"][name][:], theirs["meta"][name][:])


def test_identifiers_that_grow_are_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qp_ensemble, "_CHUNK", 2)
    path = tmp_path / "x.hdf5"
    pieces = [["12", "587722981742084097"], ["J12", "ü-longer than all before it"], ["x"]]
    names = [identifiers(pd.Series(piece)) for piece in pieces]
    assert [part.dtype.kind for part in names] == ["i", "S", "S"]
    written(path, [2, 2, 1], names)
    with h5py.File(path) as file:
        told = [cell.decode() for cell in file["ancil"]["object_id"][:]]
        assert set(file["ancil"]) == {"object_id", "zmode"}
    assert told == [cell for piece in pieces for cell in piece]


def test_identifiers_keep_their_digits() -> None:
    whole = identifiers(pd.Series([587722981742084097, 2]))
    assert (whole.dtype, whole[0]) == (np.int64, 587722981742084097)
    assert identifiers(pd.Series(["0012", "7"])).tolist() == [b"0012", b"7"]
    assert identifiers(pd.Series(["a", None])).tolist() == [b"a", b""]
    assert identifiers(pd.Series([1.5, np.nan]))[0] == 1.5

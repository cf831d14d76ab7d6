"""Data of figures: written by a run, read and arranged for drawing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.reproduce import figure_files, runner
from scant.studies.figure_data import CURVES, POINTS, FigureData, entries
from scant.studies.reproduction import Experiment, Run, Score

B = np.array([[[4.0, -1.0, 0.25], [-1.0, 1.0, 0.0], [0.25, 0.0, 2.0]], -2 * np.eye(3)])


def test_a_run_leaves_the_data_of_a_figure_beside_its_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = entries(dict(zip(("B3", "B7"), B)), ["1", "2", "1"], ["a", "a", "b"])
    experiment = Experiment("first", "drawn", "draws")
    results = [Score(experiment, "GP", "F1", 0.5), FigureData("X1 Figure 2.3", rows)]
    runs = [Run("first, GP", lambda: results)]
    monkeypatch.setattr(runner, "_module", lambda study: None)
    monkeypatch.setattr(runner, "_runs", lambda *_: iter(runs))
    table, faults = runner.reproduce(["genes"], out=tmp_path, show=lambda *_: None, log=print)
    assert not faults
    assert list(table["ours"].dropna()) == [0.5]
    files = [file.name for file in (tmp_path / "figures").iterdir()]
    assert files == ["x1_figure_2.3.csv"]

    folder = tmp_path / "figures"
    monkeypatch.setattr(figure_files, "package_file", lambda *parts: folder / parts[-1])
    stored = figure_files.matrices(figure_files.read("X1 Figure 2.3"))
    assert (stored.heads, stored.names) == (["B3", "B7"], ["1", "2", "1"])
    assert stored.groups == ["a", "a", "b"]
    assert stored.entries == pytest.approx(B)


def test_curves_of_replicas_are_arranged_by_output_and_replica() -> None:
    cells = [("a", "1"), ("a", "2"), ("b", "2")]
    curves = pd.DataFrame(
        [(*cell, x, k + x, 0.1, 0.2) for k, cell in enumerate(cells) for x in (0.0, 0.5)],
        columns=CURVES,
    )
    points = pd.DataFrame([("b", "2", 0.3, 7.0, 1), ("a", "1", 0.4, 8.0, 0)], columns=POINTS)
    data = figure_files.replica_curves(pd.concat([curves, points], ignore_index=True))
    assert (data.outputs, data.replicas) == (["a", "b"], [["1", "2"], ["2"]])
    assert list(data.grid) == [0.0, 0.5]
    expected = np.array([[[0.0, 0.5], [1.0, 1.5]], [[2.0, 2.5], [np.nan, np.nan]]])
    assert np.array_equal(data.mean, expected, equal_nan=True)
    assert np.array_equal(data.std_y, np.where(np.isnan(expected), np.nan, 0.2), equal_nan=True)
    assert (list(data.output), list(data.replica)) == ([1, 0], [0, 0])
    assert (list(data.y), list(data.held_out)) == ([7.0, 8.0], [True, False])


def test_methods_named_as_pairs_are_a_symmetric_matrix() -> None:
    pairs = [("a and a", 1.0), ("a and b", 2.0), ("b and b", 3.0)]
    results = pd.DataFrame(
        [("B", *pair) for pair in pairs], columns=["experiment", "method", "ours"]
    )
    data = figure_files.pairs(results)
    assert data.names == data.groups == ["a", "b"]
    assert data.entries.tolist() == [[[1.0, 2.0], [2.0, 3.0]]]

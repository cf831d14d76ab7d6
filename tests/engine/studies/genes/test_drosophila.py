"""Replicas that are measured and simulated: what downloads must look like, sizes, covariances."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies.genes import cmu_mocap, drosophila, simulate
from scant.studies.genes.settings import GenesSettings
from scant.studies.genes.table import TABLE, of
from scant.tables.read import read_frame
from tests.paths import REAL_DATA


def answer(names: tuple[str, ...] = drosophila.FOUR, more: int = 0) -> bytes:
    rng = np.random.default_rng(0)
    rows = [*names, *(f"gene{i}" for i in range(more))]
    return "".join(
        ",".join([name, *(f"{v:.6f}" for v in rng.normal(3, 1, 56))]) + "\n" for name in rows
    ).encode()


def folder(name: str) -> Path:
    found = Path(os.environ.get("SCANT_REAL_DATA", REAL_DATA)) / name
    if not found.is_dir():
        pytest.skip(f"SCANT_REAL_DATA names no folder {name}")
    return found


def test_four_genes_of_an_answer() -> None:
    table = drosophila.read_four(answer(more=3), "drosophila")
    data = of(table)
    assert data.outputs == list(drosophila.FOUR)
    assert [int((data.replica[data.output == 0] == r).sum()) for r in range(8)] == [
        8, 8, 8, 8, 10, 5, 4, 5,
    ]  # fmt: skip
    per_gene = table.groupby("output")["y"]
    np.testing.assert_allclose(per_gene.mean(), 0, atol=1e-12)
    np.testing.assert_allclose(per_gene.std(ddof=0), 1)


def test_many_genes_are_always_the_same() -> None:
    data = answer(more=400)
    first, again = (drosophila.read_many(data, "drosophila200") for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert first["output"].nunique() == 200
    assert len(first) == 11_200
    flat = answer() + b"still" + b",2.5" * 56 + b"\n"
    assert "still" not in set(drosophila.read_many(flat, "drosophila200")["output"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<html>busy</html>", "no table of genes"),
        (b"", "no table of genes"),
        (answer()[:-30], "cut short"),
        (answer().replace(b",3.", b",x.", 1), "no numbers"),
        (answer(("CG12723", "CG13196")), "lacks the gene CG13627"),
    ],
)
def test_answers_that_are_not_the_data(data: bytes, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        drosophila.read_four(data, "drosophila")


def test_the_check_data_has_the_same_samples() -> None:
    table = drosophila.read_folder(folder("gene_kalinka2010"))
    assert list(dict.fromkeys(table["output"])) == list(drosophila.FOUR)
    mine = table[table["output"] == "Osi15"]
    assert list(zip(mine["replica"], mine["x"])) == drosophila.SAMPLES
    np.testing.assert_allclose(table.groupby("output")["y"].std(ddof=0), 1)
    many = drosophila.read_folder(folder("gene_kalinka2010"), "genes200_long.parquet")
    assert many["output"].nunique() == 200
    with pytest.raises(BadInput, match=r"no file five\.csv"):
        drosophila.read_folder(folder("gene_kalinka2010"), "five.csv")


def test_motion_capture() -> None:
    run = cmu_mocap.read(folder("mocap_cmu") / "subject09_centred.npz", cmu_mocap.RUN, replicas=6)
    data = of(run)
    assert len(data.outputs) == 15
    assert len(data.samples) == 6
    assert len(run) == 15 * 6 * 100
    np.testing.assert_allclose(run.groupby("output")["y"].std(ddof=0), 1)
    walk = cmu_mocap.read(folder("mocap_cmu") / "subject07.npz", cmu_mocap.WALK, frames=200, seed=1)
    assert set(walk["replica"]) == {"01", "02", "09", "10", "11"}
    with pytest.raises(BadInput, match="none of the joints tail"):
        cmu_mocap.read(folder("mocap_cmu") / "subject07.npz", ("tail",))


def test_motion_capture_needs_its_file(tmp_path: Path) -> None:
    made = {"channels": np.array(["arm_0", "leg_0"]), "trial_03": np.zeros((9, 2))}
    made["trial_03"][:, 0] = np.arange(9)
    np.savez(tmp_path / "toy.npz", **made)
    toy = cmu_mocap.read(tmp_path / "toy.npz", ("arm", "leg"), frames=5)
    assert set(toy["output"]) == {"arm_0"}  # the leg never moves
    assert len(toy) == 5
    with pytest.raises(BadInput, match=r"no file none\.npz"):
        cmu_mocap.read(tmp_path / "none.npz", ("arm",))


def test_all_trials_have_the_same_frames(tmp_path: Path) -> None:
    trials = {f"trial_{n:02}": np.arange(40.0)[:n, None] for n in (30, 40)}
    np.savez(tmp_path / "toy.npz", channels=np.array(["arm_0"]), **trials)
    for same in (True, False):
        toy = cmu_mocap.read(tmp_path / "toy.npz", ("arm",), frames=10, same=same)
        frames = toy["y"].groupby(toy["replica"]).apply(lambda y: tuple(y.round(9)))  # y: the frame
        assert (frames.nunique() == 1) == same


@pytest.mark.parametrize(
    ("generator", "replicas", "held"),
    [(simulate.first, 3, 750), (simulate.second, 4, 500)],
)
def test_the_published_sizes(generator: object, replicas: int, held: int) -> None:
    frame = generator(GenesSettings())  # type: ignore[operator]
    data = of(read_frame(frame, TABLE).frame)
    assert len(data.outputs) == 50
    assert {len(names) for names in data.replicas} == {replicas}
    assert len(data) == 50 * replicas * 10
    assert data.test.sum() == held
    pd.testing.assert_frame_equal(frame, generator(GenesSettings()))  # type: ignore[operator]
    other = generator(GenesSettings(data_seed=1))  # type: ignore[operator]
    assert not np.allclose(frame["y"], other["y"])


@pytest.mark.slow
def test_the_published_covariance() -> None:
    """Moments over many draws: at one point of one output, over replicas, over outputs."""
    draws = np.array(
        [
            simulate.synthetic(seed, outputs=2, replicas=2, points=1)["y"].to_numpy()
            for seed in range(3000)
        ]
    )  # columns: output 1 replica 1, 1 2, 2 1, 2 2; inputs are drawn anew with every seed
    inputs = np.array(
        [
            simulate.synthetic(seed, outputs=2, replicas=2, points=1)["x"].to_numpy()
            for seed in range(3000)
        ]
    )
    covariance = draws.T @ draws / len(draws)
    assert covariance[0, 0] == pytest.approx(1.12, abs=0.1)  # k_g + k_f + noise
    assert covariance[0, 1] == pytest.approx(0.1, abs=0.07)  # only g is shared by replicas
    lag = np.sqrt(3) * np.abs(inputs[:, 0] - inputs[:, 2])
    kernel = np.exp(-1.0) * np.mean((1 + lag) * np.exp(-lag))  # k_H between (0, 0) and (1, 1)
    assert covariance[0, 2] == pytest.approx(1.1 * kernel, abs=0.07)
    assert covariance[0, 3] == pytest.approx(0.1 * kernel, abs=0.07)


def test_the_demonstration_lacks_replicas_and_lengths_differ() -> None:
    frame = simulate.demo(GenesSettings())
    data = of(read_frame(frame, TABLE).frame)
    assert data.outputs == list(simulate.GENES)
    assert data.samples == list(simulate.EMBRYOS)
    held = set(zip(frame["output"][data.test], frame["replica"][data.test]))
    assert held == set(simulate.MISSING)
    lengths = frame.groupby("replica").size() // len(simulate.GENES)
    assert sorted(lengths) == [5, 5, 6, 8, 8, 10]
    assert len(simulate.demo(GenesSettings(), 100)) == 100

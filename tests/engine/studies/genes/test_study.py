"""The genes study: what it makes of a table, and what it answers once it is fitted."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from scant.errors import BadInput
from scant.events import Note, Report
from scant.studies.genes import simulate
from scant.studies.genes.settings import MODELS
from scant.studies.genes.study import Study
from scant.training.loop import train
from tests.engine.studies import studying
from tests.engine.studies.studying import run, value

CPU = torch.device("cpu")
settings = partial(studying.settings, "genes", n_inducing_inputs=36, max_steps=40)


@pytest.fixture(scope="module")
def genes() -> pd.DataFrame:
    return simulate.demo(settings())


@pytest.fixture(scope="module")
def fitted(genes: pd.DataFrame) -> tuple[Study, Report]:
    study = Study(settings(max_steps=60), genes, CPU)
    return study, run(study)


def test_what_is_hidden_is_not_learnt_from(genes: pd.DataFrame) -> None:
    study = Study(settings(hidden="gene B/embryo 1, */embryo 6"), genes, CPU)
    observed = study.observed
    names = np.array([observed.replicas[d][r] for d, r in zip(observed.output, observed.replica)])
    hidden = (names == "embryo 6") | (genes["output"] == "gene B") & (names == "embryo 1")
    assert not study.train[hidden].any()
    assert study.test[hidden].all()
    assert study.test[genes["test"] == 1].all()
    assert len(study.data.y) == study.train.sum() == len(genes) - study.test.sum()


def test_a_share_is_kept_and_the_rest_neither_learnt_nor_scored(genes: pd.DataFrame) -> None:
    whole, part = (Study(settings(keep=share), genes, CPU) for share in (1.0, 0.5))
    assert part.train.sum() == pytest.approx(0.5 * whole.train.sum(), abs=6)
    assert not (part.train & ~whole.train).any()
    assert np.array_equal(part.test, whole.test)
    assert len(part.metadata["observed"]["x"]) == part.train.sum() + part.test.sum()


def test_each_output_is_scaled_by_what_is_learnt_of_it(genes: pd.DataFrame) -> None:
    stretched = genes.assign(
        y=np.where(genes["output"] == "gene A", 1000 * genes["y"] + 5, genes["y"])
    )
    plain, wide = (
        Study(settings(model="hgp", max_steps=15), table, CPU) for table in (genes, stretched)
    )
    assert torch.allclose(plain.data.y, wide.data.y)
    reports = [run(study) for study in (plain, wide)]
    for name in ("NMSE", "NLPD"):
        assert value(reports[0], name) == pytest.approx(value(reports[1], name), rel=1e-4)
    mine = reports[0].arrays["test_output"] == 0
    means = [report.arrays["test_mean"][mine] for report in reports]
    assert means[1] == pytest.approx(1000 * means[0] + 5, rel=1e-4)


@pytest.mark.slow
def test_missing_replicas_come_back_within_honest_bands(fitted: tuple[Study, Report]) -> None:
    _, report = fitted
    assert value(report, "NMSE") < 0.06
    assert value(report, "NLPD") < 0
    arrays = report.arrays
    assert len(arrays["test_y"]) == 26
    y, mean, std = (arrays[f"test_{name}"] for name in ("y", "mean", "std_y"))
    inside = np.abs(y - mean) <= 1.96 * std
    assert inside.mean() >= 0.85
    assert value(report, "coverage of the 95% interval") == pytest.approx(100 * inside.mean())
    pairs = set(zip(arrays["test_output"].tolist(), arrays["test_replica"].tolist()))
    assert pairs == {(0, 1), (2, 3), (3, 0)}


@pytest.mark.slow
def test_the_other_models_stand_beside_it_on_the_same_rows(
    genes: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scant.studies.genes.report.FIT_STEPS", 15)
    study = Study(settings(model="hgp", baselines=True, n_inducing_inputs=8), genes, CPU)
    report = run(study)
    methods = list(dict.fromkeys(m.method for m in report.metrics))
    assert methods == ["this run", *(v for k, v in MODELS.items() if k != "hgp")]
    for method in methods:
        assert np.isfinite(value(report, "NMSE", method))
    assert value(report, "NMSE", "pooled GP") > 0.6  # genes that are not alike
    assert report.arrays["compare_mean"].shape == (7, 6, 64)
    own = study.posterior.curves([study.posterior.output(study.metadata["shown"][0])])
    assert not np.allclose(report.arrays["compare_mean"][0], own["mean"][0])


def test_exact_models_are_left_out_where_rows_are_many(
    genes: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scant.studies.genes.models.MOST_ROWS", 20)
    monkeypatch.setattr("scant.studies.genes.report.FIT_STEPS", 2)
    study = Study(settings(baselines=True, max_steps=3), genes, CPU)
    report = run(study)
    assert [m.method for m in report.metrics if m.name == "NMSE"] == [
        "this run",
        "LVMOGP",
        "HGPInd",
    ]
    assert sum("left out of the comparison" in note for note in report.notes) == 5
    assert any(note.startswith("DHGP is left out") for note in report.notes)


def test_rows_to_predict_are_answered_in_their_order(fitted: tuple[Study, Report]) -> None:
    study, _ = fitted
    table = pd.DataFrame(
        {
            "output": ["gene C", "gene A", "gene A"],
            "replica": ["embryo 4", "a new one", "embryo 2"],
            "x": [7.0, 9.0, 9.0],
        },
        index=[5, 3, 9],
    )
    told = study.predict(table)
    assert list(told.index) == [5, 3, 9]
    assert (told["std_y"] > told["std"]).all()
    new = study.explore("new", output="gene A")
    assert told["mean"].iloc[1] == pytest.approx(np.interp(9, new["grid"], new["mean"]), abs=0.02)
    assert told["std"].iloc[1] > told["std"].iloc[2]  # that one's other genes were measured
    with pytest.raises(BadInput, match="row 3: the model was not trained on 'gene Q'"):
        study.predict(table.assign(output=["gene A", "gene Q", "gene A"]))


@pytest.mark.slow
def test_a_sample_that_only_other_outputs_have_is_known() -> None:
    table = simulate.demo(settings())
    without = table[(table["output"] != "gene A") | (table["replica"] != "embryo 2")]
    study = Study(settings(max_steps=60), without.drop(columns="test"), CPU)
    run(study)
    assert "embryo 2" not in study.metadata["replicas"][0]
    query = table[(table["output"] == "gene A") & (table["replica"] == "embryo 2")]
    known, new = (study.predict(query.assign(replica=r)) for r in ("embryo 2", "another"))
    assert known["std"].mean() < 0.8 * new["std"].mean()
    errors = [np.abs(told["mean"] - query["y"]).mean() for told in (known, new)]
    assert errors[0] < errors[1]


def test_a_replica_that_is_hidden_comes_back(fitted: tuple[Study, Report]) -> None:
    study, _ = fitted
    kept = {k: v.clone() for k, v in study.model.state_dict().items()}
    told = study.explore("hide", output="gene B", replica="embryo 3")
    assert told["nmse"][0] < 0.2
    assert 0.7 * len(told["y"]) <= told["inside"][0] <= len(told["y"])
    assert told["after_std_f"].mean() > told["before_std_f"].mean()
    before, after = (
        np.abs(told["y"] - np.interp(told["x"], told["grid"], told[f"{when}_mean"])).mean()
        for when in ("before", "after")
    )
    assert before < after
    assert all(torch.equal(v, study.model.state_dict()[k]) for k, v in kept.items())
    # What was never learned from looks the same without it, but for a few more steps of training.
    missing = study.explore("hide", output="gene A", replica="embryo 2")
    assert missing["after_mean"] == pytest.approx(missing["before_mean"], abs=0.15)


def test_curves_are_given_with_their_points(fitted: tuple[Study, Report]) -> None:
    study, report = fitted
    told = study.explore("curves", outputs=["gene F", "gene A"])
    assert told["mean"][1] == pytest.approx(report.arrays["mean"][0])
    mine = told["seen_output"] == 1
    assert mine.sum() == (study.observed.output == 0).sum()
    assert told["seen_test"][mine].sum() == 8


def test_outputs_with_fewer_replicas_end_in_nothing() -> None:
    table = simulate.demo(settings())
    fewer = table[(table["output"] != "gene D") | table["replica"].isin(["embryo 2", "embryo 3"])]
    study = Study(settings(model="hgp"), fewer, CPU)
    study.start_restart(0, 0, None)
    mean = study.snapshot()["mean"]
    assert np.isnan(mean[3, 2:]).all()
    assert np.isfinite(mean[3, :2]).all()


def test_the_only_replica_learnt_from_cannot_be_hidden(genes: pd.DataFrame) -> None:
    others = ", ".join(f"gene E/embryo {i}" for i in range(2, 7))
    study = Study(settings(model="hgp", hidden=others), genes, CPU)
    study.start_restart(0, 0, None)
    with pytest.raises(BadInput, match="Nothing of 'gene E' would be left"):
        study.explore("hide", output="gene E", replica="embryo 1")


def test_an_output_that_is_wholly_held_out_is_named(genes: pd.DataFrame) -> None:
    table = genes.assign(test=genes["test"].where(genes["output"] != "gene F", 1))
    study = Study(settings(), table, CPU)
    notes = [e.text for e in train(study) if isinstance(e, Note)]
    assert any(note.startswith("Outputs without training rows: gene F.") for note in notes)


def test_a_gene_of_two_rows_is_not_scored_and_the_report_says_so(genes: pd.DataFrame) -> None:
    mine = genes["output"] == "gene B"
    few = pd.concat([genes[~mine], genes[mine][:2]]).assign(test=0)
    few.loc[few["replica"] == "embryo 6", "test"] = 1
    report = run(Study(settings(max_steps=2), few.reset_index(drop=True), CPU))
    assert (
        "gene B is not scored: outputs with 2 rows or fewer have no held-out rows." in report.notes
    )
    whole = run(Study(settings(max_steps=2), genes, CPU))
    assert not any("not scored" in note for note in whole.notes)

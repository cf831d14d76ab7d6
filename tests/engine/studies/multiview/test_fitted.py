"""What the multiview study has learned and answers once it is fitted, of each task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from scant.errors import BadInput
from scant.evaluate.compare import compared
from scant.evaluate.scores import SCORES
from scant.events import Report
from scant.studies.multiview.study import Study
from tests.engine.studies.multiview.views import CPU, settings
from tests.engine.studies.studying import run, value

pytestmark = pytest.mark.slow

TABLES = ("classes", "values", "lives")


@pytest.fixture(scope="module")
def fitted(request: pytest.FixtureRequest) -> dict[str, tuple[Study, Report]]:
    """A run with every comparison, of each task."""
    result = {}
    for kind in TABLES:
        study = Study(
            settings(max_steps=40, baselines=True, repeats=3, bound="published", log_target="no"),
            request.getfixturevalue(kind),
            CPU,
        )
        result[kind] = study, run(study)
    return result


# --- what was learned -------------------------------------------------------------------------


def test_classes_are_learnt(fitted: dict[str, tuple[Study, Report]]) -> None:
    study, report = fitted["classes"]
    rate = study.data.observed.target[study.data.test].mean()
    assert value(report, "F1") > 0.75
    prior = rate * np.log(rate) + (1 - rate) * np.log(1 - rate)
    assert value(report, "mean log probability (nats)") > prior
    share = dict(zip(study.metadata["neurons"], report.arrays["influence"]))
    assert share["noise"] < 0.1
    assert sum(share.values()) == pytest.approx(1)
    told, truth = report.arrays["test_predicted"], report.arrays["test_truth"]
    assert truth.tolist() == study.data.observed.target[study.data.test].tolist()
    named = told >= 0.5
    right = (named & (truth == 1)).sum()
    assert value(report, "precision") == pytest.approx(right / named.sum())
    at_half = report.arrays["pr"][0][:, 50]
    assert at_half == pytest.approx([0.5, value(report, "precision"), value(report, "recall")])
    assert report.arrays["reliability"][2].sum() == len(truth)


def test_what_more_data_would_remove_is_as_sampled(
    fitted: dict[str, tuple[Study, Report]],
) -> None:
    study, report = fitted["classes"]
    a = report.arrays
    views = study.data.transforms.of(study.data.observed.x[study.data.test], study.device)
    mean, variance = study.learner.model.latent(views)
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(20_000, len(mean), generator=generator, dtype=torch.float64)
    wide = (1 + study.learner.model.noise.detach()).sqrt()
    p = torch.special.ndtr((mean + variance.sqrt() * draws) / wide)

    def entropy(p: torch.Tensor) -> torch.Tensor:
        return torch.special.entr(p) + torch.special.entr(1 - p)

    whole = entropy(p.mean(0))
    np.testing.assert_allclose(a["test_entropy"], whole, atol=0.01)
    np.testing.assert_allclose(a["test_information"], whole - entropy(p).mean(0), atol=0.02)
    assert not len(a["test_std_model"])
    values = fitted["values"][1].arrays
    squares = values["test_std_model"] ** 2 + values["test_std_noise"] ** 2
    np.testing.assert_allclose(squares, values["test_std"] ** 2)
    assert (values["test_std_model"] > 0).all()
    assert not len(values["test_entropy"])


def test_values_are_learnt_and_intervals_hold_them(
    fitted: dict[str, tuple[Study, Report]], values: pd.DataFrame
) -> None:
    _, report = fitted["values"]
    assert value(report, "NMSE") < 0.4
    a = report.arrays
    inside = (a["test_low"] <= a["test_truth"]) & (a["test_truth"] <= a["test_high"])
    assert inside.mean() == pytest.approx(a["coverage"][1, 2])
    assert inside.mean() > 0.8
    log = Study(settings(log_target="yes", max_steps=60), values, CPU)
    other = run(log)
    assert value(other, "NMSE") < 0.4
    assert value(other, "NLPD") < value(report, "NLPD")  # the noise is multiplicative
    assert (other.arrays["test_low"] > -1).all()
    errors = (other.arrays["test_truth"] - other.arrays["test_predicted"]) ** 2
    assert errors.mean() / other.arrays["test_truth"].var() == pytest.approx(value(other, "NMSE"))


def test_lives_are_learnt(fitted: dict[str, tuple[Study, Report]]) -> None:
    study, report = fitted["lives"]
    assert value(report, "concordance") > 0.7
    assert value(report, study.metadata["score"]) < 0.7
    a = report.arrays
    died = a["patient_event"] == 1
    assert len(a["pit"]) == died.sum()
    assert (a["patient_low"] < a["patient_pred"]).all()
    assert (a["patient_pred"] < a["patient_high"]).all()
    own = study.data.observed.patients.index(study.metadata["patients"][3])
    mean, _ = study.present.ask(study.data.observed.x[study.data.observed.patient == own])
    assert a["patient_pred"][3] == pytest.approx(np.exp(mean.mean()))
    for curve in (*a["km_true"], a["km_predicted"], a["km_expected"]):
        assert curve[0] == 1
        assert (np.diff(curve) <= 1e-12).all()


# --- beside others --------------------------------------------------------------------------------


def test_other_methods_stand_beside_it(fitted: dict[str, tuple[Study, Report]]) -> None:
    wanted = {
        "classes": ["DFGP-WP", "SGP", "SVM, averaged kernels", "best single view"],
        "values": ["DFGP-WP", "SGP", "Student-t", "ridge, averaged kernels", "linear"],
        "lives": ["DFGP-WP", "SGP", "Student-t", "ridge, averaged kernels", "linear"],
    }
    for kind, (study, report) in fitted.items():
        methods = study.metadata["methods"]
        assert methods == ["this run", *wanted[kind]]
        score = study.metadata["score"]
        table = report.arrays["scores"]
        assert table.shape == (len(methods), 3)
        assert np.isfinite(table).all()
        own = [value(report, score, m) for m in methods]
        assert table[:, 0].tolist() == own
        assert value(report, f"{score}, 3 splits", "this run") == pytest.approx(table[0].mean())
        p = report.arrays["t_test"]
        assert np.isnan(p[0])
        assert ((p[1:] >= 0) & (p[1:] <= 1)).all()
        if kind == "classes":
            assert (table[:4] > 0.6).all()
        else:
            assert (table < 1).all()


def test_published_figures_are_named_as_of_other_data(
    fitted: dict[str, tuple[Study, Report]],
) -> None:
    theirs = {
        kind: [m.method for m in report.metrics if m.source == "published"]
        for kind, (_, report) in fitted.items()
    }
    assert "DFGP (published, osteosarcoma films)" in theirs["classes"]
    assert "Student-t (published, SO2 in Belfast)" in theirs["values"]
    assert theirs["lives"] == []


# --- questions ------------------------------------------------------------------------------------


def test_views_on_and_off(fitted: dict[str, tuple[Study, Report]]) -> None:
    study, _ = fitted["classes"]
    both, noise = (study.explore("views", names=n) for n in ("shape,colour", ["noise"]))
    assert both["on"].tolist() == [1, 1, 0]
    assert both["influence"][2] == 0
    assert both["influence"].sum() == pytest.approx(1)
    assert both["score"] > noise["score"] + 0.2
    assert both["averaged"] > noise["averaged"] + 0.2
    again = study.explore("views", names="colour, shape")
    assert again["score"] == both["score"]


def test_a_row_is_told_as_in_the_snapshot(fitted: dict[str, tuple[Study, Report]]) -> None:
    for study, report in fitted.values():
        a = report.arrays
        result = study.explore("row", index=str(a["shown"][7]))
        assert result["predicted"][0] == pytest.approx(a["predicted"][7])
        assert result["truth"][0] == a["truth"][7]
        np.testing.assert_allclose(result["hidden"], a["hidden"][7])


def test_a_patient_is_told_as_in_the_snapshot(fitted: dict[str, tuple[Study, Report]]) -> None:
    study, report = fitted["lives"]
    result = study.explore("patient", name=study.metadata["patients"][2])
    assert result["predicted"][0] == pytest.approx(report.arrays["patient_pred"][2])
    assert result["low"][0] == pytest.approx(report.arrays["patient_low"][2])
    assert np.log(result["rows"]).mean() == pytest.approx(np.log(result["predicted"][0]))
    at = np.searchsorted(result["curve_time"], result["predicted"][0])
    assert result["curve"][at] == pytest.approx(0.5, abs=0.1)
    with pytest.raises(BadInput, match="no patient 'nobody'"):
        study.explore("patient", name="nobody")


# --- the fitted model -----------------------------------------------------------------------------


def test_predictions_keep_the_rows_and_name_what_they_add(
    fitted: dict[str, tuple[Study, Report]],
    classes: pd.DataFrame,
    values: pd.DataFrame,
    lives: pd.DataFrame,
) -> None:
    study, report = fitted["classes"]
    rows = report.arrays["test_index"][[3, 0, 8]]
    bare = classes.iloc[rows][classes.columns[6::-1]].set_index(pd.Index([5, 3, 9]))
    told = study.predict(bare)
    assert list(told.index) == [5, 3, 9]
    assert list(told)[7:11] == ["label", "probability", "p(other)", "p(event)"]
    assert told["p(event)"].tolist() == pytest.approx(report.arrays["test_predicted"][[3, 0, 8]])
    best = np.where(told["p(event)"] >= 0.5, "event", "other")
    assert told["label"].tolist() == best.tolist()
    assert (told["probability"] >= 0.5).all()
    assert "predicted" in study.predict(classes.head(3))
    with pytest.raises(BadInput, match=r"lacks the column 'colour\.a'"):
        study.predict(classes.drop(columns="colour.a"))
    with pytest.raises(BadInput, match=r"'colour\.a', row 3: the cell is empty"):
        study.predict(classes.head(4).assign(**{"colour.a": [0.0, np.nan, 1.0, 2.0]}))
    study, report = fitted["values"]
    told = study.predict(values.drop(columns="y"))
    assert list(told)[7:11] == ["mean", "std", "low", "high"]
    rows = report.arrays["test_index"]
    assert told["mean"].to_numpy()[rows] == pytest.approx(report.arrays["test_predicted"])
    study, report = fitted["lives"]
    told = study.predict(lives.drop(columns=["time", "event"]))
    assert list(told)[4:9] == ["mean", "std", "median", "low", "high"]
    assert (told.groupby("patient")["median"].nunique() == 1).all()
    own = told.groupby("patient", sort=False)["median"].first()
    shown = own[study.metadata["patients"]].to_numpy()
    assert shown == pytest.approx(report.arrays["patient_pred"])


def test_rivals_of_survival_are_scored_by_patient_as_the_run_is(
    fitted: dict[str, tuple[Study, Report]],
) -> None:
    study, report = fitted["lives"]
    comparison = study.comparison(report)
    c, scored = comparison.problem, comparison.scored
    every = np.arange(len(c.y_test))
    died = report.arrays["patient_event"] == 1
    np.testing.assert_allclose(c.y_test, np.log(report.arrays["patient_time"]))
    assert c.late is not None
    assert c.late_test is not None
    np.testing.assert_array_equal(c.late_test, ~died)
    density = scored.log_density
    known = -float(density[died].mean())
    assert known == pytest.approx(value(report, "NLPD (log time)"))
    assert (density[~died] <= 0).all()
    assert all(np.isfinite(SCORES[name](c, scored, every)) for name in c.scores)
    observed, train = study.data.observed, study.data.train
    mine = train[observed.patient[train] == observed.patient[train[0]]]
    np.testing.assert_allclose(c.x[0], observed.x[mine].mean(0))
    assert c.late[0] == (not observed.event[mine[0]])
    assert len(c.y) == len(np.unique(observed.patient[train]))
    told = compared(report, comparison, 1.0, own=True, rivals=True)
    assert any(m.source == "rival" and m.name == c.scores[0] for m in told.metrics)
    assert any("Cox regression" in note for note in told.notes)

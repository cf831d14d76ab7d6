"""The mitosis study on tables of every kind; its models' steps, covariances and priors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import f1_score

from scant.events import Note, State
from scant.learners.calibrated import CalibratedClassifier
from scant.studies.mitosis import models
from scant.studies.mitosis.classifier import BEFORE, Classifier, estimated_shares, weighted
from scant.studies.mitosis.covariances import apart, ordered
from scant.studies.mitosis.settings import PRIORS
from scant.studies.mitosis.study import Study
from scant.studies.mitosis.table import breast_cancer
from scant.training.loop import train
from tests.engine.studies.mitosis.nuclei import CPU, clouds, patches, settings
from tests.engine.studies.studying import run, value


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return patches()


@pytest.mark.slow
@pytest.mark.parametrize("components", [0, 8])
def test_missing_pixels_are_allowed(cells: pd.DataFrame, components: int) -> None:
    rng = np.random.default_rng(0)
    pixels = [c for c in cells if c[0] == "p"]
    holes = cells.copy()
    few = pixels[40:43] if components == 0 else pixels  # a pattern of gaps a column costs time
    holes[few] = holes[few].mask(rng.uniform(size=(len(cells), len(few))) < 0.1)
    study = Study(settings(n_components=components, imbalance=1), holes, CPU)
    how = "left to the model" if components == 0 else "filled in by principal components"
    assert any(how in note for note in study.notes)
    report = run(study)
    assert np.isfinite(report.arrays["test_p"]).all()
    assert np.isfinite(report.arrays["generated"]).all()
    told = study.predict(holes.head(5))
    assert told["probability"].between(0, 1).all()
    empty = holes.head(1).assign(**dict.fromkeys(pixels, np.nan))
    assert np.isfinite(study.predict(empty)["probability"]).all()


def test_filled_in_pixels_resemble_what_was_there(cells: pd.DataFrame) -> None:
    from scant.studies.mitosis.preprocessing import Columns

    x = cells[[c for c in cells if c[0] == "p"]].to_numpy()
    holes = np.where(np.random.default_rng(1).uniform(size=x.shape) < 0.2, np.nan, x)
    columns = Columns.of(holes, 10, pixels=True)
    gaps = np.isnan(holes)
    error = (columns.back(columns.forward(holes)) - x)[gaps]
    assert error.std() < 0.6 * (x - np.nanmean(holes, 0))[gaps].std()
    whole = Columns.of(x, 100, pixels=True)
    np.testing.assert_allclose(whole.back(whole.forward(x)), x, atol=1e-5)


@pytest.mark.slow
def test_three_classes_are_told_apart() -> None:
    table = clouds({"few": 30, "some": 60, "many": 200})
    study = Study(settings(imbalance=0, max_steps=80, n_inducing=8), table, CPU)
    report = run(study)
    p, label = report.arrays["test_p"], report.arrays["test_label"]
    assert p.shape[1] == 3
    assert (p.argmax(1) == label).mean() > 0.7
    assert value(report, "F1") > 0.5
    assert set(study.predict(table)["predicted"]) == {"few", "some", "many"}


@pytest.mark.slow
def test_features_that_scikit_learn_carries() -> None:
    values = settings(imbalance=10, n_components=20, max_steps=60, n_inducing=15, n_private_dims=3)
    study = Study(values, breast_cancer(values), CPU)
    assert study.metadata["features"][0] == "mean_radius"
    assert study.metadata["size"] == []
    report = run(study)
    assert value(report, "average precision") > 0.8
    assert value(report, "recall") > 0.6


@pytest.mark.slow
def test_a_prior_moves_the_probabilities(cells: pd.DataFrame) -> None:
    told = {}
    for prior in ("as in training", "even", "as in the table"):
        study = Study(settings(prior=prior, imbalance=0, max_steps=20), cells, CPU)
        told[prior] = run(study).arrays["test_p"][:, 0].mean()
    assert told["even"] > told["as in training"]
    assert told["as in the table"] == pytest.approx(told["as in training"], rel=0.05)


def test_too_few_to_spare_are_not_tempered() -> None:
    study = Study(settings(), clouds({"few": 8, "many": 40}), CPU)
    assert not len(study.data.split.validation)
    assert any("none are held back" in note for note in study.notes)
    report = run(study)
    assert np.isnan(report.arrays["threshold"]).all()
    none = Study(settings(test_share=0.0), clouds({"few": 20, "many": 40}), CPU)
    events = list(train(none))
    assert any("No row is held out" in e.text for e in events if isinstance(e, Note))
    last = events[-1]
    assert [m.name for m in last.report.metrics] == ["bound (nats a row)"]


def test_what_rows_have_in_common_is_left_out_of_covariances() -> None:
    rng = np.random.default_rng(0)
    label = np.array([0] * 4 + [1] * 5)
    same = label[:, None] == label[None]
    # Samples of f = constant + shared wave + private wave: their covariances about their means.
    f_shared, f_private = rng.normal(size=(2, 9, 400))
    f_private[same[:, 0]] += 7 * rng.normal(size=400)
    shared = f_shared @ f_shared.T / 400 + 50.0
    private = np.where(same, f_private @ f_private.T / 400, 0.0)
    left = apart(np.stack([shared, private, shared + private]), label, parts=True)
    inner = f_shared - f_shared.mean(0)
    np.testing.assert_allclose(left[0], inner @ inner.T / 400, atol=1e-9)
    own = [f_private[label == c] - f_private[label == c].mean(0) for c in (0, 1)]
    np.testing.assert_allclose(left[1][:4, :4], own[0] @ own[0].T / 400, atol=1e-9)
    np.testing.assert_allclose(left[1][~same], 0, atol=1e-9)
    np.testing.assert_allclose(left[2], left[0] + left[1])
    whole = apart(np.stack([shared] * 3), label, parts=False)
    np.testing.assert_allclose(whole[2], left[0])


def test_rows_stand_class_by_class_along_what_varies_most() -> None:
    label = np.array([0, 0, 0, 1, 1, 1])
    along = np.array([2.0, -1.0, -1.5, 0.0, 9.0, -3.0])
    order = ordered(np.outer(along, along) + 0.01 * np.eye(6), label)
    assert order.tolist() == [2, 1, 0, 5, 3, 4]
    assert ordered(np.outer(-along, -along), label).tolist()[3:] == [5, 3, 4]


@pytest.mark.parametrize(
    ("steps", "adam", "first"), [(240, None, 160), (800, 160, 160), (90, 160, 60), (90, 0, 0)]
)
def test_adam_has_its_steps_and_never_more_than_two_thirds(
    steps: int, adam: int | None, first: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    Y = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    label = (torch.arange(20) < 5).long()
    for name in ("sclvm", "dgplvm"):
        model = models.build(settings(), name, Y, label, 2, generator)
        result = models.trainer(model, steps, adam).adam
        assert result == (0 if name == "dgplvm" else first)


@pytest.mark.slow
def test_a_run_that_gains_no_more_has_converged() -> None:
    values = settings(imbalance=0, max_steps=600, adam_steps=40, n_inducing=6)
    study = Study(values, clouds({"few": 12, "many": 30}), CPU)
    last = list(train(study))[-1]
    assert last.state is State.CONVERGED
    assert "0.001 in 40 steps" in last.reason


def calibrated(rare: float, rows: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of a class, for this share of it, of rows with another share; and the rows'."""
    rng = np.random.default_rng(5)
    label = (rng.random(rows) >= rare).astype(int)
    x = rng.normal(np.where(label, 0.0, 2.0), 1.0)
    odds = np.exp(2 * x - 2) * share / (1 - share)
    return np.stack([odds, np.ones(rows)], 1) / (1 + odds)[:, None], label


def test_shares_of_many_rows_are_found_and_those_of_none_stay() -> None:
    share = np.array([0.05, 0.95])
    p, label = calibrated(0.3, 20_000, 0.05)
    found = estimated_shares(p, share)
    assert found == pytest.approx([0.3, 0.7], abs=0.02)
    right = weighted(p, found / share)
    assert right[:, 0].mean() == pytest.approx((label == 0).mean(), abs=0.02)
    assert estimated_shares(p[:0], share) == pytest.approx(share)
    few = estimated_shares(calibrated(0.3, 60, 0.05)[0], share)
    assert 0.05 < few[0] < 0.2  # few rows say little


def test_a_classifier_is_adapted_to_rows_to_predict_and_little_by_few() -> None:
    share = np.array([0.05, 0.95])
    latent = CalibratedClassifier(np.eye(2), np.zeros(2), share, threshold=0.5)
    p, label = calibrated(0.3, 20_000, 0.05)
    adapted, new = Classifier.of_latent(latent).shifted(p, share, BEFORE)
    assert new[:, 0].mean() == pytest.approx(0.3, abs=0.02)
    before, after = (
        f1_score(label == 0, decided == 0) for decided in (latent_decisions(p), adapted.decide(new))
    )
    assert after > before + 0.05
    again, same = adapted.shifted(new, share, BEFORE)
    assert same == pytest.approx(new, abs=0.02)
    assert again.threshold == pytest.approx(adapted.threshold, abs=0.01)
    few, nearly = Classifier.of_latent(latent).shifted(p[:3], share, BEFORE)
    assert nearly == pytest.approx(p[:3], abs=0.03)
    assert few.threshold == pytest.approx(0.5, abs=0.01)


def test_classes_without_a_threshold_are_adapted_by_their_shares() -> None:
    share = np.array([0.2, 0.3, 0.5])
    latent = CalibratedClassifier(np.eye(3), np.zeros(3), share)
    p = np.eye(3)[np.random.default_rng(0).choice(3, 4000, p=[0.6, 0.3, 0.1])]
    p = 0.9 * p + 0.1 * share
    adapted, new = Classifier.of_latent(latent).shifted(p, share, BEFORE)
    assert np.isnan(adapted.threshold)
    assert adapted.shift[0] > 1.5 > 0.8 > adapted.shift[2]
    assert new.sum(1) == pytest.approx(1.0)
    assert (adapted.decide(new) == new.argmax(1)).all()


def latent_decisions(p: np.ndarray) -> np.ndarray:
    """Decisions by the threshold 0.5."""
    return np.where(p[:, 0] >= 0.5, 0, 1)


def shifted_table() -> pd.DataFrame:
    """A rare class that is met more often than it was collected."""
    table = clouds({"few": 160, "many": 700})
    own = table.groupby("label").cumcount()
    held = np.where(table["label"] == "few", own >= 20, own >= 400)
    return table.assign(split=np.where(held, "test", "train"))


@pytest.mark.slow
def test_the_run_is_for_the_shares_of_rows_held_out_and_comes_back() -> None:
    table = shifted_table()
    values = {"classifier": "GP", "imbalance": 0, "max_steps": 10}
    before, after = (Study(settings(prior=p, **values), table, CPU) for p in (PRIORS[0], PRIORS[3]))
    plain, moved = run(before), run(after)
    assert after.present.chances.shift[0] > 2 > 1 > after.present.chances.shift[1]
    assert value(moved, "mean log probability (nats)") > value(plain, "mean log probability (nats)")
    assert any("of the held-out rows are of class 'few'" in note for note in moved.notes)
    assert not any("of the held-out rows are of class" in note for note in plain.notes)
    query = table.drop(columns=["label", "split"]).head(40)
    kept = Study.restore(after.settings, *after.fitted(), torch.device("cpu"))
    pd.testing.assert_frame_equal(kept.predict(query), after.predict(query), rtol=1e-5)
    many = after.data.seen[after.data.label == 1]
    unadapted, (adapted, _) = after.present.probabilities(many), after.present.predicted(many)
    assert adapted[:, 0].mean() < unadapted[:, 0].mean() / 2  # none of these rows is of class 0

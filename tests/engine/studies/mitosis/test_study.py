"""The mitosis study: what it makes of a table, how it trains, what it is afterwards."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score, recall_score

from scant.deadline import Deadline
from scant.errors import BadInput
from scant.events import Report
from scant.learners.calibrated import decided
from scant.studies.mitosis.learners import fit_methods
from scant.studies.mitosis.report import curves
from scant.studies.mitosis.study import Study
from tests.engine.studies.mitosis.nuclei import CPU, clouds, patches, settings
from tests.engine.studies.studying import run, value


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return patches()


@pytest.fixture(scope="module")
def fitted(cells: pd.DataFrame) -> tuple[Study, Report]:
    study = Study(settings(max_steps=60, n_inducing=10), cells, CPU)
    return study, run(study)


# --- rows ---------------------------------------------------------------------------------------


def test_slides_are_held_out_whole(cells: pd.DataFrame) -> None:
    study = Study(settings(), cells, CPU)
    group = cells["group"].to_numpy()[study.data.places]
    parts = (study.data.split.pool, study.data.split.validation, study.data.test)
    owners = [set(group[rows]) for rows in parts]
    assert all(owners)
    assert not owners[0] & owners[1]
    assert not owners[0] & owners[2]
    assert not owners[1] & owners[2]
    assert sum(map(len, parts)) == len(cells)
    assert set(study.data.train) <= set(study.data.split.pool)
    assert study.metadata["rows"] == {
        "training": len(study.data.train),
        "validation": len(study.data.split.validation),
        "test": len(study.data.test),
    }
    other = Study(settings(seed=1), cells, CPU)
    assert set(group[other.data.test]) != owners[2]


def test_the_rarest_class_comes_first_and_imbalance_thins_out_the_others(
    cells: pd.DataFrame,
) -> None:
    studies = [Study(settings(imbalance=r), cells, CPU) for r in (0, 3, 1)]
    counts = [s.metadata["counts"] for s in studies]
    assert all(s.metadata["classes"] == ["mitosis", "other"] for s in studies)
    assert all(s.metadata["rare"] == "mitosis" for s in studies)
    rare = counts[0][0]
    assert counts == [[rare, 4 * rare], [rare, 3 * rare], [rare, rare]]
    assert set(studies[2].data.train) < set(studies[1].data.train) < set(studies[0].data.train)
    assert all(np.array_equal(s.data.test, studies[0].data.test) for s in studies)
    scarce = Study(settings(imbalance=20), cells, CPU)
    assert scarce.metadata["counts"] == [3, 4 * rare] == [3, scarce.metadata["pool"][1]]
    few = Study(settings(rare_rows=3, imbalance=0), cells, CPU)
    assert few.metadata["counts"] == [3, 4 * rare]
    turned = Study(settings(positive_class="other", imbalance=0), cells, CPU)
    assert turned.metadata["classes"] == ["other", "mitosis"]
    assert turned.metadata["ratio"] == pytest.approx(0.25)


def test_rows_without_groups_are_held_out_by_class() -> None:
    table = clouds({"few": 20, "many": 100})
    study = Study(settings(test_share=0.25), table, CPU)
    assert np.bincount(study.data.label[study.data.test]).tolist() == [5, 25]
    assert np.bincount(study.data.label[study.data.split.validation]).tolist() == [4, 19]
    assert np.bincount(study.data.label[study.data.split.pool]).tolist() == [11, 56]
    assert not study.metadata["grouped"]


def test_a_class_on_one_slide_only_is_split_by_rows_with_a_note(cells: pd.DataFrame) -> None:
    own = cells["label"] == "mitosis"
    lonely = cells[~own | (cells["group"] == cells["group"][own].iloc[0])]
    lonely = pd.concat([lonely, cells[own].head(8).assign(group="slide x")])
    study = Study(settings(), lonely.reset_index(drop=True), CPU)
    assert any("Whole groups could not be held out" in note for note in study.notes)


def test_many_held_out_rows_are_scored_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scant.studies.mitosis.splits.MOST_TEST", 30)
    study = Study(settings(), clouds({"few": 30, "many": 300}), CPU)
    assert np.bincount(study.data.label[study.data.test]).tolist() == [12, 18]
    assert any("Of 132 rows held out, 30 are scored" in note for note in study.notes)


def test_images_are_brought_to_size_and_to_grey_of_one(cells: pd.DataFrame) -> None:
    small = Study(settings(size=5), cells, CPU)
    assert small.data.image == (5, 5)
    assert any("10 x 10 pixels were resized to 5 x 5" in note for note in small.notes)
    pixels = [c for c in cells if c[0] == "p"]
    bytes_ = cells.assign(**{c: (cells[c] * 255).round() for c in pixels})
    study, whole = Study(settings(), cells, CPU), Study(settings(), bytes_, CPU)
    assert any("integers from 0 to 255" in note for note in whole.notes)
    assert np.array_equal(study.data.images, whole.data.images)


def test_a_latent_model_that_takes_all_the_time_leaves_the_plain_classifiers_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]

    def build(*_: object) -> None:
        now[0] = 100.0
        raise BadInput("it took too long.")

    data = Study(settings(), clouds({"few": 20, "many": 100}), CPU).data
    monkeypatch.setattr("scant.studies.mitosis.models.build", build)
    names = ["SCLVM", "weighted SVM", "SCLVM, pixels alone", "weighted SVM, pixels alone"]
    deadline = Deadline(1.0, clock=lambda: now[0])
    results = fit_methods(data, data.train, data.test, names, (), deadline=deadline)
    assert [result.name for result in results] == names
    assert [result.scored is not None for result in results] == [False, True, False, True]
    assert deadline.skipped == ["other latent variable models"]


# --- training -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_learns(fitted: tuple[Study, Report], cells: pd.DataFrame) -> None:
    study, report = fitted
    share = float((study.data.label[study.data.test] == 0).mean())
    assert value(report, "average precision") > 1.5 * share
    assert value(report, "balanced accuracy") > 0.55
    arrays = report.arrays
    classes = np.array(study.metadata["classes"], dtype=object)
    told = cells["label"].to_numpy()[arrays["test_index"]]
    assert (told == classes[arrays["test_label"]]).all()
    assert arrays["reliability"][2].sum() == len(study.data.test)


def test_curves_agree_with_the_metrics(fitted: tuple[Study, Report]) -> None:
    study, report = fitted
    arrays, rare = report.arrays, study.data.label[study.data.test] == 0
    thresholds, precision, recall = arrays["pr"][0]
    hit, wrong, missed, left = arrays["confusion"][0]
    assert (hit + missed == rare.sum()).all()
    assert (wrong + left == (~rare).sum()).all()
    assert recall[0] == 1.0
    assert precision[0] == pytest.approx(rare.mean())
    assert (np.diff(recall) <= 0).all()
    taken = arrays["test_p"][:, 0] >= arrays["threshold"][0]
    assert value(report, "recall") == pytest.approx((taken & rare).sum() / rare.sum())
    at = int(arrays["test_p"][:, 0].max() * 50)  # half of the highest, in hundredths
    assert hit[at] == ((arrays["test_p"][:, 0] >= thresholds[at]) & rare).sum()
    assert precision[at] == pytest.approx(hit[at] / (hit[at] + wrong[at]))


def test_the_threshold_table_and_the_metrics_of_each_method_agree(
    fitted: tuple[Study, Report],
) -> None:
    """One snapped to hundredths, where a probability of 0.9996 and one of 0.99 are the same."""
    study, report = fitted
    told = {(m.method, m.name): m.value for m in report.metrics}
    for k, method in enumerate(study.metadata["methods"]):
        thresholds, *curves = report.arrays["pr"][k]
        at = int(np.argmin(np.abs(thresholds - report.arrays["threshold"][k])))
        for name, curve in zip(("precision", "recall"), curves):
            assert curve[at] == pytest.approx(told["this run" if k == 0 else method, name])


def test_shown_positions_move_while_it_trains(cells: pd.DataFrame) -> None:
    study = Study(settings(), cells, CPU)
    study.start_restart(0, 0, None)
    study.step()
    before = study.snapshot()["latent_mean"]
    for _ in range(3):
        study.step()
    assert np.abs(study.snapshot()["latent_mean"] - before).mean() > 0.01


# --- the fitted model ---------------------------------------------------------------------------


def test_predictions_name_the_class_and_keep_the_rows(
    fitted: tuple[Study, Report], cells: pd.DataFrame
) -> None:
    study, report = fitted
    query = cells.iloc[report.arrays["test_index"][[3, 9, 5]]]
    told = study.predict(query.drop(columns=["label", "group"]))
    assert list(told.index) == list(query.index)
    columns = ["p(mitosis)", "p(other)"]
    np.testing.assert_allclose(told[columns], report.arrays["test_p"][[3, 9, 5]], atol=1e-6)
    for _, row in told.iterrows():
        assert row["probability"] == row[f"p({row['label']})"]
        assert (row["label"] == "mitosis") == (row["p(mitosis)"] >= report.arrays["threshold"][0])
    labeled = study.predict(query)
    assert labeled["label"].tolist() == query["label"].tolist()
    assert labeled["predicted"].tolist() == told["label"].tolist()
    with pytest.raises(BadInput, match="no pixels"):
        study.predict(query[["label", "p1"]])
    with pytest.raises(BadInput, match="have 9 x 9 pixels, and the model was trained on 10 x 10"):
        study.predict(query[["label", *(f"p{i}" for i in range(81))]])
    plain = Study(settings(), clouds({"few": 15, "many": 60}), CPU)
    run(plain)
    with pytest.raises(BadInput, match="lacks the column 'f2'"):
        plain.predict(clouds({"few": 2, "many": 2}).drop(columns="f2"))


# --- beside others ------------------------------------------------------------------------------


def test_slow_ones_are_left_out_with_a_note(
    cells: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scant.studies.mitosis.learners.LATENT_MAX_ROWS", 10)
    monkeypatch.setattr("scant.studies.mitosis.learners.DGPLVM_MAX_ROWS", 10)
    study = Study(settings(baselines=True), cells, CPU)
    report = run(study)
    assert [note.split(" is left out")[0] for note in report.notes] == [
        "BGPLVM + SVM",
        "DGPLVM + SVM",
    ]
    assert np.isnan(report.arrays["pr"][1, 1:]).all()
    assert np.isfinite(report.arrays["pr"][3, 2]).all()


@pytest.mark.parametrize("others", [1, 4])
def test_with_too_few_rows_of_a_class_to_spare_any_all_methods_are_compared(others: int) -> None:
    table = clouds({"few": 7} | {f"other {i}": 12 for i in range(others)})
    study = Study(settings(baselines=True, max_steps=20, n_inducing=5), table, CPU)
    report = run(study)
    assert not len(study.data.split.validation)
    assert any("none are held back" in note for note in study.notes)
    compared = {m.method for m in report.metrics if m.name == "F1" and m.source == "baseline"}
    assert compared == set(study.metadata["methods"][1:])


def test_dgplvm_learns_from_fewer_rows(
    cells: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scant.studies.mitosis.prepared.DGPLVM_MAX_ROWS", 30)
    study = Study(settings(model="dgplvm"), cells, CPU)
    assert len(study.data.train) == 30
    assert any("DGPLVM learns from 30 of" in note for note in study.notes)


@pytest.mark.parametrize("threshold", [0.37123, np.nan])
def test_the_table_of_a_threshold_and_the_table_of_scores_say_the_same(threshold: float) -> None:
    rng = np.random.default_rng(0)
    p, label = rng.dirichlet(np.ones(3), 60), rng.integers(3, size=60)
    one = decided(p, threshold)
    assert (one.point != p.argmax(1)).any() == np.isfinite(threshold)
    arrays = curves([one], label, 1)
    at = np.argmin(np.abs(arrays["pr"][0, 0] - (0.5 if np.isnan(threshold) else threshold)))
    rare, taken = label == 0, one.point == 0
    both = [score(rare, taken, zero_division=0.0) for score in (precision_score, recall_score)]
    assert arrays["pr"][0, 1:, at] == pytest.approx(both)
    hit, wrong, *_ = arrays["confusion"][0, :, at]
    assert hit + wrong == (one.point == 0).sum()

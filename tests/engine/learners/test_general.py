"""General tools beside a run."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import f1_score, recall_score

from scant import verdict
from scant.deadline import Deadline
from scant.evaluate import compare
from scant.evaluate.compare import compared, nothing_learned
from scant.evaluate.scores import metrics_of, scores_of
from scant.events import Finished, Metric, Report, State, decode, encode
from scant.learners.deformable import DeformableNeighbor, distances, slopes
from scant.learners.general import forest, general_tools
from scant.learners.learner import Learner
from scant.learners.tool import filled, tool
from scant.predictive import CategoricalPredictive, MixturePredictive
from scant.problem import Comparison, Problem
from scant.verdict import Contest, Verdict
from tests.paths import ROOT

RNG = np.random.default_rng(3)
X = RNG.normal(size=(160, 3))
Y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * RNG.normal(size=160)


def regression(noise: float = 1.0, names: tuple[str, ...] = ("RMSE", "NLPD")) -> Comparison:
    """A line and a wave, of which our answer is off by `noise`."""
    y = Y[100:]
    variance = np.full(60, max(noise, 0.01) ** 2)
    own = MixturePredictive.gaussian(y + noise * RNG.normal(size=60), variance)
    return Comparison(Problem(X[:100], Y[:100], X[100:], y, names), own)


def classification(p: np.ndarray) -> Comparison:
    """Two classes by the sign of the first column; ours gives `p` to the rare one, 0."""
    label = (X[:, 0] < 0.8).astype(int)
    own = CategoricalPredictive(np.stack([p, 1 - p], 1))
    names = ("average precision", "F1", "recall", "mean log probability (nats)", "ECE")
    return Comparison(Problem(X[:100], label[:100], X[100:], label[100:], names, 2, 0), own)


def own_metrics(c: Comparison) -> Report:
    return Report(tuple(metrics_of(c.problem, c.scored, "this run", c.problem.scores, "run")))


def test_the_best_rival_is_quoted_and_its_lines_of_code_run() -> None:
    c = regression()
    report = compared(own_metrics(c), c, 1.0, own=True, rivals=True)
    made = report.verdict
    theirs = {
        m.method: m.value for m in report.metrics if m.name == "RMSE" and m.method != "this run"
    }
    assert len(theirs) >= 4
    assert (made.point.rival, made.point.theirs) == min(theirs.items(), key=lambda p: p[1])
    assert made.take_another
    assert made.headline == f"Take another tool: {made.point.rival} is better on these data."
    assert set(made.seconds) >= {"this run", made.point.rival}
    scope = {"X": X[:100], "y": Y[:100], "X_new": X[100:]}
    first, second = made.code.splitlines()
    exec(f"{first}\nanswer = {second}", scope)
    assert np.sqrt(np.mean((np.ravel(scope["answer"]) - Y[100:]) ** 2)) < 1.5 * made.point.theirs


def test_a_run_that_is_better_keeps_its_place() -> None:
    c = regression(noise=1e-3)
    made = compared(own_metrics(c), c, 1.0, own=True, rivals=True).verdict
    assert made.point.winner == verdict.OURS
    assert made.point.low is not None
    assert made.point.low <= made.point.gain <= (made.point.high or 0)
    assert not made.take_another


def test_published_figures_are_left_out_of_an_own_run_only() -> None:
    published = Metric("GPVC", "RMSE", 0.054, source="published")
    note = "The published figures are of other galaxies."
    report = Report((published,), notes=(note,))
    assert compared(report, None, 1.0, own=False, rivals=False).metrics == (published,)
    assert compared(report, None, 1.0, own=True, rivals=True).metrics == ()
    assert compared(report, None, 1.0, own=True, rivals=True).notes == ()


def test_a_baseline_of_the_same_name_is_not_fitted_again_unless_it_gives_way() -> None:
    c = regression()
    report = own_metrics(c)
    baseline = Metric("random forest", "RMSE", 0.5, source="baseline")
    report = replace(report, metrics=(*report.metrics, baseline))

    def forests(c: Comparison) -> list[str]:
        kept = compared(report, c, 1.0, own=True, rivals=True).metrics
        return [m.source for m in kept if m.method == "random forest"]

    assert forests(c) == ["baseline"]
    assert set(forests(replace(c, problem=replace(c.problem, replaces=True)))) == {"rival"}


def test_rivals_stop_when_the_time_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    c = regression()

    def fitted() -> set[str]:
        late = Deadline(-1.0)
        report = compared(own_metrics(c), c, 1.0, own=True, rivals=True, deadline=late)
        assert "exact GP was not compared: the time for comparisons was used up." in report.notes
        return {m.method for m in report.metrics if m.source == "rival"}

    assert fitted() == {"ridge regression", "random forest"}
    monkeypatch.setattr(compare, "SECONDS", 0.0)  # as if a forest took long
    assert fitted() == {"ridge regression"}


def test_nothing_is_learned_where_the_mean_does_as_well() -> None:
    c = regression()
    trivial = replace(c, own=c.problem.trivial())

    def said(own: Comparison) -> str:
        return nothing_learned(own.problem, own.scored)

    assert "the same for every row" in said(trivial)
    shuffled = Y[:100].mean() + 0.02 * RNG.normal(size=60)
    assert "as well" in said(
        replace(c, own=MixturePredictive.gaussian(shuffled, np.full(60, Y[:100].var())))
    )
    assert said(c) == ""
    report = compared(own_metrics(trivial), trivial, 1.0, own=False, rivals=False)
    assert report.notes[0].startswith("Learned nothing: ")


def test_nothing_is_learned_where_one_class_is_named_always() -> None:
    label = (X[100:, 0] < 0.8).astype(int)
    same, ranked = (classification(p) for p in (np.full(60, 0.2), np.where(label == 0, 0.4, 0.1)))
    assert "most frequent class" in nothing_learned(same.problem, same.scored)
    assert nothing_learned(ranked.problem, ranked.scored) == ""


@pytest.mark.parametrize("rival", general_tools(0), ids=lambda r: r.name)
def test_regressors_take_gaps_and_know_their_error(rival: Learner) -> None:
    gaps = np.where(RNG.random(X.shape) < 0.05, np.nan, X)
    told = rival.predict(Problem(gaps[:100], Y[:100], gaps[100:], Y[100:], ()))
    mean, variance = told.mean, told.variance
    assert np.mean((mean - Y[100:]) ** 2) < 0.6 * Y.var()
    assert (variance > 0).all()
    z = (mean - Y[100:]) / np.sqrt(variance)
    assert 0.2 < np.mean(z**2) < 5


@pytest.mark.parametrize("rival", general_tools(3), ids=lambda r: r.name)
def test_classifiers_give_probabilities_of_every_class(rival: Learner) -> None:
    label = 2 * (X[:, 0] > 0)  # class 1 does not occur among the rows learned from
    told = rival.predict(Problem(X[:100], label[:100], X[100:], label[100:], (), 3, images=True))
    if rival.capabilities.density:
        np.testing.assert_allclose(told.probabilities.sum(1), 1)
        assert told.probabilities[:, 1].max() < 0.01
    assert np.mean(told.point == label[100:]) > 0.8


def test_trees_get_contrasts_as_columns_and_others_do_not() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(540, 4))
    problem = Problem(x[:500], x[:500, 0] - x[:500, 1], x[500:], x[500:, 0], ())
    with_gap = replace(problem, x_test=np.where(rng.random((40, 4)) < 0.3, np.nan, x[500:]))
    for each in (problem, replace(with_gap, blocks=np.arange(4))):
        seen: list[tuple[int, int]] = []

        def mean(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, None]:
            seen.append((x.shape[1], query.shape[1]))  # noqa: B023
            return np.zeros(len(query)), None

        contrasted = replace(each, contrasts=np.eye(1, 4) - np.eye(1, 4, 1))
        for trees, columns in ((True, 5), (False, 4)):
            seen.clear()
            tool("mean", mean, "", trees=trees).predict(contrasted)
            assert set(seen) == {(columns, columns)}


@pytest.mark.slow
@pytest.mark.parametrize("rival", general_tools(0), ids=lambda r: r.name)
def test_tree_methods_learn_a_contrast(rival: Learner) -> None:
    x = np.random.default_rng(0).normal(size=(240, 2))
    difference = x[:, 0] - x[:, 1]
    problem = Problem(x[:160], difference[:160], x[160:], difference[160:], ())
    errors = [
        float(np.mean((rival.predict(each).mean - difference[160:]) ** 2))
        for each in (problem, replace(problem, contrasts=np.array([[1.0, -1.0]])))
    ]
    trees = rival.name in ("random forest", "gradient boosting", "CatBoost", "NGBoost")
    assert (errors[1] < 0.7 * errors[0]) == trees


def test_the_forest_s_variance_is_within_leaves_and_between_trees() -> None:
    mean, variance = forest(X[:100], Y[:100], X[100:103])
    model = filled(RandomForestRegressor(random_state=0)).fit(X[:100], Y[:100])
    rows = model[:-1].transform(X[100:103])
    each = np.array([tree.predict(rows) for tree in model[-1].estimators_])
    np.testing.assert_allclose(mean, each.mean(0))
    np.testing.assert_allclose(variance, each.var(0), rtol=1e-6)  # its leaves hold one value each


def test_scores_are_scikit_learn_s() -> None:
    c = classification(RNG.random(60))
    y, named = c.problem.y_test, c.own.point
    f1, recall = scores_of(c.problem, c.scored, ("F1", "recall"))
    assert f1 == pytest.approx(f1_score(y == 0, named == 0))
    assert recall == pytest.approx(recall_score(y == 0, named == 0))
    [weighted] = scores_of(replace(c.problem, rare=None), c.scored, ("F1",))
    assert weighted == pytest.approx(f1_score(y, named, average="weighted"))


def test_classes_that_compete_in_parts_are_learned_part_by_part() -> None:
    part = (X[:, 2] > 0).astype(int)
    label = 2 * part + (X[:, 0] > 0)
    c = Problem(
        X[:100], label[:100], X[100:], label[100:], ("F1",), 4,
        part=part[:100], part_test=part[100:],
    )  # fmt: skip
    share = c.trivial()
    assert np.all(share.point // 2 == part[100:])
    told = next(r for r in general_tools(4) if r.name == "random forest").predict(c)
    assert np.all(told.point // 2 == part[100:])


def test_where_all_outlive_the_horizon_there_is_no_restricted_error() -> None:
    time = np.linspace(1, 4, len(X))
    late = np.ones(len(X), dtype=bool)  # all are lost from sight before they die
    own = MixturePredictive.gaussian(time[-5:], np.ones(5))
    c = Problem(
        X, time, X[-5:], time[-5:] + 1, ("F1",),
        late=late, late_test=np.zeros(5, dtype=bool),
    )  # fmt: skip
    horizon, weight = c.observation
    assert horizon <= c.y_test.min()
    assert weight.all()
    assert np.isnan(scores_of(c, c.scored(own), ("restricted NMSE (log time)",))).all()


def test_a_verdict_travels_and_old_reports_have_none() -> None:
    made = Verdict(Contest("RMSE", 1.0, "ridge", 0.9, -0.2, -0.05), None, {"this run": 3.0}, 10, 5)
    end = Finished(State.CONVERGED, "It converged.", Report(verdict=made))
    [back] = decode(encode([end]))
    assert back.report.verdict == made
    message = encode([replace(end, report=Report())])
    old = message.replace(b', \\"verdict\\": null', b"")
    assert old != message
    padded = len(message) - len(old)
    size = int.from_bytes(message[:8], "little")
    old = (size).to_bytes(8, "little") + old[8:] + b" " * padded
    [older] = decode(old)
    assert older.report.verdict is None


def test_figures_alone_name_the_best_baseline() -> None:
    def figure(method: str, value: float, source: str = "baseline") -> Metric:
        return Metric(method, "NMSE", value, source=source)

    made = verdict.of_metrics(
        [figure("this run", 0.187, "run"), figure("GP", 0.4), figure("LMC", 0.103),
         figure("GP, active", 0.01), figure("theirs", 0.05, "published")]
    )  # fmt: skip
    assert made.point == Contest("NMSE", 0.187, "LMC", 0.103)
    assert made.sentences() == [
        "LMC scores better; this may be chance.",
        "NMSE: this run 0.187, LMC 0.103 (no interval).",
    ]


@pytest.mark.parametrize("rival", [*general_tools(0), *general_tools(2)], ids=lambda r: r.name)
def test_the_lines_of_code_run_as_they_stand(rival: Learner) -> None:
    y = Y if rival in general_tools(0) else (X[:, 0] > 0).astype(int)
    first, second = rival.code.splitlines()
    scope = {"X": X[:100], "y": y[:100], "X_new": X[100:]}
    exec(f"{first}\nanswer = {second}", scope)
    assert len(scope["answer"]) == 60


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_tables", ROOT / "scripts" / "own_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(case: str, score: str, ours: float, theirs: float, **more: object) -> dict[str, object]:
    return {"case": case, "point_score": score, "point_ours": ours, "point_theirs": theirs, **more}


def test_errors_and_scores_are_compared_each_in_its_sense(script: ModuleType) -> None:
    likelihood = {"density_score": "NLPD", "density_ours": 1.0, "density_theirs": 1.1}
    calibration = {"calibration_score": "ECE", "calibration_ours": 0.2, "calibration_theirs": 0.1}
    table = pd.DataFrame(
        [
            line("near", "RMSE", 1.019, 1.0, **likelihood),
            line("behind", "RMSE", 1.021, 1.0, **likelihood | {"density_ours": 1.2}),
            line("ahead", "F1", 0.9, 0.5, **calibration),
            line("below", "F1", 0.9, 0.95),
            line("iris", "F1", 0.9, 0.95),  # one table in two forms
            line("no header", "F1", 0.95, 0.95),
            {"case": "refused", "state": "refused"},
        ],
        columns=script.COLUMNS,
    )
    assert script.summary(table).splitlines() == [
        "within 2% of the best rival's point score or better: 50% (2.5 of 5)",
        "first in density: 50% (1.0 of 2)",
        "first in density or calibration: 33% (1.0 of 3)",
        "behind: behind, below, iris",
        "no comparison: refused",
    ]


def test_a_case_that_cannot_be_fitted_is_a_line(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = "a,b,price\n" + "".join(f"{i}.5,{i * i}.25,{1000 + i}.5\n" for i in range(3))
    monkeypatch.setattr(script, "files", lambda: {"few": few.encode(), "none": b"\n"})
    made = script.fitted("few", 0)
    assert (made["study"], made["rows"], made["state"]) == ("redshift", 3, "refused")
    assert "few" in made["note"]
    assert script.fitted("none", 0)["state"] == "refused"


def bars(shifts: list[int], upright: bool) -> np.ndarray:
    images = np.zeros((len(shifts), 12, 12))
    for image, shift in zip(images, shifts):
        image[2:10, 5 + shift : 7 + shift] = 1.0
    return images if upright else images.transpose(0, 2, 1)


def test_distances_are_those_of_the_best_displacement_of_every_pixel() -> None:
    rng = np.random.default_rng(0)
    query, learned = rng.random((2, 6, 5)), rng.random((3, 6, 5))
    a, b = slopes(query), slopes(learned)
    reach = 1  # two pixels of 20 are one of 6
    expected = np.zeros((2, 3))
    for m, n, i, j in np.ndindex(2, 3, 6, 5):
        near = [
            ((a[m, i, j] - b[n, k, u]) ** 2).sum()
            for k in range(max(0, i - reach), min(6, i + reach + 1))
            for u in range(max(0, j - reach), min(5, j + reach + 1))
        ]
        expected[m, n] += min(near)
    np.testing.assert_allclose(distances(a, b), expected, rtol=1e-4)


def test_an_image_that_was_moved_is_nearer_than_another_one() -> None:
    images = np.concatenate([bars([0], True), bars([0], False)])
    moved = slopes(bars([1], True))
    near, far = distances(moved, slopes(images))[0]
    assert near < 0.2 * far
    plain = ((bars([1], True) - images) ** 2).sum((1, 2))
    assert plain[0] > 0.4 * plain[1]  # pixel by pixel the two differ less


def test_classes_are_told_with_probabilities_that_are_not_too_sure() -> None:
    learned = np.concatenate([bars([-2, 0, 2], True), bars([-2, 0, 2], False)])
    label = np.repeat([0, 1], 3)
    machine = DeformableNeighbor.of(learned, label, 3)
    p = machine.ask(np.concatenate([bars([-1, 1], True), bars([-1, 1], False)]))
    assert p.argmax(1).tolist() == [0, 0, 1, 1]
    assert p.sum(1) == pytest.approx(1)
    assert p.max() < 1 - 0.5 / 7
    assert p[:, 2].max() < 0.1  # a class without a row

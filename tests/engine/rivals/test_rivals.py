"""Rivals answer as they should, and a report's verdict is what the held-out rows say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import f1_score, recall_score

from scant import verdict
from scant.events import Finished, Metric, Report, State, decode, encode
from scant.rivals import compare
from scant.rivals.compare import compared, nothing_learned
from scant.rivals.comparison import SCORES, Comparison, Prediction, gaussian, of_classes
from scant.rivals.methods import forest, rivals
from scant.rivals.rival import Rival, filled
from scant.verdict import Contest, Verdict

RNG = np.random.default_rng(3)
X = RNG.normal(size=(160, 3))
Y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * RNG.normal(size=160)


def regression(noise: float = 1.0, names: tuple[str, ...] = ("RMSE", "NLPD")) -> Comparison:
    """A line and a wave, of which our answer is off by `noise`."""
    y = Y[100:]
    own = gaussian(y, y + noise * RNG.normal(size=60), np.full(60, max(noise, 0.01) ** 2))
    return Comparison(X[:100], Y[:100], X[100:], y, own, names)


def classification(p: np.ndarray) -> Comparison:
    """Two classes by the sign of the first column; ours gives `p` to the rare one, 0."""
    label = (X[:, 0] < 0.8).astype(int)
    own = of_classes(label[100:], np.stack([p, 1 - p], 1), 0)
    names = ("average precision", "F1", "recall", "mean log probability (nats)", "ECE")
    return Comparison(X[:100], label[:100], X[100:], label[100:], own, names, 2, 0)


def own_metrics(c: Comparison) -> Report:
    every = np.arange(len(c.y_test))
    return Report(tuple(Metric("this run", n, SCORES[n](c, c.own, every)) for n in c.scores))


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
    assert set(forests(replace(c, replaces=True))) == {"rival"}


def test_rivals_stop_when_the_time_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "SECONDS", -1.0)
    c = regression()
    report = compared(own_metrics(c), c, -1.0, own=True, rivals=True)
    assert not [m for m in report.metrics if m.source == "rival"]
    assert "exact GP was not compared: the time for comparisons was used up." in report.notes


def test_nothing_is_learned_where_the_mean_does_as_well() -> None:
    c = regression()
    trivial = replace(c, own=c.trivial())
    assert "the same for every row" in nothing_learned(trivial)
    shuffled = Y[:100].mean() + 0.02 * RNG.normal(size=60)
    assert "as well" in nothing_learned(
        replace(c, own=gaussian(c.y_test, shuffled, np.full(60, Y[:100].var())))
    )
    assert nothing_learned(c) == ""
    report = compared(own_metrics(trivial), trivial, 1.0, own=False, rivals=False)
    assert report.notes[0].startswith("Learned nothing: ")


def test_nothing_is_learned_where_one_class_is_named_always() -> None:
    label = (X[100:, 0] < 0.8).astype(int)
    assert "most frequent class" in nothing_learned(classification(np.full(60, 0.2)))
    assert nothing_learned(classification(np.where(label == 0, 0.4, 0.1))) == ""  # ranks well


@pytest.mark.parametrize("rival", rivals(0), ids=lambda r: r.name)
def test_regressors_take_gaps_and_know_their_error(rival: Rival) -> None:
    gaps = np.where(RNG.random(X.shape) < 0.05, np.nan, X)
    mean, variance = rival.ask(gaps[:100], Y[:100], gaps[100:])
    assert np.mean((mean - Y[100:]) ** 2) < 0.6 * Y.var()
    assert (variance > 0).all()
    z = (mean - Y[100:]) / np.sqrt(variance)
    assert 0.2 < np.mean(z**2) < 5


@pytest.mark.parametrize("rival", rivals(3), ids=lambda r: r.name)
def test_classifiers_give_probabilities_of_every_class(rival: Rival) -> None:
    label = 2 * (X[:, 0] > 0)  # class 1 does not occur among the rows learned from
    p = rival.ask(X[:100], label[:100], X[100:], 3)
    np.testing.assert_allclose(p.sum(1), 1)
    assert p[:, 1].max() < 0.01
    assert np.mean(p.argmax(1) == label[100:]) > 0.8


def test_the_forest_s_variance_is_within_leaves_and_between_trees() -> None:
    mean, variance = forest(X[:100], Y[:100], X[100:103])
    model = filled(RandomForestRegressor(random_state=0)).fit(X[:100], Y[:100])
    rows = model[:-1].transform(X[100:103])
    each = np.array([tree.predict(rows) for tree in model[-1].estimators_])
    np.testing.assert_allclose(mean, each.mean(0))
    np.testing.assert_allclose(variance, each.var(0), rtol=1e-6)  # its leaves hold one value each


def test_scores_are_scikit_learn_s() -> None:
    c = classification(RNG.random(60))
    every = np.arange(60)
    rare, named = c.y_test == 0, c.own.value == 0
    assert SCORES["F1"](c, c.own, every) == pytest.approx(f1_score(rare, named))
    assert SCORES["recall"](c, c.own, every) == pytest.approx(recall_score(rare, named))
    weighted = replace(c, rare=None)
    expected = f1_score(c.y_test, c.own.value, average="weighted")
    assert SCORES["F1"](weighted, c.own, every) == pytest.approx(expected)


def test_classes_that_compete_in_parts_are_learned_part_by_part() -> None:
    part = (X[:, 2] > 0).astype(int)
    label = 2 * part + (X[:, 0] > 0)
    c = Comparison(
        X[:100], label[:100], X[100:], label[100:], Prediction(label[100:]), ("F1",), 4,
        part=part[:100], part_test=part[100:],
    )  # fmt: skip
    share = c.trivial()
    assert np.all(share.value // 2 == part[100:])
    answer = compare._answer(next(r for r in rivals(4) if r.name == "random forest"), c)
    assert np.all(answer.value // 2 == part[100:])


def test_where_all_outlive_the_horizon_there_is_no_restricted_error() -> None:
    time = np.linspace(1, 4, len(X))
    late = np.ones(len(X), dtype=bool)  # all are lost from sight before they die
    c = Comparison(
        X, time, X[-5:], time[-5:] + 1, Prediction(time[-5:]), ("F1",),
        late=late, late_test=np.zeros(5, dtype=bool),
    )  # fmt: skip
    horizon, weight = c.observation
    assert horizon <= c.y_test.min()
    assert weight.all()
    assert np.isnan(SCORES["restricted NMSE (log time)"](c, c.own, np.arange(5)))


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
        "LMC scores better; whether beyond chance is not known.",
        "NMSE: this run 0.187, LMC 0.103 (no interval).",
    ]


@pytest.mark.parametrize("rival", [*rivals(0), *rivals(2)], ids=lambda r: r.name)
def test_the_lines_of_code_run_as_they_stand(rival: Rival) -> None:
    y = Y if rival in rivals(0) else (X[:, 0] > 0).astype(int)
    first, second = rival.code.splitlines()
    scope = {"X": X[:100], "y": y[:100], "X_new": X[100:]}
    exec(f"{first}\nanswer = {second}", scope)
    assert len(scope["answer"]) == 60

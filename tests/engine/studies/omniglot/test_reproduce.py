"""The publication's experiments: all are run, every model is scored, figures stand side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scant.errors import BadInput
from scant.reproduce.figure_files import matrices
from scant.studies.omniglot import published_data as cases
from scant.studies.omniglot import reproduce as tables
from scant.studies.omniglot.published import SETTINGS
from scant.studies.omniglot.reproduce import as_published as published
from scant.studies.omniglot.reproduce import fits
from scant.studies.published import printed
from scant.training.api import fit
from tests.engine.studies.studying import gathered
from tests.paths import REAL_DATA

needs_data = pytest.mark.skipif(
    not (REAL_DATA / "omniglot").is_dir(), reason="SCANT_REAL_DATA names no folder omniglot"
)


def smaller(case: cases.Case, steps: int) -> cases.Case:
    """Three classes of each output, fewer rows and steps."""
    kept = np.flatnonzero(case.label < 3)[::2]
    rows = {"x": case.x[kept], "output": case.output[kept], "label": case.label[kept]}
    return replace(case, **rows, steps=steps, n_latent=2, inducing=5, batch=20)


def test_models_of_a_comparison_have_the_latent_functions_chosen_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen, fitted = list[Any](), list[Any]()

    def choose(case: cases.Case, train: np.ndarray, method: Any, steps: int, seed: int) -> int:
        chosen.append((seed, method))
        return 100 + seed if len(method.latent) > 1 else 1

    def scored(case: cases.Case, test: np.ndarray, fit: Any) -> Any:
        fitted.append((fit.args[2], *fit.args[3:]))  # method, Q, steps, fold
        return None, [(case.outputs[0], "recall", 0.5)]

    monkeypatch.setattr(published, "chosen", choose)
    monkeypatch.setattr(published, "scores", scored)
    [case] = [one for one in cases.published(None) if one[0] == "S-20"]
    runs = list(published.runs([case], 2))
    for run in runs:
        list(run.scores())
    multi = [(fold, method) for fold, method in chosen if len(method.latent) > 1]
    assert [fold for fold, _ in multi] == list(range(5))
    assert {(m.model, m.sampled, m.inducing) for _, m in multi} == {("mogp-ar", 1, 100)}
    for method, latent, _, fold in fitted:
        assert latent == (1 if method.model in ("g-m", "g-a") else 100 + fold)
    chosen.clear()
    last = [run for run in published.runs([case], 2) if "M=200, fold 3" in run.key]
    list(last[0].scores())  # as of a folder where all others are stored
    assert chosen == multi[3:4]


def test_every_experiment_is_run_with_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    real = fits.training.fit

    def briefly(*args: Any, **values: Any) -> Any:
        return real(*args, **{**values, "steps": 2})

    kept = [(name, smaller(case, 2)) for name, case in tables._cases(None)]
    monkeypatch.setattr(tables, "_cases", lambda _: kept)
    monkeypatch.setattr(fits.training, "fit", briefly)
    result = gathered("omniglot", tables.reproduce(quick=True, data=None, fit=fit))
    strokes = "two alphabets of strokes"
    images = [strokes, f"{strokes}: first", f"{strokes}: second"]
    assert list(result["experiment"].unique()) == ["Balance", "S-20", *images]
    plain = {"nearest neighbour", "logistic regression"}
    for name, part in result.groupby("experiment"):
        expected = set(tables.MODELS) | plain
        if name in images:
            published = set(tables.MODELS) - tables.LEFT_OUT
            expected = published | plain | {f"{model}, patches" for model in published}
        assert set(part["method"]) == expected
        scores = set() if name in images[:1] else {"recall", "precision", "F1"}
        assert set(part["metric"]) == scores | (set() if name in images[1:] else {fits.SECONDS})
    shares = result[result["metric"] != fits.SECONDS]["ours"]
    assert shares.between(0, 1).all()
    theirs = result.dropna(subset="theirs")
    assert set(theirs["experiment"]) == {"Balance"}
    assert set(theirs["metric"]) == {"recall"}
    assert result["published"].isna().all()  # no table prints a score of these


def test_folds_hold_every_row_out_once_and_scores_are_those_of_the_held_out() -> None:
    case = cases.balance()
    truth = {tuple(x): label for x, label in zip(case.x, case.label)}

    def all_right(x: np.ndarray, output: np.ndarray) -> np.ndarray:
        return np.array([truth[tuple(row)] for row in x])

    def all_left(x: np.ndarray, output: np.ndarray) -> np.ndarray:
        return np.zeros(len(x), dtype=int)

    held = [fits.shuffled_folds(case, fold)[1] for fold in range(5)]

    def scored(predict: fits.Predict, metric: str) -> list[float]:
        results = (fits.scores(case, held[fold], lambda: predict)[1] for fold in range(5))
        return [value for one in results for _, name, value in one if name == metric]

    assert sorted(np.concatenate(held)) == list(range(625))
    assert scored(all_right, "recall") == [1.0] * 5
    recall = scored(all_left, "recall")
    assert np.mean(recall) == pytest.approx(288 / 625)  # one of three classes, 0 for the others
    precision = scored(all_left, "precision")
    assert np.mean(precision) == pytest.approx((288 / 625) ** 2, abs=1e-4)


def test_generated_experiments_are_what_the_publication_says() -> None:
    balance = cases.balance()
    assert np.bincount(balance.label).tolist() == [288, 49, 288]
    heavy = balance.x[:, 0] * balance.x[:, 1]
    tips_left = heavy > balance.x[:, 2] * balance.x[:, 3]
    assert set(balance.label[tips_left]) == {2}
    s20 = cases.s20()
    assert s20.x.shape == (2000, 5)
    assert abs(np.bincount(s20.label) - 100).max() <= 5  # one row in a hundred is given another
    drawn = cases.drawn()
    assert drawn.x.shape == (560, 400)
    assert np.bincount(drawn.output * 14 + drawn.label).tolist() == [20] * 28


def test_a_folder_without_the_files_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no file cnae9\.npz in"):
        list(cases.real(tmp_path))
    with pytest.raises(BadInput, match=r"no file training\.parquet"):
        cases._floors(tmp_path, 0)


@needs_data
def test_the_measured_data_are_those_of_the_publication() -> None:
    result = dict(cases.real(REAL_DATA))
    assert result["CNAE-9"].x.shape == (1080, 856)
    assert np.bincount(result["CNAE-9"].label).tolist() == [120] * 9
    floors = result["UJIIndoorLoc"]
    assert np.bincount(floors.output).tolist() == [800, 800, 1000]
    assert abs(floors.x[floors.output == 1].mean(0)).max() < 1e-12
    both = result["Ojibwe and Blackfoot, as published"]
    assert set(both.outputs) == {"Ojibwe", "Blackfoot"}
    assert np.unique(both.x).tolist() == [0.0, 1.0]
    assert both.x.mean() < 0.15  # ink is 1


@pytest.mark.slow
@needs_data
def test_patches_know_blackfoot_better_than_lengthscales_of_pixels() -> None:
    """The publication has .714 and .468 of these images; here one fold, and 150 steps."""
    both = dict(cases.alphabets(REAL_DATA))["Ojibwe and Blackfoot, as published"]
    case = replace(both, steps=150)
    methods, recall = dict(tables.methods(case, 0)), {}
    _, test = fits.shuffled_folds(case, 0)
    for name in ("MOGPs-AR (1)", "MOGPs-AR (1), patches"):
        _, scores = fits.scores(case, test, methods[name])
        recall[name] = next(v for d, m, v in scores if (d, m) == ("Blackfoot", "recall"))
    rbf, patches = recall.values()
    assert patches > rbf > 5 / 14  # by chance 1 of 14


def test_settings_as_published_are_those_of_the_preset() -> None:
    """Patches of the two alphabets, which the study's preset has, too."""
    preset = {name: stated.value for name, stated in SETTINGS.items()}
    rows = {own.get(published.TWO): method for own, method in published.planned(published.TWO)}
    method = rows["MOGPs-AR (1), patches, as published"]
    assert (method.model, method.patch) == (preset["model"], preset["patch"])
    assert method.sampled == preset["sampled_classes"]
    assert (method.inducing, method.batch) == (preset["n_inducing"], preset["batch_size"])
    assert preset["n_latent"] in method.latent
    assert (preset["max_steps"], preset["learning_rate"]) == (published.STEPS, published.RATE)
    methods = {row.method for row in printed("omniglot", f"{published.TWO}: Blackfoot")}
    assert methods
    assert methods <= set(rows)  # what the publication prints has a row of ours


def test_runs_as_published_have_their_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 steps at a constant rate, no constants; on all training rows with the Q chosen."""
    calls: list[dict[str, Any]] = []

    class ByLatent(fits.TrainedGP):
        def __call__(self, x: np.ndarray, output: np.ndarray) -> np.ndarray:
            return (x[:, 0] if self.model == 3 else 0 * x[:, 0]).astype(int)

    def remembered(x: np.ndarray, *rows: np.ndarray, **values: Any) -> fits.TrainedGP:
        calls.append({"rows": len(x), **values})
        return ByLatent(values["n_latent"])

    case = cases.balance()
    case = replace(case, x=np.column_stack([case.label, case.x]).astype(float))
    monkeypatch.setattr(published, "gaussian", remembered)
    runs = {run.key: run for run in published.runs([("Balance", case)])}
    scores = list(runs["as published: Balance, MOGPs-AR (1), fold 2"].scores())
    assert [call["n_latent"] for call in calls] == [1, 2, 3, 3]
    assert [call["rows"] for call in calls] == [400, 400, 400, 500]
    for call in calls:
        assert (call["steps"], call["rate"], call["falls"]) == (4000, 0.01, False)
        assert (call["sampled"], call["constant"], call["covariance"]) == (1, False, "dropped")
    assert {s.metric: s.value for s in scores}["recall"] == 1.0  # by Q = 3
    assert {s.method for s in scores} == {"MOGPs-AR (1), as published"}


@pytest.mark.slow
def test_coregionalization_is_of_the_trained_model() -> None:
    """B of two classes whose functions are opposite; the mean |B_q| of each pair of outputs."""
    case = cases.two_classes()
    assert abs(case.label.mean() - 0.5) < 0.2  # some 60 changes of sign
    rows = np.flatnonzero(np.abs(case.x[:, 0]) < 0.5)
    method = published.Method("mogp-ar", sampled=1, inducing=20)
    model = published.fitted(case, rows, method, 1, 300, 0).model
    scores = published.coregionalization(case, published.TWO_CLASSES, "ours", model)
    found = {score.metric: score.value for score in scores}
    first, between, second = (
        found[f"B of classes {pair}"] for pair in ("1 and 1", "1 and 2", "2 and 2")
    )
    assert between < 0 < min(first, second)
    assert between**2 == pytest.approx(first * second)  # one draw makes both functions

    case, method = cases.drawn(), published.Method("mogp-ar", inducing=5, batch=20, sampled=1)
    model = published.fitted(case, np.arange(560), method, 2, 3, 0).model
    values = {
        score.method: score.value
        for score in published.coregionalization(case, published.TWO, "ours", model)
    }
    B = model.coregionalization().detach().abs().mean(0).numpy()
    means = {
        "first and first": B[:14, :14],
        "first and second": B[:14, 14:],
        "second and second": B[14:, 14:],
    }
    assert values == pytest.approx({pair: block.mean() for pair, block in means.items()})
    stored = matrices(published.diagrams(case, model))
    B = model.coregionalization().detach().numpy()
    assert stored.heads == ["B1", "B2"]  # of two in all
    assert stored.entries == pytest.approx(B)
    assert stored.groups == ["first"] * 14 + ["second"] * 14
    assert stored.names == [str(c) for c in (*range(1, 15), *range(1, 15))]


def test_the_matrices_with_the_largest_entries_are_drawn() -> None:
    class Model:
        def coregionalization(self) -> torch.Tensor:
            return torch.tensor([1.0, -5.0, 2.0, 4.0])[:, None, None] * torch.eye(3)

    rows = published.diagrams(cases.balance(), Model())
    assert list(rows["matrix"].unique()) == ["B2", "B4"]


def test_figures_of_matrices_name_runs_as_published() -> None:
    runs = {
        (*next(iter(rows.items())),)
        for name in (published.UJI, published.TWO)
        for rows, _ in published.planned(name)
    }
    for experiment, method, fold in published.HINTON:
        assert (experiment, method) in runs
        assert 0 <= fold < 3


def test_folds_as_published_are_in_the_order_of_the_rows() -> None:
    """Of each of two outputs the first four drawers are held out first."""
    case = cases.drawn()
    train, test = published.folds(case, 0)
    drawer = np.arange(560) % 20
    assert sorted(np.concatenate([train, test])) == list(range(560))
    assert set(drawer[test]) == {0, 1, 2, 3}


def test_sweeps_share_the_runs_that_they_have_in_common() -> None:
    rows = [own for own, _ in published.planned("S-20")]
    names = [row for own in rows for row in own.items()]
    assert len(names) == len(set(names))
    by_classes = {own[published.BY_CLASSES] for own in rows if published.BY_CLASSES in own}
    assert by_classes == {"MG-M, all classes", *(f"MOGPs-AR, |S_d|={n}" for n in published.CLASSES)}
    by_inducing = {own[published.BY_INDUCING] for own in rows if published.BY_INDUCING in own}
    assert by_inducing == {f"MOGPs-AR (5), M={m}" for m in published.INDUCING}


@needs_data
def test_bibtex_comes_with_its_splits() -> None:
    case = cases.bibtex(REAL_DATA)
    assert case.x.shape == (7395, 1836)
    assert case.label.max() + 1 == 148
    for fold in range(3):
        train, test = published.folds(case, fold)
        assert (len(train), len(test)) == (4880, 2515)
        assert len(np.union1d(train, test)) == 7395

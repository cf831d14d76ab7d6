"""The estimators in scikit-learn's own machinery, and against the models that they stand on."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from scant.errors import BadInput
from scant.models.dfgp.model import DFGP
from scant.models.dfgp.training import DFGPTrainer
from scant.models.gplvm.sclvm import SCLVM
from scant.models.gplvm.training import GPLVMTrainer
from scant.models.gpz.model import GPz
from scant.models.gpz.training import GPzTrainer
from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.models.mogp_ar.kernels import RbfArd
from scant.models.mogp_ar.training import fit as fit_mogp
from scant.sklearn import (
    DFGPClassifier,
    DFGPRegressor,
    GPzRegressor,
    LaplaceGPClassifier,
    MOGPARClassifier,
    SCLVMClassifier,
)

QUICK: list[Any] = [
    GPzRegressor(n_basis=5, max_iter=15, random_state=0),
    DFGPRegressor(max_iter=15, random_state=0),
    LaplaceGPClassifier(random_state=0),
    DFGPClassifier(10, max_iter=15, random_state=0),
    MOGPARClassifier(4, 10, max_iter=15, random_state=0),
    SCLVMClassifier(1, 2, 4, max_iter=9, random_state=0),
]


def quick(estimator: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A fresh copy, and a table of 60 rows that it takes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=60)
    return clone(estimator), X, np.where(y > 0, "yes", "no") if is_classifier(estimator) else y


def seeded(state: int) -> torch.Generator:
    """As estimators make it from `random_state`."""
    return torch.Generator().manual_seed(
        int(check_random_state(state).randint(np.iinfo(np.int32).max))
    )


@pytest.mark.slow
@pytest.mark.parametrize("estimator", QUICK, ids=lambda e: type(e).__name__)
def test_the_same_seed_gives_the_same_numbers_also_after_pickling(estimator: Any) -> None:
    model, X, y = quick(estimator)
    model.fit(X, y)
    again = clone(model).fit(X, y)
    kept = pickle.loads(pickle.dumps(model))
    ask = "predict_proba" if is_classifier(model) else "predict"
    found = getattr(model, ask)(X)
    assert np.array_equal(found, getattr(again, ask)(X))
    assert np.array_equal(found, getattr(kept, ask)(X))
    assert np.isfinite(model.elbo_)
    assert 1 <= model.n_iter_ <= model.max_iter


@pytest.mark.slow
@pytest.mark.parametrize("estimator", QUICK, ids=lambda e: type(e).__name__)
def test_names_of_a_frame_are_kept_and_demanded(estimator: Any) -> None:
    model, X, y = quick(estimator)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert np.array_equal(model.predict(frame), clone(model).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])


@pytest.mark.slow
@pytest.mark.parametrize("estimator", QUICK, ids=lambda e: type(e).__name__)
def test_pipeline_search_and_cross_validation(estimator: Any) -> None:
    model, X, y = quick(estimator)
    chain = make_pipeline(StandardScaler(), model)
    grid = {f"{chain.steps[-1][0]}__max_iter": [1, 15]}
    search = GridSearchCV(chain, grid, cv=2, error_score="raise").fit(X, y)
    scores = cross_val_score(search.best_estimator_, X, y, cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert search.best_score_ >= max(search.cv_results_["mean_test_score"])
    assert np.all(scores > (0.5 if is_classifier(model) else 0.0))


def test_gpz_is_scants_own_model_trained_the_same_way() -> None:
    model, X, y = quick(QUICK[0])
    model.set_params(validation_fraction=0).fit(X, y)
    scale, x = StandardScaler().fit(y[:, None]), torch.tensor(StandardScaler().fit_transform(X))
    t = torch.tensor(scale.transform(y[:, None])[:, 0])
    own = GPz(3, 5)
    own.init_from_data(x, t, seeded(0))
    trainer = GPzTrainer(own, x, t)
    elbo = [trainer.step() for _ in range(model.n_iter_)][-1]
    own.fit_posterior(x, t)
    found = own.predict(x)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, found.mean * scale.scale_[0] + scale.mean_[0])
    np.testing.assert_allclose(std, found.variance.sqrt() * scale.scale_[0], rtol=1e-12)
    assert model.elbo_ == pytest.approx(elbo - 60 * np.log(scale.scale_[0]))


def test_laplace_is_scants_own_model_trained_the_same_way() -> None:
    model, X, y = quick(QUICK[2])
    model.fit(X, y)
    x = torch.tensor(StandardScaler().fit_transform(X))
    own = LaplaceGPC.build(x, torch.tensor((y == "yes").astype(int)), prior=Prior())
    evidence = own.fit(tolerance=model.tol * 60)
    assert model.elbo_ == pytest.approx(float(evidence))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], own.probability(x), rtol=1e-6)


def test_dfgp_is_scants_own_model_trained_the_same_way() -> None:
    model, X, y = quick(QUICK[1])
    model.set_params(views=[[0], [1, 2]]).fit(X, y)
    x, generator = torch.tensor(X), seeded(0)
    own = DFGP.build([x[:, :1], x[:, 1:]], torch.tensor(y), generator=generator)
    trainer = DFGPTrainer(own, 15, 0.05, generator=generator, horizon=15)
    for _ in range(model.n_iter_):
        trainer.step()
    np.testing.assert_array_equal(model.predict(X), own.predict([x[:, :1], x[:, 1:]])[0].numpy())


def test_mogp_ar_is_scants_own_model_trained_the_same_way() -> None:
    model, X, y = quick(QUICK[4])
    model.set_params(n_iter_no_change=15, random_state=3).fit(X, y)
    x, label = torch.tensor(X), torch.tensor((y == "yes").astype(int))
    seed = int(check_random_state(3).randint(np.iinfo(np.int32).max))
    own = fit_mogp(
        x, torch.zeros_like(label), label, "mogp-ar", RbfArd(x, 4), 4, 10, 15, 50, 0, seed=seed
    )
    found = own.probabilities(own.kernel.prepare(x), torch.zeros_like(label))
    np.testing.assert_array_equal(model.predict_proba(X), found.numpy())


def test_sclvm_is_scants_own_model_trained_the_same_way() -> None:
    model, X, y = quick(QUICK[5])
    model.fit(X, y)
    x = torch.tensor(StandardScaler().fit_transform(X))
    label = torch.tensor((y == "yes").astype(int))
    own = SCLVM.build(x, label, 2, 1, 2, 4, seeded(0))
    trainer = GPLVMTrainer(own, 6)
    for _ in range(model.n_iter_):
        trainer.step()
    np.testing.assert_array_equal(model.predict_proba(X), own.probabilities(x).numpy())


def test_rows_held_out_end_gpzs_training_where_it_overfits() -> None:
    X, X_test, y, y_test = held(*load_diabetes(return_X_y=True))
    model = GPzRegressor(5, max_iter=60, input_density=None, random_state=0).fit(X, y)
    free = clone(model).set_params(validation_fraction=0).fit(X, y)
    assert model.n_iter_ < free.n_iter_
    assert model.elbo_ / (len(y) - len(y) // 5) < free.elbo_ / len(y)
    assert model.score(X_test, y_test) > free.score(X_test, y_test) + 0.1
    assert clone(free).set_params(validation_fraction=0.04).fit(X, y).n_iter_ == free.n_iter_


def test_missing_values_are_integrated_over() -> None:
    X, y = load_diabetes(return_X_y=True)
    X = X[:, [2, 3, 8]]
    X[::8, 0] = np.nan
    model = GPzRegressor(5, "GD", max_iter=30, random_state=0).fit(X[:200], y[:200])
    mean, std = model.predict(X[200:], return_std=True)
    assert np.corrcoef(mean, y[200:])[0, 1] > 0.6
    assert np.mean(np.abs(y[200:] - mean) < 2 * std) > 0.9
    holes = np.isnan(X[200:, 0])
    assert not model.moments(X[200:][~holes]).input_variance.any()
    assert bool((model.moments(X[200:][holes]).input_variance > 0).all())
    assert model.predict(np.full((1, 3), np.nan))[0] == pytest.approx(y.mean(), rel=0.2)


def test_without_an_input_density_missing_values_are_refused_at_prediction() -> None:
    model, X, y = quick(QUICK[0])
    whole = model.fit(X, y).predict(X)
    model.set_params(input_density=None).fit(X, y)
    assert np.array_equal(model.predict(X), whole)
    with pytest.raises(BadInput, match="input_density"):
        model.predict(np.full((1, 3), np.nan))


def test_missing_values_of_sclvm_tell_nothing() -> None:
    model, X, y = quick(QUICK[5])
    X[::7, 2] = np.nan
    model.fit(X, y)
    p = model.predict_proba(np.full((1, 3), np.nan))
    shares = [np.mean(y == "no"), np.mean(y == "yes")]
    np.testing.assert_allclose(p[0], shares, atol=0.02)


@pytest.mark.slow
def test_sclvm_transforms_to_a_frame_with_names() -> None:
    model, X, y = quick(QUICK[5])
    frame = model.set_output(transform="pandas").fit_transform(X, y)
    assert list(frame.columns) == ["shared0", "private0", "private1"]
    chain = make_pipeline(model, LogisticRegression()).fit(X, y)
    assert list(chain[:-1].get_feature_names_out()) == list(frame.columns)
    assert chain.score(X, y) > 0.7


def test_rows_of_several_outputs_compete_within_their_own() -> None:
    rng = np.random.default_rng(1)
    output = np.repeat(["left", "right"], 60)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] > 0, "up", np.where(output == "left", "down", "over"))
    model = MOGPARClassifier(4, 15, random_state=0).fit(X, y, output=output)
    assert list(model.classes_) == ["down", "over", "up"]
    p = model.predict_proba(X, output)
    np.testing.assert_allclose(p.sum(1), 1)
    assert not p[output == "left", 1].any()
    assert not p[output == "right", 0].any()
    assert model.score(X, y, output=output) > 0.9
    with pytest.raises(BadInput, match="Several outputs"):
        model.predict(X)
    with pytest.raises(BadInput, match="unknown: \\['up'\\]"):
        model.predict(X, np.where(output == "left", "up", output))
    with pytest.raises(BadInput, match="one class only"):
        model.fit(X, y, output=np.where(y == "up", "a", "b"))


def test_views_are_named_by_number_or_by_name() -> None:
    model, X, y = quick(QUICK[1])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.set_params(views=[["a"], ["c", "b"]]).fit(frame, y)
    assert model.view_columns_ == [[0], [2, 1]]
    assert len(model.model_.relevance()) == 2
    with pytest.raises(BadInput, match="'d'"):
        model.set_params(views=[["d"]]).fit(frame, y)


@pytest.mark.parametrize(
    ("estimator", "wrong"),
    [
        (GPzRegressor(covariance="XX"), "'XX' is unknown"),
        (GPzRegressor(input_density="grid"), "'grid'"),
        (GPzRegressor(validation_fraction=1.5), "validation_fraction == 1.5"),
        (GPzRegressor(max_iter=0), "max_iter == 0"),
        (DFGPRegressor(bound="tight"), "'tight'"),
        (DFGPClassifier(output="cubic"), "'cubic'"),
        (LaplaceGPClassifier(link="cauchit"), "'cauchit'"),
        (MOGPARClassifier(batch_size=0), "batch"),
        (SCLVMClassifier(n_inducing=0), "inducing"),
    ],
)
def test_a_wrong_parameter_is_named(estimator: Any, wrong: str) -> None:
    model, X, y = quick(estimator)
    with pytest.raises(ValueError, match=wrong):
        model.fit(X, y)


def held(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Half to learn from, half held out."""
    found = train_test_split(X, y, test_size=0.5, random_state=0)
    return tuple(found)


@pytest.mark.parametrize(
    "model",
    [GPzRegressor(5, "GL", random_state=0), DFGPRegressor(random_state=0)],
    ids=lambda e: type(e).__name__,
)
def test_values_are_predicted_as_well_as_by_linear_regression(model: BaseEstimator) -> None:
    X, X_test, y, y_test = held(*load_diabetes(return_X_y=True))
    linear = LinearRegression().fit(X, y).score(X_test, y_test)
    assert clone(model).fit(X, y).score(X_test, y_test) > linear - 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        LaplaceGPClassifier(),
        make_pipeline(StandardScaler(), PCA(8), DFGPClassifier(random_state=0)),
        MOGPARClassifier(random_state=0),
    ],
    ids=["laplace", "dfgp", "mogp-ar"],
)
def test_classes_are_predicted_as_well_as_by_scikit_learns_process(model: BaseEstimator) -> None:
    X, X_test, y, y_test = held(*load_breast_cancer(return_X_y=True))
    peer = make_pipeline(StandardScaler(), GaussianProcessClassifier(random_state=0)).fit(X, y)
    found = clone(model).fit(X, y)
    assert found.score(X_test, y_test) > peer.score(X_test, y_test) - 0.03
    ignorant = DummyClassifier().fit(X, y).predict_proba(X_test)
    assert log_loss(y_test, found.predict_proba(X_test)) < 0.5 * log_loss(y_test, ignorant)


def test_sclvm_tells_three_classes_apart() -> None:
    X, X_test, y, y_test = held(*load_iris(return_X_y=True))
    model = SCLVMClassifier(1, 2, 4, max_iter=40, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.85
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.5 * np.log(3)


def test_a_classifier_of_two_classes_serves_for_more_by_one_against_the_rest() -> None:
    X, X_test, y, y_test = held(*load_iris(return_X_y=True))
    assert OneVsRestClassifier(LaplaceGPClassifier()).fit(X, y).score(X_test, y_test) > 0.9


def test_scant_itself_stays_light() -> None:
    script = "import scant, sys; assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""Noisy and missing inputs (Almosallam 2017, chapter 5) on artificial data.

Choices that the thesis does not state: GPz has full covariances and no linear mean, since the
equations have none; training takes up to 500 steps, as in section 6.2.2; forests have at least
three rows a leaf; NIGP, with constant noise, has as many inducing inputs as GPz basis functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from sklearn.ensemble import RandomForestRegressor
from sklearn.mixture import GaussianMixture

from scant import metrics
from scant.learners.knocked_out import forest
from scant.models.gpz.input_density import Mixture
from scant.models.gpz.prediction import GPzPrediction
from scant.models.nigp import NIGP
from scant.studies.redshift.reproduce.artificial import (
    INPUT_VARIANCE,
    RANGE,
    Inputs,
    Learned,
    Values,
    learn,
    likelihood,
    moments_given,
    noisy_sinc,
    three_gaussians,
)
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score

SINC = "sinc with varying noise (section 3.2)"
BUMPS = "three Gaussians (4.35)"
VARIES = "data and starts"
MOMENTS = Experiment("moments for noisy inputs", SINC, VARIES)
MISSING = Experiment("one of two inputs missing", BUMPS, VARIES)
BOTH = Experiment("moments for missing and noisy inputs", BUMPS, VARIES)
TRAINING = Experiment("learning from noisy inputs", SINC, VARIES)
GAPS = Experiment("learning with one of two inputs missing", BUMPS, VARIES)
QUANTITIES = ("E[f]", "E[f^2]", "E[nu^2]", "E[sigma^2]")
VARIANCES = (1.0, 2.0, 4.0, 8.0)  # of x in Figure 5.5
NOISES = {False: "constant noise", True: "varying noise"}
WAYS = (
    "deterministic", "sampling", "noise as input", "noise as cost", "expected basis functions",
    "NIGP",
)  # fmt: skip
FOREST = "random forest"


class Size(NamedTuple):
    """Sizes of the experiments.

    Attributes:
        repeats: Number of data sets.
        sinc_rows: Rows of the sinc example (section 3.2).
        sinc_basis: Basis functions there (Figure 5.6).
        draws: Draws for each input distribution (section 5.1.1).
        drawn: Test rows with one input drawn and one missing; 1,000 in section 5.1.3.
        copies: Draws of each training row; 100 in section 5.2.1, which takes hours.
        rows: Rows of each of three sets of the three Gaussians (section 5.1.2).
        basis: Basis functions, trees and mixture components there.
        trained: Training rows with gaps (section 5.2.2).
        many: Basis functions and trees there.
        shares: Percentages of rows with a gap; all whole numbers in section 5.2.2.
        steps: Maximum steps of L-BFGS.
    """

    repeats: int = 3
    sinc_rows: int = 4000
    sinc_basis: int = 100
    draws: int = 1000
    drawn: int = 200
    copies: int = 10
    rows: int = 1000
    basis: int = 50
    trained: int = 2000
    many: int = 100
    shares: Sequence[int] = tuple(range(0, 101, 10))
    steps: int = 500


SMALL = Size(1, 150, 6, 10, 8, 2, 40, 4, 60, 6, (0, 100), 4)


def runs(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Moments compared with sampling, predictions and training with noisy and missing inputs.

    Args:
        quick: One draw of the data, few rows and basis functions.
        data: Not used; the data are artificial.
        fit: Not used; fits of studies have no noisy inputs of known variance.
    """
    size = SMALL if quick else Size()
    for seed in range(size.repeats):
        yield Run(f"{MOMENTS.name}, draw {seed}", partial(noisy_moments, size, seed))
        yield Run(f"{MISSING.name}, draw {seed}", partial(one_missing, size, seed))
        yield Run(
            f"{MOMENTS.name}, squared link, draw {seed}",
            partial(noisy_moments, size, seed, "squared"),
        )
        yield Run(f"{BOTH.name}, squared link, draw {seed}", partial(squared_link, size, seed))
        for way in WAYS:
            name = f"{TRAINING.name}, {way}, draw {seed}"
            yield Run(name, partial(noisy_training, size, way, seed))
        for share in size.shares:
            name = f"{GAPS.name}, {share}%, draw {seed}"
            yield Run(name, partial(training_with_gaps, size, share, seed))


def noisy_moments(size: Size, seed: int, noise_link: str = "exp") -> Iterator[Score]:
    """Scores of Table 5.1: moments at noisy inputs, compared with means over draws.

    With exact moments the mean z-score is sqrt(2 / (pi draws)): .025 for the 1,000 draws of the
    text, and .0080 for 10,000, which are drawn for a tenth of the inputs.
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(-RANGE, RANGE, size.sinc_rows)
    y = noisy_sinc(x, rng)
    learned = learn(x[:, None], y, size.sinc_basis, size.steps, seed, noise_link=noise_link)
    variances = gamma(rng, len(x))
    for every, draws in ((1, size.draws), (10, 10 * size.draws)):
        center, variance = x[::every, None], variances[::every, None]
        scores = z_scores(learned.predict, center, variance, draws, rng)
        for name, score in (scores if noise_link == "exp" else of_squared_link(scores)).items():
            yield Score(MOMENTS, f"formulas beside {draws:,} draws", f"z-score of {name}", score)


def of_squared_link(scores: dict[str, float]) -> dict[str, float]:
    """Score of the noise, the only one of this link in Tables 5.1 and 5.3."""
    name = QUANTITIES[-1]
    return {f"{name}, squared link": scores[name]}


def gamma(rng: np.random.Generator, n: int) -> Values:
    """Input variances of section 5.1.1, with mean .5 and variance .25."""
    return rng.gamma(1.0, INPUT_VARIANCE, n)


def z_scores(
    predict: Callable[[Inputs, Inputs | None], GPzPrediction],
    x: Inputs,
    variances: Inputs,
    draws: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Mean |formula - mean of draws| / (deviation of draws) of the four `QUANTITIES`.

    Args:
        predict: Predicts rows, NaN where missing, given variances of the others.
        x: Inputs.
        variances: Their variances; 0 where exact or missing.
        draws: Number of draws for each row.
        rng: Random generator.
    """
    formula = quantities(predict(x, variances))
    mean, deviation = np.zeros((2, *formula.shape))
    for rows in np.array_split(np.arange(len(x)), max(1, len(x) * draws // 100_000)):
        noise = rng.standard_normal((len(rows), draws, x.shape[1]))
        samples = x[rows, None] + np.sqrt(variances[rows, None]) * noise
        moments = quantities(predict(samples.reshape(-1, x.shape[1]), None))
        moments = moments.reshape(len(QUANTITIES), len(rows), draws)
        mean[:, rows], deviation[:, rows] = moments.mean(2), moments.std(2)
    scores = (np.abs(formula - mean) / deviation).mean(1)
    return {name: float(score) for name, score in zip(QUANTITIES, scores)}


def quantities(prediction: GPzPrediction) -> Float[ndarray, "4 n"]:
    """E[f], E[f^2], E[nu^2] and E[sigma^2] of predicted rows."""
    p = {name: value.numpy() for name, value in vars(prediction).items()}
    squared = p["mean"] ** 2 + p["input_variance"]
    return np.array([p["mean"], squared, p["model_variance"], p["noise_variance"]])


def one_missing(size: Size, seed: int) -> Iterator[Score]:
    """Scores of Tables 5.2 and 5.3 and of Figure 5.5: one of two inputs missing, and both.

    The expected value of the missing input, and its single Gaussian, are as in Figures 5.1 and 5.2:
    a GPz predicts the missing input from the other.
    """
    rng = np.random.default_rng(seed)
    (x, x_valid, x_test), (y, y_valid, y_test) = three_sets(size, seed)
    fit = partial(learn, m=size.basis, steps=size.steps, seed=seed)
    learned = fit(x, y, validation=(x_valid, y_valid))
    joint = joint_mixture(np.column_stack([x, y]), size.basis, seed)
    for missing, name in enumerate("xy"):
        observed = np.arange(2) != missing
        observed_x, observed_valid, observed_test = (
            part[:, observed] for part in (x, x_valid, x_test)
        )
        reference = fit(observed_x, y, validation=(observed_valid, y_valid))
        input_model = fit(
            observed_x, x[:, missing], validation=(observed_valid, x_valid[:, missing])
        )
        predicted_input = input_model.predict(observed_test)
        filled, variances, with_gaps = x_test.copy(), np.zeros_like(x_test), x_test.copy()
        filled[:, missing], variances[:, missing] = predicted_input.mean, predicted_input.variance
        with_gaps[:, missing] = np.nan
        for method, score in {
            "reference model": likelihood(reference.predict(observed_test), y_test),
            "GPz, whole mixture": likelihood(learned.predict(with_gaps), y_test),
            "GPz, one Gaussian": likelihood(
                learned.predict_by_one_gaussian(with_gaps, observed), y_test
            ),
            "GPz, expected input": likelihood(learned.predict(filled), y_test),
            "GPz, predicted Gaussian": likelihood(learned.predict(filled, variances), y_test),
            "Gaussian mixture by EM": by_mixture(joint, with_gaps, y_test, observed),
            FOREST: by_forest(x, y, with_gaps, y_test, size.basis, seed),
        }.items():
            yield Score(MISSING, method, f"mean log-likelihood, {name} missing", score)
        for quantity, score in missing_and_noisy(learned, with_gaps, size, rng).items():
            metric = f"z-score of {quantity}, {name} missing"
            yield Score(BOTH, f"formulas beside {size.draws:,} draws", metric, score)
    line = np.column_stack([np.linspace(-5, 18, 100), np.full(100, np.nan)])  # Figure 5.5
    for common in VARIANCES:
        spread = np.full((100, 2), (common, 0.0))
        scores = z_scores(learned.predict, line, spread, size.draws // 2, rng)
        for quantity, score in scores.items():
            metric = f"z-score of {quantity}, variance {common:.0f}"
            yield Score(BOTH, f"formulas beside {size.draws // 2:,} draws", metric, score)


def three_sets(size: Size, seed: int) -> tuple[list[Inputs], list[Values]]:
    """Inputs and targets of the three Gaussians, to learn from, to validate and to test with."""
    x, y = three_gaussians(3 * size.rows, seed)
    return np.split(x, 3), np.split(y, 3)


def missing_and_noisy(
    learned: Learned, x: Inputs, size: Size, rng: np.random.Generator
) -> dict[str, float]:
    """`z_scores` at the first test rows, with noise of random variances on observed inputs."""
    rows = x[: size.drawn]
    variance = np.where(np.isnan(rows), 0.0, gamma(rng, len(rows))[:, None])
    rows = rows + np.sqrt(variance) * rng.standard_normal(rows.shape)
    return z_scores(learned.predict, rows, variance, size.draws, rng)


def squared_link(size: Size, seed: int) -> Iterator[Score]:
    """Row of Table 5.3 with the squared link of the noise."""
    rng = np.random.default_rng(seed)
    (x, x_valid, x_test), (y, y_valid, _) = three_sets(size, seed)
    validation = x_valid, y_valid
    learned = learn(x, y, size.basis, size.steps, seed, validation=validation, noise_link="squared")
    for missing, name in enumerate("xy"):
        with_gaps = x_test.copy()
        with_gaps[:, missing] = np.nan
        scores = missing_and_noisy(learned, with_gaps, size, rng)
        for quantity, score in of_squared_link(scores).items():
            metric = f"z-score of {quantity}, {name} missing"
            yield Score(BOTH, f"formulas beside {size.draws:,} draws", metric, score)


def joint_mixture(rows: Float[ndarray, "n 3"], k: int, seed: int) -> tuple[Mixture, ndarray]:
    """Gaussian mixture of standardized inputs and targets by EM (5.42), and their scales."""
    scales = np.array([rows.mean(0), rows.std(0)])
    fitted = GaussianMixture(k, random_state=seed).fit((rows - scales[0]) / scales[1])
    log_weights = np.log(fitted.weights_)
    parts = (torch.tensor(p) for p in (log_weights, fitted.means_, fitted.precisions_))
    return Mixture(*parts), scales


def by_mixture(
    joint: tuple[Mixture, ndarray], x: Inputs, y: Values, observed: Bool[ndarray, " d"]
) -> float:
    """Mean log-likelihood of targets given the observed inputs, as one Gaussian (5.23)."""
    mixture, (center, scale) = joint
    rows = torch.tensor((np.column_stack([x, np.full(len(x), np.nan)]) - center) / scale)
    mean, covariance = moments_given(mixture, rows, torch.tensor([*observed, False]))
    predicted = mean[:, -1].numpy() * scale[-1] + center[-1]
    return metrics.mean_log_likelihood(y, predicted, covariance[:, -1, -1].numpy() * scale[-1] ** 2)


def by_forest(
    x: Inputs,
    y: Values,
    query: Float[ndarray, "k d"],
    truth: Float[ndarray, " k"],
    trees: int,
    seed: int,
) -> float:
    """Mean log-likelihood under a forest (`forest_moments`)."""
    return metrics.mean_log_likelihood(truth, *forest_moments(x, y, query, trees, seed))


def forest_moments(
    x: Inputs, y: Values, query: Float[ndarray, "k d"], trees: int, seed: int
) -> tuple[Float[ndarray, " k"], Float[ndarray, " k"]]:
    """Mean and variance under a forest; trees stop where the input of a split is missing.

    A tree then predicts from the training rows in that node. The variance is that within nodes and
    between trees.
    """
    model = RandomForestRegressor(
        trees, min_samples_leaf=3, max_features="sqrt", random_state=seed
    ).fit(x, y)
    values, impurities = [], []
    for tree in (estimator.tree_ for estimator in model.estimators_):
        node, row = np.zeros(len(query), int), np.arange(len(query))
        for _ in range(tree.max_depth):
            value = query[row, tree.feature[node]]
            descends = (tree.feature[node] >= 0) & ~np.isnan(value)
            left = value <= tree.threshold[node]
            child = np.where(left, tree.children_left[node], tree.children_right[node])
            node = np.where(descends, child, node)
        values.append(tree.value[node, 0, 0])
        impurities.append(tree.impurity[node])
    return np.mean(values, 0), np.var(values, 0) + np.mean(impurities, 0)


class Noisy(NamedTuple):
    """Rows of the sinc example with inputs from N(x, variance), and inputs of predictions."""

    x: Values
    variance: Values
    y: Values
    at: Values


def noisy_training(size: Size, way: str, seed: int) -> Iterator[Score]:
    """Scores of Table 5.4: error about sinc(x) after training on noisy inputs.

    True inputs are evenly spaced; the noisy training inputs are drawn around them, as in the
    authors' program.
    """
    rng = np.random.default_rng(seed)
    true = np.linspace(-RANGE, RANGE, size.sinc_rows)
    variance = gamma(rng, len(true))
    x = true + np.sqrt(variance) * rng.standard_normal(len(true))
    rows = Noisy(x, variance, noisy_sinc(true, rng), np.linspace(-RANGE, RANGE, 1000))
    if way == "NIGP":
        model = NIGP.build(torch.tensor(x[:, None]), torch.tensor(rows.y), size.sinc_basis)
        model.learn()
        mean = model.predict(torch.tensor(rows.at[:, None]))[0].numpy()
        yield Score(TRAINING, way, f"RMSE, {NOISES[False]}", metrics.rmse(np.sinc(rows.at), mean))
        return
    fit = partial(learn, m=size.sinc_basis, steps=size.steps, seed=seed)
    for heteroscedastic, name in NOISES.items():
        with_noise = partial(fit, heteroscedastic=heteroscedastic)
        predicted = learned_by(way, with_noise, rows, size.copies, rng)
        error = metrics.rmse(np.sinc(rows.at), predicted.mean.numpy())
        yield Score(TRAINING, way, f"RMSE, {name}", error)


def learned_by(
    way: str, fit: Callable[..., Learned], rows: Noisy, copies: int, rng: np.random.Generator
) -> GPzPrediction:
    """Predictions at exact inputs, after training on noisy ones in one of the `WAYS`."""
    x, variance, at = (column[:, None] for column in (rows.x, rows.variance, rows.at))
    match way:
        case "sampling":
            samples = x + np.sqrt(variance) * rng.standard_normal((len(x), copies))
            return fit(samples.reshape(-1, 1), np.repeat(rows.y, copies)).predict(at)
        case "noise as input":
            exact = np.hstack([at, np.zeros_like(at)])
            return fit(np.hstack([x, variance]), rows.y).predict(exact)
        case "noise as cost":
            return fit(x, rows.y, omega=1 / np.sqrt(rows.variance)).predict(at)
        case "expected basis functions":  # (5.72)
            return fit(x, rows.y, variances=variance).predict(at)
    return fit(x, rows.y).predict(at)


def training_with_gaps(size: Size, share: int, seed: int) -> Iterator[Score]:
    """Scores of Figure 5.8: predictions of complete rows after training on rows with gaps.

    Args:
        size: Sizes.
        share: Percentage of rows that lack one of the two inputs, at random.
        seed: Seed of data, gaps and initial values.
    """
    rng = np.random.default_rng(seed)
    n = size.trained
    x, y = three_gaussians(3 * (n // 2), seed)
    x_test, y_test = x[n:], y[n:]
    x, y = x[:n], y[:n]
    lacking = rng.permutation(n)[: n * share // 100]
    x[lacking, rng.integers(2, size=len(lacking))] = np.nan
    learned = learn(x, y, size.many, size.steps, seed)
    gpz_mean = learned.predict(x_test).mean.numpy()
    forest_mean, _ = forest(x, y, np.arange(n), x_test, seed)
    for method, mean in (("GPz", gpz_mean), (FOREST, forest_mean)):
        error = metrics.rmse(y_test, mean)
        yield Score(GAPS, method, f"RMSE, {share}% missing", error)

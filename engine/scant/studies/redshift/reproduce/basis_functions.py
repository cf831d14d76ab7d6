"""Examples of chapters 3 and 4 (Almosallam 2017): Figures 3.1-3.4, 4.2 and 4.3.

Scores are the numbers in each figure: log marginal likelihoods, counts of relevant basis functions
(3.2), errors, and coverage of intervals. The chapters state no number of iterations, no linear mean
and no initial values; ours are `STEPS` iterations of L-BFGS, no linear mean unless the figure is
about it, and k-means. The noise is constant unless the figure is about it. sinc(x) is
sin(pi x) / (pi x): the text does not mention pi, but the authors' program has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from gpytorch.distributions import MultivariateNormal as GaussianVector
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.models import ExactGP
from gpytorch.settings import max_cholesky_size
from jaxtyping import Float
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from scant.kernels.constraints import LogPositive
from scant.models.fitc import FITC
from scant.models.gpz.basis import relevant_count
from scant.models.gpz.model import GPz
from scant.models.gpz.training import GPzTrainer
from scant.models.gpz.weights import positive_moments
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.ascent import maximize
from scant.studies.redshift.growth_budget import NOISY
from scant.studies.redshift.shapes import tie
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score

STEPS = 300
EVIDENCE, RELEVANT = "log marginal likelihood", "relevant basis functions"
DRAWS = "draws"
SPARSE = Experiment("noisy sinc, relevant basis functions", "1,000 points of Figure 2.1", DRAWS)
NOISE = Experiment("noisy sinc, varying noise", "4,000 points of section 3.2", DRAWS)
POSITIVE = Experiment("positive outputs", "stand-in for the data of Figure 3.3", DRAWS)
TREND = Experiment("extrapolation by prior mean", "stand-in for the data of Figure 3.4", DRAWS)
SURFACE = Experiment("two-dimensional example", "3,000 points of (4.35)", DRAWS)
# Amplitude, mean and covariance of the Gaussians of (4.35)
BUMPS = (
    (-9.0, (10.0, 0.0), ((10.0, 0.0), (0.0, 1.0))),
    (6.0, (10.0, 10.0), ((5.0, -3.0), (-3.0, 3.0))),
    (3.0, (5.0, 5.0), ((2.0, 0.0), (0.0, 2.0))),
)


class Data(NamedTuple):
    """Rows to learn from and to test with."""

    X: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]
    new: Float[Tensor, "k d"]
    answer: Float[Tensor, " k"]


class Fitted(NamedTuple):
    """Log marginal likelihood, weights of the basis functions, and predictions with noise."""

    evidence: float
    weights: Tensor | None
    mean: Tensor
    variance: Tensor


def runs(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Runs of every figure, draw after draw.

    Args:
        quick: One draw, a tenth of the rows, and few basis functions and steps.
        data: Not used: all data are generated.
        fit: Not used: the models are trained directly.
    """
    for seed in range(1 if quick else 3):
        parts: tuple[tuple[Experiment, Callable[[bool, int], Iterator[Score]]], ...] = (
            (SPARSE, sparse),
            (POSITIVE, positive),
            (TREND, trend),
            (NOISE, noise),
        )
        for experiment, scores in parts:
            yield Run(f"{experiment.name}, draw {seed}", partial(scores, quick, seed))
        for m in (2, 4) if quick else (2, 4, 8, 16, 32, 64):
            yield Run(f"{SURFACE.name}, m={m}, draw {seed}", partial(surface, quick, seed, m))


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def noisy_sinc(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Evenly spaced x from -10 to 10 with y ~ N(sinc(x), .01) (section 2.1)."""
    x = torch.linspace(-10, 10, n, dtype=torch.float64)
    return x[:, None], torch.sinc(x) + 0.1 * _normal(generator, n)


def deviation(x: Tensor) -> Tensor:
    """sigma(x) = .01 + .2 (1 + sin 2x) / (1 + exp(-.2x)) (section 3.2)."""
    return 0.01 + 0.2 * (1 + torch.sin(2 * x)) / (1 + torch.exp(-0.2 * x))


def sinc_with_noise(x: Tensor, normal: Tensor) -> Tensor:
    """y ~ N(sinc(x), sigma(x)^2) (section 3.2), from draws of N(0, 1)."""
    return torch.sinc(x) + deviation(x) * normal


def varying_noise(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """x with y of `sinc_with_noise`.

    The thesis does not state the distribution of x. Data are missing between -5 and -4, and
    Table 5.1 covers -12 to 12: ours is uniform from -10 to 10 with a twentieth of the density
    between -5 and -4.
    """
    x = 20 * torch.rand(2 * n, generator=generator, dtype=torch.float64) - 10
    dropped = torch.rand(2 * n, generator=generator, dtype=torch.float64) > 0.05
    x = x[~((x > -5) & (x < -4) & dropped)][:n]
    return x[:, None], sinc_with_noise(x, _normal(generator, n))


def bumps(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """n points from each Gaussian of (4.35), and targets with noise of .01 (4.36)."""
    gaussians = [
        (a, MultivariateNormal(torch.tensor(mean).double(), torch.tensor(covariance).double()))
        for a, mean, covariance in BUMPS
    ]
    X = torch.cat([g.loc + _normal(generator, n, 2) @ g.scale_tril.mT for _, g in gaussians])
    f = torch.stack([a * g.log_prob(X).exp() for a, g in gaussians]).sum(0)
    return X, f + 0.01 * _normal(generator, 3 * n)


def _draw(make: Callable[[int, torch.Generator], tuple[Tensor, Tensor]], n: int, seed: int) -> Data:
    generator = _generator(seed)
    return Data(*make(n, generator), *make(n, generator))


def bfm(
    data: Data, model: GPz, seed: int, steps: int, start: Callable[[GPz], None] | None = None
) -> Fitted:
    """Train a basis function model on standardized rows.

    Args:
        data: Rows.
        model: The model.
        seed: Seed of its initial values.
        steps: Maximum iterations.
        start: Changes initial values or the learned parameters.
    """
    center, scale = data.X.mean(0), data.X.std(0)
    x, new = (data.X - center) / scale, (data.new - center) / scale
    mean, deviation = data.y.mean(), data.y.std()
    y = (data.y - mean) / deviation
    model.init_from_data(x, y, _generator(seed))
    if start is not None:
        start(model)
    trainer = GPzTrainer(model, x, y)
    maximize(trainer, steps)
    model.fit_posterior(x, y, mixture=None)
    prediction = model.predict(new)
    variance = prediction.model_variance + prediction.noise_variance
    evidence = trainer.log_evidence().item()
    if model.heteroscedastic:  # 3.9 less the prior of v
        scatter = model.tau @ model.v.square() - model.tau.log().sum()
        evidence += 0.5 * (scatter.item() + len(model.v) * math.log(2 * math.pi))
    return Fitted(
        evidence - len(y) * float(deviation.log()),
        model.weight_mean[: len(model.centres)],
        prediction.mean * deviation + mean,
        variance * deviation.square(),
    )


def fitc(data: Data, m: int, seed: int, steps: int) -> Fitted:
    """FITC with m pseudo-points."""
    model = FITC.build(data.X, data.y, m, _generator(seed))
    maximize(AdamLBFGS(model, model.log_density, len(data.y), adam=0), steps)
    mean, variance = model.predict(data.new)
    return Fitted(model.log_density().item(), model.weights(), mean, variance)


class FullGP(ExactGP):
    """GP with an RBF kernel and constant noise, on all rows at once."""

    def __init__(self, data: Data) -> None:
        super().__init__(data.X, data.y, GaussianLikelihood(noise_constraint=LogPositive()))
        rbf = RBFKernel(lengthscale_constraint=LogPositive())
        self.kernel = ScaleKernel(rbf, outputscale_constraint=LogPositive())
        self.double()
        variance = float(data.y.var())
        rbf.lengthscale, self.kernel.outputscale = 1.0, variance
        self.likelihood.noise = 0.1 * variance

    def forward(self, X: Tensor) -> GaussianVector:
        """Prior of f at rows."""
        return GaussianVector(torch.zeros_like(X[:, 0]), self.kernel(X))

    def log_density(self) -> Tensor:
        """ln N(y; 0, K + noise I), in nats."""
        self.train()
        value: Tensor = self.likelihood(self(*self.train_inputs)).log_prob(self.train_targets)
        return value

    @torch.no_grad()
    def fitted(self, new: Tensor) -> Fitted:
        """Predictions of new rows."""
        evidence = self.log_density().item()
        predicted = self.eval().likelihood(self(new))
        return Fitted(evidence, None, predicted.mean, predicted.variance)


def _rmse(a: Tensor, b: Tensor) -> float:
    return (a - b).square().mean().sqrt().item()


def sparse(quick: bool, seed: int) -> Iterator[Score]:
    """Figure 3.1: relevant basis functions of BFM without and with ARD, FITC, and the RVM.

    The RVM has a basis function at each of the training points. Its lengthscale is that of the BFM
    with ARD, where the thesis has a line search; only precisions and noise are learned.
    """
    n, m, steps = (100, 10, 20) if quick else (1000, 100, STEPS)
    data = _draw(noisy_sinc, n, seed)
    learned: list[Tensor] = []

    def gl(m: int) -> GPz:
        return GPz(1, m, "GL", heteroscedastic=False, joint_mean=False)

    @torch.no_grad()
    def relevance_vectors(model: GPz) -> None:
        model.centres.copy_((data.X - data.X.mean(0)) / data.X.std(0))
        model.gamma.copy_(learned[0])
        model.centres.requires_grad_(False)
        model.gamma.requires_grad_(False)

    def with_ard() -> Fitted:
        model = gl(m)
        fitted = bfm(data, model, seed, steps)
        learned.append(model.gamma.detach())
        return fitted

    fits: dict[str, Callable[[], Fitted]] = {
        "BFM, one precision": lambda: bfm(data, gl(m), seed, steps, partial(tie, free=NOISY)),
        "BFM with ARD": with_ard,
        "FITC": lambda: fitc(data, m, seed, steps),
        "RVM": lambda: bfm(data, gl(n), seed, steps, relevance_vectors),
    }
    for method, fit in fits.items():
        fitted = fit()
        assert fitted.weights is not None
        yield Score(SPARSE, method, RELEVANT, relevant_count(fitted.weights))
        yield Score(SPARSE, method, EVIDENCE, fitted.evidence)


def noise(quick: bool, seed: int) -> Iterator[Score]:
    """Figure 3.2: a full GP, FITC and a BFM whose noise varies."""
    n, m, steps = (200, 10, 10) if quick else (4000, 100, STEPS)
    data = _draw(varying_noise, n, seed)

    def full() -> Fitted:
        model = FullGP(data)
        with max_cholesky_size(n):  # in place of conjugate gradients
            maximize(AdamLBFGS(model, model.log_density, n, adam=0), 15)  # it has three parameters
            return model.fitted(data.new)

    fits: dict[str, Callable[[], Fitted]] = {
        "full GP": full,
        "FITC": lambda: fitc(data, m, seed, steps),
        "BFM with varying noise": lambda: bfm(
            data, GPz(1, m, "GL", heteroscedastic=True, joint_mean=False), seed, steps
        ),
    }
    for method, fit in fits.items():
        fitted = fit()
        sd = fitted.variance.sqrt()
        likelihood = Normal(fitted.mean, sd).log_prob(data.answer).mean().item()
        yield Score(NOISE, method, EVIDENCE, fitted.evidence)
        yield Score(NOISE, method, "mean log-likelihood", likelihood)
        yield Score(NOISE, method, "RMSE", _rmse(fitted.mean, torch.sinc(data.new[:, 0])))
        yield Score(NOISE, method, "RMSE of the deviation", _rmse(sd, deviation(data.new[:, 0])))


def positive(quick: bool, seed: int) -> Iterator[Score]:
    """Figure 3.3: mean (3.18) and median of a log-normal target as predictions.

    The section does not state its data. Ours: ln y ~ N(1 + sin(x), (.1 + .08 x)^2), x uniform from
    0 to 10.
    """
    n, m, steps = (100, 10, 20) if quick else (1000, 200, STEPS)

    def make(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x = 10 * torch.rand(n, generator=generator, dtype=torch.float64)
        return x[:, None], 1 + x.sin() + (0.1 + 0.08 * x) * _normal(generator, n)

    data = _draw(make, n, seed)
    fitted = bfm(data, GPz(1, m, "GL", joint_mean=False), seed, steps)
    moments = positive_moments(fitted.mean, fitted.variance)
    y = data.answer.exp()
    yield Score(POSITIVE, "mean", "RMSE", _rmse(moments.mean, y))
    yield Score(POSITIVE, "median", "RMSE", _rmse(moments.median, y))


def trend(quick: bool, seed: int) -> Iterator[Score]:
    """Figure 3.4: zero, linear and regression prior means, within the data and beyond.

    The section does not state its data. Ours: y ~ N(sinc(x) + .1 x, .01), x evenly spaced from -10
    to 10; beyond is 10 < |x| < 15.
    """
    n, m, steps = (100, 10, 20) if quick else (1000, 100, STEPS)
    X, y = noisy_sinc(n, _generator(seed))
    new = torch.linspace(-15, 15, 601, dtype=torch.float64)
    truth = torch.sinc(new) + 0.1 * new
    data = Data(X, y + 0.1 * X[:, 0], new[:, None], truth)
    inside = new.abs() <= 10
    methods = {"zero": (False, False), "linear": (True, False), "regression": (True, True)}
    for name, (joint, regression) in methods.items():
        model = GPz(1, m, "GL", False, joint, regression_mean=regression)
        fitted = bfm(data, model, seed, steps)
        method = f"prior mean: {name}"
        yield Score(
            TREND, method, "RMSE, within the data", _rmse(fitted.mean[inside], truth[inside])
        )
        yield Score(TREND, method, "RMSE, beyond", _rmse(fitted.mean[~inside], truth[~inside]))
        yield Score(TREND, method, EVIDENCE, fitted.evidence)


def surface(quick: bool, seed: int, m: int) -> Iterator[Score]:
    """Figures 4.2 and 4.3: tanh, FITC, GPVL, GPVD, GPVC with m basis functions; GPVC of rank 1."""
    data = _draw(bumps, 50 if quick else 1000, seed)
    steps = 10 if quick else STEPS
    models = {
        "tanh": partial(GPz, basis="tanh"),
        "GPVL": partial(GPz, covariance="VL"),
        "GPVD": partial(GPz, covariance="VD"),
        "GPVC": partial(GPz, covariance="VC"),
        "GPVC of rank 1": partial(GPz, covariance="VC", rank=1),
    }
    fits: dict[str, Callable[[], Fitted]] = {
        name: partial(bfm, data, make(2, m, heteroscedastic=False, joint_mean=False), seed, steps)
        for name, make in models.items()
    }
    fits["FITC"] = partial(fitc, data, m, seed, steps)
    for method, fit in fits.items():
        fitted = fit()
        assert fitted.weights is not None
        yield Score(SURFACE, method, f"{EVIDENCE}, m={m}", fitted.evidence)
        yield Score(SURFACE, method, f"RMSE, m={m}", _rmse(fitted.mean, data.answer))
        yield Score(SURFACE, method, f"{RELEVANT}, m={m}", relevant_count(fitted.weights))

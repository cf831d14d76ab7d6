"""Categorical likelihood of MTGPA, with a softmax of one function fewer than there are classes.

Moreno-Muñoz et al. (2018), cited by Yousefi (2021) for tasks of every type: for C classes

    p(y = c | f) = exp(f_c) / (1 + sum over c' of exp(f_c')),    c = 0, ..., C - 2,

and class C - 1 is the reference, with f = 0. E_q[f_y] is exact. For two classes, the rest needs
the Gauss-Hermite quadrature (C.40) of the Bernoulli likelihood, for more it is an average over
fixed quasi-random normal points: product rules would need 32^(C - 1).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.distributions import Categorical as CategoricalDistribution

from scant.errors import BadInput
from scant.models.mtgpa.observing import Likelihood, Moments, MTGPAPrediction, hermite, moments

# Mean absolute errors with 3, 5 and 10 classes, deviations of f from 0.2 to 3: 3e-4, 2e-3 and
# 3e-3 nats of E[ln p(y | f)], 1e-4, 3e-4 and 5e-4 of probabilities. Antithetic pairs and whitened
# points have larger errors.
POINTS = 512
BLOCK = 1024  # supports at once: 4 MB of points for each class
JITTER = 1e-8  # share of the variance, since C - 1 functions may mix fewer latent functions


class Categorical(Likelihood):
    """y is one of the classes 0, ..., C - 1, by a softmax of C - 1 functions.

    Functions are averages over the support, as for the other likelihoods: the probabilities of a
    large support are those of averaged log odds, not averages of probabilities, and a class is one
    observation of the whole support. `predict` describes the indicator of class 0; `probabilities`
    has all classes. With two classes, class 0 is what 1 is for the Bernoulli likelihood.

    Args:
        classes: Number C of classes, at least 2.

    Raises:
        BadInput: There are fewer than two classes.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        if classes < 2:
            raise BadInput(f"A categorical task needs at least 2 classes, got {classes}.")
        self.classes, self.functions = classes, classes - 1

    @classmethod
    def from_values(cls, y: Float[Tensor, " n"], task: int) -> Categorical:
        """Create a likelihood with as many classes as the largest value tells.

        Raises:
            BadInput: A value is not a whole number from 0, or all are 0.
        """
        _check_whole(y, task, "0, 1, 2 and so on")
        if int(y.max()) < 1:
            raise BadInput(f"Task {task} is categorical, but all its values are 0.")
        return cls(int(y.max()) + 1)

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> CategoricalDistribution:
        f = function_samples.unsqueeze(-1) if self.functions == 1 else function_samples
        return CategoricalDistribution(logits=_with_reference(f, -1))

    def marginal(self, function_dist: MultivariateNormal, **kwargs: Any) -> CategoricalDistribution:
        """Distribution of labels, by quadrature."""
        return CategoricalDistribution(probs=self.probabilities(moments(function_dist)).T)

    def check(self, y: Float[Tensor, " n"], task: int) -> None:
        _check_whole(y, task, f"the classes 0 to {self.classes - 1}", self.classes)

    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        count = torch.bincount(y.long(), minlength=self.classes).to(y) + 0.5
        offset = (count[:-1] / count[-1]).log()
        return torch.stack([offset, torch.ones_like(offset)])

    def trends(self, y: Float[Tensor, " n"]) -> Float[Tensor, "f n"]:
        """Indicators of the classes, less that of the reference, for the log odds f_c."""
        classes = torch.arange(self.functions).to(y).unsqueeze(1)
        return (y == classes).to(y) - (y == self.functions).to(y)

    def value(self, y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        return (y == 0).to(y)

    def _expected(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        if self.functions == 1:
            nodes, weights = hermite(q.mean[0], q.covariance[0, 0])
            return (weights * _log_softmax(nodes.unsqueeze(1), y)).sum(0)
        mean = _with_reference(q.mean, 0)
        normalizer: Tensor = _LogNormalizer.apply(q.mean, q.covariance)
        return mean.gather(0, y.long().unsqueeze(0))[0] - normalizer

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        f, weights = self._nodes(q)
        return (weights.log() + _log_softmax(f, y)).logsumexp(0)

    def probabilities(self, q: Moments) -> Float[Tensor, "c n"]:
        """E_q[p(y = c | f)] of all classes, in blocks of supports."""
        result = []
        for block in zip(q.mean.split(BLOCK, 1), q.covariance.split(BLOCK, 2)):
            f, weights = self._nodes(Moments(*block))
            result.append((weights.unsqueeze(2) * _softmax(f)).sum(0))
        return torch.cat(result, 1)

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        """Predict the indicator of class 0."""
        f, weights = self._nodes(q)
        p = _softmax(f)[:, 0]
        mean = (weights * p).sum(0)
        variance = (weights * (p - mean).square()).sum(0)
        return MTGPAPrediction(mean, variance, mean * (1 - mean) - variance)

    def _nodes(self, q: Moments) -> tuple[Float[Tensor, "s f n"], Float[Tensor, "s 1"]]:
        """Values of the functions, and weights, of the rule that averages over q."""
        if self.functions == 1:
            nodes, weights = hermite(q.mean[0], q.covariance[0, 0])
            return nodes.unsqueeze(1), weights
        f = _at_points(q.mean, q.covariance)
        return f, f.new_full((len(f), 1), 1 / len(f))


class _LogNormalizer(torch.autograd.Function):
    """E[ln(1 + sum over c of exp f_c)] with the gradients of Bonnet and Price.

    Its derivatives are E[p] by the mean and E[diag(p) - p p^T] / 2 by the covariance, over the same
    points. Unlike derivatives through the Cholesky factor, these stay bounded for functions that
    are perfectly correlated, and natural steps keep a positive definite precision.
    """

    @staticmethod
    def forward(ctx: Any, mean: Tensor, covariance: Tensor) -> Tensor:
        f = _at_points(mean, covariance)
        log_normalizer = _with_reference(f, 1).logsumexp(1)
        p = (f - log_normalizer.unsqueeze(1)).exp()
        expected = p.mean(0)
        pairs = torch.einsum("sfn,sgn->fgn", p, p) / len(p)
        curvature = torch.diag_embed(expected.T).permute(1, 2, 0) - pairs
        ctx.save_for_backward(expected, 0.5 * curvature)
        return log_normalizer.mean(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        by_mean, by_covariance = ctx.saved_tensors
        return grad * by_mean, grad * by_covariance


def _at_points(
    mean: Float[Tensor, "f n"], covariance: Float[Tensor, "f f n"]
) -> Float[Tensor, "s f n"]:
    """Functions with these moments at the fixed points."""
    blocks = covariance.permute(2, 0, 1)
    diagonal = blocks.diagonal(dim1=1, dim2=2)
    jitter = JITTER * diagonal.amax(1, keepdim=True).clamp(min=JITTER).expand_as(diagonal)
    root = torch.linalg.cholesky(blocks + torch.diag_embed(jitter))
    return mean + torch.einsum("nfg,sg->sfn", root, _normal(len(mean)).to(mean))


@cache
def _normal(dimensions: int) -> Float[Tensor, "s f"]:
    """Fixed quasi-random points of a standard normal; do not modify the result."""
    uniform = torch.quasirandom.SobolEngine(dimensions, scramble=True, seed=0).draw(
        POINTS, dtype=torch.float64
    )
    return torch.special.ndtri(uniform.clamp(1e-10, 1 - 1e-10))


def _with_reference(f: Tensor, dim: int) -> Tensor:
    """Functions along `dim`, and behind them the zero of the reference."""
    return torch.cat([f, torch.zeros_like(f.narrow(dim, 0, 1))], dim)


def _softmax(f: Float[Tensor, "s f n"]) -> Float[Tensor, "s c n"]:
    return _with_reference(f, 1).softmax(1)


def _log_softmax(f: Float[Tensor, "s f n"], y: Float[Tensor, " n"]) -> Float[Tensor, "s n"]:
    """Log probability of each row's class."""
    log_p = _with_reference(f, 1).log_softmax(1)
    return log_p.gather(1, y.long().expand(len(f), 1, -1)).squeeze(1)


def _check_whole(
    y: Float[Tensor, " n"], task: int, wanted: str, below: float = float("inf")
) -> None:
    bad = (y < 0) | (y != y.round()) | (y >= below)
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise BadInput(
            f"Task {task} is categorical, but its value {row} is {float(y[row]):g}; use {wanted}."
        )

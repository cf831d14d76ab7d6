"""Precomputed terms of GPz's predictions for rows with the same missing pattern.

Almosallam (2017), 5.22-5.40. p(o, j) E[g(x) | o, j] integrates a product of Gaussians over the
missing values; as a function of the observed values o it has the same precision for every row.
Divided by p(o, j) it is the exponential of a quadratic function of o. Its coefficients are computed
once, so that predicting a row takes two matrix products and one exponential per pair of basis
functions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.inference.expectations import Forms, coefficients, marginal_forms, pair_blocks
from scant.models.gpz.input_density import Mixture

MAX_CACHED = 1 << 24  # elements of all cached coefficients (128 MiB)


class PosteriorState(NamedTuple):
    """Parameters and posterior of a fitted GPz, as used for predictions.

    Without a joint mean `linear` is empty, and the quadratic forms have no rows for it.
    `projection` maps the inputs, whose density is `mixture`, to those of the basis functions; it is
    empty if both are the same.
    """

    basis: Forms
    weights: Float[Tensor, " m"]
    linear: Float[Tensor, " l"]  # slopes and constant: d + 1, or none
    covariance: Float[Tensor, "p p"]
    v: Float[Tensor, " m"]
    b: Float[Tensor, ""]
    mixture: Mixture
    projection: Float[Tensor, "q d"]

    def quadratic(self) -> Float[Tensor, "2 p p"]:
        """Matrices of the quadratic forms f^2 (w w') and nu^2 (the covariance of w)."""
        mean = torch.cat([self.weights, self.linear])
        return torch.stack([torch.outer(mean, mean), self.covariance])

    def tensors(self) -> list[Tensor]:
        """All tensors, for `from_tensors`."""
        posterior = (self.weights, self.linear, self.covariance, self.v, self.b)
        return [*self.basis, *posterior, *self.mixture, self.projection]

    @classmethod
    def from_tensors(cls, tensors: Iterable[Tensor]) -> PosteriorState:
        """Restore the state from `tensors`."""
        A, b, c, weights, linear, covariance, v, bias, *mixture, projection = tensors
        basis = Forms(A, b, c)
        return cls(basis, weights, linear, covariance, v, bias, Mixture(*mixture), projection)

    def inner(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n q"]:
        """Project inputs to those of the basis functions."""
        return x @ self.projection.T if len(self.projection) else x

    def inner_covariance(self, spread: Float[Tensor, "n *d_d"]) -> Float[Tensor, "n *q_q"]:
        """Project variances or covariances of inputs."""
        P = self.projection
        if not len(P):
            return spread
        return (P * spread.unsqueeze(1) if spread.dim() == 2 else P @ spread) @ P.T


class ConditionalExpectations(NamedTuple):
    """Expectations given the observed values o and one component j of the inputs' density.

    Attributes:
        single: ln E[phi_i | o, j] = (`features` of o, 1) @ single.
        pairs: ln E[phi_i phi_j | o, j] = (`features` of o, 1) @ pairs.
        slope: For f^2 and nu^2, sum_i E[phi_i (row i of the matrix) (x, 1)] =
            sum_i E[phi_i] (slope_i o + constant_i).
        constant: See `slope`; both are zero without a joint mean.
        mean_slope: E[x | o, j] = mean_slope o + offset (5.30).
        offset: See `mean_slope`.
        spread: V[x | o, j] (5.27).
    """

    single: Float[Tensor, "f m"]
    pairs: Float[Tensor, "f k"]
    slope: Float[Tensor, "2 m o"]
    constant: Float[Tensor, "2 m"]
    mean_slope: Float[Tensor, "d o"]
    offset: Float[Tensor, " d"]
    spread: Float[Tensor, "d d"]


class Prepared:
    """Fitted GPz with a cache of `ConditionalExpectations` per missing pattern and component.

    Args:
        fitted: State of the model, copied because training changes it in place.
        noise_link: "exp" or "squared" (see `GPz`).
    """

    def __init__(self, fitted: PosteriorState, noise_link: str = "exp") -> None:
        self.noise_link = noise_link
        copies = (t.detach().clone() for t in fitted.tensors())
        self.fitted = PosteriorState.from_tensors(copies)
        self.quadratic = self.fitted.quadratic()
        self._cache = OrderedDict[tuple[tuple[bool, ...], int], ConditionalExpectations]()

    @cached_property
    def shares(self) -> Float[Tensor, "3 m m"]:
        """Coefficients of each product of basis functions in f^2, nu^2 and (phi' v)^2."""
        m = len(self.fitted.weights)
        squares = [*self.quadratic[:, :m, :m], torch.outer(self.fitted.v, self.fitted.v)]
        return torch.stack(squares)

    @cached_property
    def _pairs(self) -> list[Forms]:
        """Products of all pairs of basis functions; empty if too large to cache."""
        m, d = self.fitted.basis.b.shape
        small = m * (m + 1) // 2 * d * d <= MAX_CACHED
        return list(self._paired()) if small else []

    def _paired(self) -> Iterator[Forms]:
        return (forms for forms, _, _ in pair_blocks(self.fitted.basis.full()))

    @cached_property
    def pair_shares(self) -> Float[Tensor, "3 k"]:
        """`shares` of each pair i <= j, doubled off the diagonal."""
        m = len(self.fitted.weights)
        i, j = torch.triu_indices(m, m, device=self.shares.device)
        double = torch.where(i == j, 1.0, 2.0).to(self.shares)
        return torch.stack([s[i, j] * double for s in self.shares])

    def matches(self, fitted: PosteriorState) -> bool:
        """Return True if the model's state has not changed."""
        pairs = zip(self.fitted.tensors(), fitted.tensors())
        return all(a.device == b.device and torch.equal(a, b) for a, b in pairs)

    def given(self, observed: Bool[Tensor, " d"], j: int) -> ConditionalExpectations:
        """Expectations for rows with these observed columns under component j, cached (LRU)."""
        key = (tuple(observed.tolist()), j)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        result = self._cache[key] = _given(
            self.fitted, self.quadratic, self._pairs or self._paired(), observed, j
        )
        size = sum(t.numel() for entry in self._cache.values() for t in entry)
        while size > MAX_CACHED and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            size -= sum(t.numel() for t in oldest)
        return result


def _given(
    fitted: PosteriorState,
    quadratic: Float[Tensor, "2 p p"],
    pairs: Iterable[Forms],
    observed: Bool[Tensor, " d"],
    j: int,
) -> ConditionalExpectations:
    density = fitted.mixture.forms().at(torch.tensor([j], device=observed.device))
    log_density = marginal_forms(density, observed)
    product = fitted.basis.full().plus(density)
    single = marginal_forms(product, observed).minus(log_density)

    def exponent(forms: Forms) -> Float[Tensor, "f _"]:
        return _exponent(marginal_forms(forms.plus(density), observed).minus(log_density))

    both = [exponent(forms) for forms in pairs]
    slope, constant = _cross(len(fitted.weights), quadratic, product, observed)
    mean_slope, offset, spread = (part[j] for part in fitted.mixture.conditional(observed))
    return ConditionalExpectations(
        _exponent(single),
        both[0] if len(both) == 1 else torch.cat(both, 1),
        slope,
        constant,
        mean_slope,
        offset,
        spread,
    )


def _exponent(forms: Forms) -> Float[Tensor, "f k"]:
    """Coefficients of the exponents, with the constant in the last row."""
    return -0.5 * torch.cat([coefficients(forms), forms.c.unsqueeze(1)], dim=1).T.contiguous()


def _cross(
    m: int, quadratic: Float[Tensor, "2 p p"], product: Forms, observed: Bool[Tensor, " d"]
) -> tuple[Float[Tensor, "2 m o"], Float[Tensor, "2 m"]]:
    """`slope` and `constant` of `ConditionalExpectations`."""
    d = len(observed)
    rows = quadratic[:, :m, m:]
    if not rows.shape[2]:
        return quadratic.new_zeros(2, m, int(observed.sum())), quadratic.new_zeros(2, m)
    A_uu = product.A[:, ~observed][:, :, ~observed]
    rhs = torch.cat([product.A[:, ~observed][:, :, observed], product.b[:, ~observed, None]], 2)
    solved = torch.linalg.solve(A_uu, rhs)
    missing_rows = rows[:, :, :d][:, :, ~observed]
    slope = rows[:, :, :d][:, :, observed] - torch.einsum(
        "smu,muo->smo", missing_rows, solved[..., :-1]
    )
    return slope, rows[:, :, d] + torch.einsum("smu,mu->sm", missing_rows, solved[..., -1])

"""What GPz's predictions of rows with the same missing values have in common.

Almosallam (2017), 5.22-5.40. p(o, j) E[g(x) | o, j] is an integral of a product of Gaussians over
the missing values alone; as a function of the observed o it has the same precision for every row.
Divided by p(o, j) it is again the exponential of a quadratic function of o, whose coefficients are
found once: to predict a row takes one matrix product, one exponential for each pair of basis
functions, and one more product.
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

KEPT = 1 << 24  # numbers of all coefficients that are kept (128 MiB)


class PosteriorState(NamedTuple):
    """What prediction needs of a fitted GPz.

    `linear` is empty, and the quadratic forms have no rows for it, without a joint mean.
    `projection` takes the inputs, whose density the mixture is, to those of the basis functions;
    it is empty where they are the same.
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
        """The matrices whose quadratic forms are f^2 and nu^2."""
        mean = torch.cat([self.weights, self.linear])
        return torch.stack([torch.outer(mean, mean), self.covariance])

    def tensors(self) -> list[Tensor]:
        """All numbers."""
        own = (self.weights, self.linear, self.covariance, self.v, self.b)
        return [*self.basis, *own, *self.mixture, self.projection]

    @classmethod
    def of(cls, tensors: Iterable[Tensor]) -> PosteriorState:
        """The inverse of `tensors`."""
        A, b, c, weights, linear, covariance, v, level, *mixture, projection = tensors
        basis = Forms(A, b, c)
        return cls(basis, weights, linear, covariance, v, level, Mixture(*mixture), projection)

    def inner(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n q"]:
        """Inputs as the basis functions take them."""
        return x @ self.projection.T if len(self.projection) else x

    def inner_spread(self, spread: Float[Tensor, "n *d_d"]) -> Float[Tensor, "n *q_q"]:
        """Variances or covariances of the same."""
        P = self.projection
        if not len(P):
            return spread
        return (P * spread.unsqueeze(1) if spread.dim() == 2 else P @ spread) @ P.T


class Given(NamedTuple):
    """Expectations given the observed values o and one component j of the inputs' density.

    Attributes:
        single: ln E[phi_i | o, j] is (`features` of o, 1) times this.
        both: Likewise of all pairs.
        slope: For f^2 and nu^2, sum over i of E[phi_i (row i of the matrix) (x, 1)] is the sum of
            E[phi_i] (slope_i o + constant_i).
        constant: See there; both are zero without a joint mean.
        along: E[x | o, j] = along o + offset (5.30).
        offset: See there.
        spread: V[x | o, j] (5.27).
    """

    single: Float[Tensor, "f m"]
    both: Float[Tensor, "f k"]
    slope: Float[Tensor, "2 m o"]
    constant: Float[Tensor, "2 m"]
    along: Float[Tensor, "d o"]
    offset: Float[Tensor, " d"]
    spread: Float[Tensor, "d d"]


class Prepared:
    """A fitted GPz, and what was found of it while rows were predicted.

    Args:
        fitted: The model; its numbers are copied, because training goes on in place.
    """

    def __init__(self, fitted: PosteriorState) -> None:
        copies = (t.detach().clone() for t in fitted.tensors())
        self.fitted = PosteriorState.of(copies)
        self.quadratic = self.fitted.quadratic()
        self._kept = OrderedDict[tuple[tuple[bool, ...], int], Given]()

    @cached_property
    def shares(self) -> Float[Tensor, "3 m m"]:
        """What f^2, nu^2 and ln^2 beta make of each product of basis functions."""
        m = len(self.fitted.weights)
        squares = [*self.quadratic[:, :m, :m], torch.outer(self.fitted.v, self.fitted.v)]
        return torch.stack(squares)

    @cached_property
    def _pairs(self) -> list[Forms]:
        """Products of all pairs of basis functions; none are kept where they are too large."""
        m, d = self.fitted.basis.b.shape
        small = m * (m + 1) // 2 * d * d <= KEPT
        return list(self._paired()) if small else []

    def _paired(self) -> Iterator[Forms]:
        return (forms for forms, _, _ in pair_blocks(self.fitted.basis.full()))

    @cached_property
    def pair_shares(self) -> Float[Tensor, "3 k"]:
        """The same for each pair i <= j, doubled off the diagonal."""
        m = len(self.fitted.weights)
        i, j = torch.triu_indices(m, m, device=self.shares.device)
        double = torch.where(i == j, 1.0, 2.0).to(self.shares)
        return torch.stack([s[i, j] * double for s in self.shares])

    def of(self, fitted: PosteriorState) -> bool:
        """Whether the model is this one still."""
        pairs = zip(self.fitted.tensors(), fitted.tensors())
        return all(a.device == b.device and torch.equal(a, b) for a, b in pairs)

    def given(self, observed: Bool[Tensor, " d"], j: int) -> Given:
        """For rows that have these columns, and a component; those asked last are kept."""
        key = (tuple(observed.tolist()), j)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        made = self._kept[key] = _given(
            self.fitted, self.quadratic, self._pairs or self._paired(), observed, j
        )
        size = sum(t.numel() for found in self._kept.values() for t in found)
        while size > KEPT and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            size -= sum(t.numel() for t in oldest)
        return made


def _given(
    fitted: PosteriorState,
    quadratic: Float[Tensor, "2 p p"],
    pairs: Iterable[Forms],
    observed: Bool[Tensor, " d"],
    j: int,
) -> Given:
    density = fitted.mixture.forms().at(torch.tensor([j], device=observed.device))
    level = marginal_forms(density, observed)
    product = fitted.basis.full().plus(density)
    single = marginal_forms(product, observed).minus(level)

    def exponent(forms: Forms) -> Float[Tensor, "f _"]:
        return _exponent(marginal_forms(forms.plus(density), observed).minus(level))

    both = [exponent(forms) for forms in pairs]
    slope, constant = _cross(len(fitted.weights), quadratic, product, observed)
    along, offset, spread = (part[j] for part in fitted.mixture.conditional(observed))
    return Given(
        _exponent(single),
        both[0] if len(both) == 1 else torch.cat(both, 1),
        slope,
        constant,
        along,
        offset,
        spread,
    )


def _exponent(forms: Forms) -> Float[Tensor, "f k"]:
    """Coefficients of the logarithms, of the constant last."""
    return -0.5 * torch.cat([coefficients(forms), forms.c.unsqueeze(1)], dim=1).T.contiguous()


def _cross(
    m: int, quadratic: Float[Tensor, "2 p p"], product: Forms, observed: Bool[Tensor, " d"]
) -> tuple[Float[Tensor, "2 m o"], Float[Tensor, "2 m"]]:
    """`slope` and `constant` of `Given`."""
    d = len(observed)
    rows = quadratic[:, :m, m:]
    if not rows.shape[2]:
        return quadratic.new_zeros(2, m, int(observed.sum())), quadratic.new_zeros(2, m)
    inner = product.A[:, ~observed][:, :, ~observed]
    sides = torch.cat([product.A[:, ~observed][:, :, observed], product.b[:, ~observed, None]], 2)
    pulled = torch.linalg.solve(inner, sides)
    loose = rows[:, :, :d][:, :, ~observed]
    slope = rows[:, :, :d][:, :, observed] - torch.einsum("smu,muo->smo", loose, pulled[..., :-1])
    return slope, rows[:, :, d] + torch.einsum("smu,mu->sm", loose, pulled[..., -1])

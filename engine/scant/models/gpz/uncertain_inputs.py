"""GPz's predictions with noisy or missing inputs: Almosallam (2017), section 5.1.

Differences from the thesis: with a joint linear mean E[f^2] and E[nu^2] also contain E[phi_j x] and
E[x x'], which the thesis omits. E[1/beta] is the second-order Taylor series 5.17 within each
component of the mixture, then averaged, since ln beta varies less within a component; for the
squared link the series is exact. Integrals use precisions (`Forms`), so basis functions may be
infinitely wide. With many inputs and few missing ones per row, integrals are over the missing ones
only (`partial_expectations`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.inference.expectations import (
    Forms,
    cached_chunks,
    exp_,
    features,
    log_expected,
    marginal_forms,
    pair_blocks,
    pair_forms,
    row_chunks,
    tilted_mean,
)
from scant.inference.partial_expectations import Partial
from scant.models.gpz.completion import MAX_DENSE_INPUTS, completed
from scant.models.gpz.given import Prepared
from scant.models.gpz.input_density import patterns
from scant.models.gpz.prediction import Components

# Components with less of a row's probability are dropped, a few thousandths in total.
MIN_SHARE = 1e-4


class Moments(NamedTuple):
    """Mean of f, V[f], E[nu^2] and E[1 / beta] of rows, each under one Gaussian."""

    mean: Float[Tensor, " r"]
    input_variance: Float[Tensor, " r"]
    model_variance: Float[Tensor, " r"]
    noise_variance: Float[Tensor, " r"]


class _Part(NamedTuple):
    """Moments of a subset of rows under one component of the mixture."""

    rows: Tensor
    component: int
    shares: Float[Tensor, " r"]
    moments: Moments


def predict_inputs(
    prepared: Prepared, X: Float[Tensor, "n d"], noise: Float[Tensor, "n *d_d"] | None
) -> Components:
    """Components of p(y | observed) for rows with NaN, with input noise, or with both.

    Args:
        prepared: State of the model.
        X: Inputs, NaN where missing.
        noise: Variances (n, d) or covariances (n, d, d) of the inputs; entries of missing values
            are ignored.
    """
    k = len(prepared.fitted.mixture.log_weights) if bool(X.isnan().any()) else 1
    out = X.new_zeros(5, len(X), k)
    if noise is None and (X.shape[1] > MAX_DENSE_INPUTS or len(prepared.fitted.projection)):
        for part in _incomplete(prepared, X):
            out[:, part.rows, part.component] = torch.stack([part.shares, *part.moments])
        return Components(*_reordered(out))
    for observed, rows in patterns(X):
        if noise is None:
            parts = _missing(prepared, X[rows], observed)
        else:
            parts = _noisy(prepared, X[rows], noise[rows], observed)
        for part in parts:
            out[:, rows[part.rows], part.component] = torch.stack([part.shares, *part.moments])
    return Components(*_reordered(out))


def _reordered(out: Float[Tensor, "5 n k"]) -> list[Tensor]:
    """Reorder shares and `Moments` to the fields of `Components`."""
    weights, mean, input_variance, model_variance, noise_variance = out
    return [weights, mean, model_variance, noise_variance, input_variance]


def _moments(
    prepared: Prepared,
    phi: Float[Tensor, "r m"],
    squares: Float[Tensor, "r 3"],
    cross: Float[Tensor, "2 r"],
    x: Float[Tensor, "r d"],
    spread: Float[Tensor, "*r d d"],
) -> Moments:
    """Combine expectations into the moments of f, nu^2 and 1 / beta.

    Args:
        prepared: State of the model.
        phi: E[phi_j].
        squares: Sums over pairs of E[phi_i phi_j] for f^2, nu^2 and (phi' v)^2.
        cross: Sums over j of E[phi_j (row j of the matrix) (x, 1)] for f^2 and nu^2.
        x: E[x].
        spread: V[x], shared or one per row.
    """
    fitted = prepared.fitted
    mean = phi @ fitted.weights  # (5.8)
    f2, nu = squares[:, 0], squares[:, 1]
    if len(fitted.linear):
        extended = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)
        mean = mean + extended @ fitted.linear
        blocks = prepared.quadratic[:, len(fitted.weights) :, len(fitted.weights) :]
        quadratic = torch.einsum("ri,sij,rj->sr", extended, blocks, extended)
        quadratic = quadratic + (blocks[:, None, :-1, :-1] * spread).sum((-1, -2))
        f2, nu = f2 + 2 * cross[0] + quadratic[0], nu + 2 * cross[1] + quadratic[1]
    linear = phi @ fitted.v
    variance = (squares[:, 2] - linear.square()).clamp(min=0)  # V[phi' v] (5.16)
    linear = linear + fitted.b  # (5.15)
    if prepared.noise_link == "exp":
        noise = (-linear).exp() * (1 + 0.5 * variance)  # (5.17)
    else:
        noise = linear.square() + variance  # (5.14), exact for a square
    return Moments(mean, (f2 - mean.square()).clamp(min=0), nu, noise)  # V[f] of 5.9-5.10


def _shares(log_joint: Float[Tensor, "r k"]) -> Float[Tensor, "r k"]:
    return _truncated((log_joint - log_joint.logsumexp(1, keepdim=True)).exp())


def _truncated(shares: Float[Tensor, "r k"]) -> Float[Tensor, "r k"]:
    truncated = torch.where(shares >= MIN_SHARE, shares, 0.0)
    return truncated / truncated.sum(1, keepdim=True)


def _missing(
    prepared: Prepared, X: Float[Tensor, "r d"], observed: Bool[Tensor, " d"]
) -> Iterator[_Part]:
    """Moments of rows with exact observed and missing values (5.22-5.40), per component.

    The cost per row is quadratic in the number of basis functions, times the number of components
    that the row belongs to.
    """
    o = X[:, observed]
    products = torch.cat([features(o, diagonal=False), o.new_ones(len(o), 1)], dim=1)
    shares = _shares(prepared.fitted.mixture.log_joint(X, observed))
    for j in (shares > 0).any(0).nonzero().squeeze(1).tolist():
        rows = (shares[:, j] > 0).nonzero().squeeze(1)
        expected, features_j, o_j = prepared.given(observed, j), products[rows], o[rows]
        phi = exp_(features_j @ expected.single)
        squares, cross = phi.new_empty(len(rows), 3), phi.new_zeros(2, len(rows))
        for r in cached_chunks(len(rows), expected.pairs.shape[1], phi.device):
            pair_products = exp_(features_j[r] @ expected.pairs)
            squares[r] = (prepared.pair_shares @ pair_products.T).T
        for total, slope, constant in zip(cross, expected.slope, expected.constant):
            torch.sum(phi * (o_j @ slope.T + constant), 1, out=total)
        x = o_j @ expected.mean_slope.T + expected.offset
        moments = _moments(prepared, phi, squares, cross, x, expected.spread)
        yield _Part(rows, j, shares[rows, j], moments)


def _incomplete(prepared: Prepared, X: Float[Tensor, "n d"]) -> Iterator[_Part]:
    """`_missing` for rows of any pattern, with integrals over the missing values only.

    The time per pattern and component is quadratic in the number of basis functions and cubic in
    the number of missing values (or of the basis functions' inputs, if fewer). Memory is bounded.
    """
    fitted = prepared.fitted
    m = len(fitted.weights)
    cross_rows = prepared.quadratic[:, :m, m:]
    for block in completed(*fitted.mixture, X):
        shares = _shares(block.log_joint)
        distinct, pattern = torch.unique(block.missing, dim=0, return_inverse=True)
        for index, missing in enumerate(distinct):
            for j in (shares[pattern == index] > 0).any(0).nonzero().squeeze(1).tolist():
                selected = ((pattern == index) & (shares[:, j] > 0)).nonzero().squeeze(1)
                root = _root(prepared, missing, block.covariance[j, selected[0]])
                x = fitted.inner(block.means[j, selected])
                partial = Partial.from_forms(fitted.basis, x, root)
                phi, shift = partial.singles()
                cross = phi.new_zeros(2, len(phi))
                if len(fitted.linear):
                    tilted = torch.einsum("nm,smd,nd->sn", phi, cross_rows[..., :-1], x)
                    correction = torch.einsum(
                        "nm,smr,nmr->sn", phi, cross_rows[..., :-1] @ root, shift
                    )
                    cross = tilted - correction + (phi @ cross_rows[..., -1].T).T
                squares, spread = partial.squares(prepared.shares), root @ root.T
                moments = _moments(prepared, phi, squares, cross, x, spread)
                yield _Part(block.rows[selected], j, shares[selected, j], moments)


def _root(
    prepared: Prepared, missing: Int[Tensor, " u"], covariance: Float[Tensor, "u u"]
) -> Float[Tensor, "q r"]:
    """Square root of the covariance of the basis functions' inputs, with minimal columns."""
    fitted = prepared.fitted
    lower = torch.linalg.cholesky(covariance)
    if not len(fitted.projection):
        root = lower.new_zeros(fitted.basis.b.shape[1], len(missing))
        root[missing] = lower
        return root
    root = fitted.projection[:, missing] @ lower
    if root.shape[1] <= len(root):
        return root
    values, vectors = torch.linalg.eigh(root @ root.T)
    return vectors * values.clamp(min=0).sqrt()


def _noisy(
    prepared: Prepared,
    X: Float[Tensor, "r d"],
    noise: Float[Tensor, "r *d_d"],
    observed: Bool[Tensor, " d"],
) -> Iterator[_Part]:
    """Moments of rows with noisy observed values (5.8-5.19) and missing ones (5.44-5.66)."""
    if bool(observed.all()):
        all_rows = torch.arange(len(X), device=X.device)
        moments = _noisy_moments(prepared, X, noise)
        yield _Part(all_rows, 0, torch.ones_like(X[:, 0]), moments)
        return
    mixture = prepared.fitted.mixture
    noise = noise if noise.dim() == 3 else torch.diag_embed(noise)
    noise, o = noise[:, observed][:, :, observed], X[:, observed]
    shares = _noisy_shares(marginal_forms(mixture.forms(), observed), o, noise)
    slope, offset, spread = mixture.conditional(observed)
    for j in (shares > 0).any(0).nonzero().squeeze(1):
        rows = (shares[:, j] > 0).nonzero().squeeze(1)
        x = o[rows] @ slope[j].T + offset[j]
        covariance = spread[j] + slope[j] @ noise[rows] @ slope[j].T  # (5.57)
        yield _Part(rows, int(j), shares[rows, j], _noisy_moments(prepared, x, covariance))


def _noisy_shares(
    density: Forms, o: Float[Tensor, "r o"], noise: Float[Tensor, "r o o"]
) -> Float[Tensor, "r k"]:
    """p(j | o, O) by the Taylor series 5.46, whose terms sum to one; negative terms are clipped."""
    products, i, j = pair_forms(density)
    shares = []
    for r in row_chunks(products, noise):
        single = log_expected(density, o[r], noise[r])
        level = single.logsumexp(1, keepdim=True)
        x = (single - level).exp()
        xx = (log_expected(products, o[r], noise[r]) - 2 * level).exp()
        xy = torch.zeros_like(x).index_add(1, i, xx).index_add(1, j, torch.where(i == j, 0.0, xx))
        shares.append(x * xy.sum(1, keepdim=True) - (xy - x))  # (5.46), where E[Y] = 1
    return _truncated(torch.cat(shares).clamp(min=0))


def _noisy_moments(
    prepared: Prepared, x: Float[Tensor, "r d"], spread: Float[Tensor, "r *d_d"]
) -> Moments:
    fitted = prepared.fitted
    x, spread = fitted.inner(x), fitted.inner_covariance(spread)
    m = len(fitted.weights)
    rows = prepared.quadratic[:, :m, m:]
    parts = []
    for r in row_chunks(fitted.basis, spread):
        phi = log_expected(fitted.basis, x[r], spread[r]).exp()
        cross = phi.new_zeros(2, len(phi))
        if len(fitted.linear):
            tilted = tilted_mean(fitted.basis, x[r], spread[r])
            cross = torch.einsum("rm,rmd,smd->sr", phi, tilted, rows[..., :-1])
            cross = cross + (phi @ rows[..., -1].T).T
        squares = _noisy_squares(prepared, x[r], spread[r])
        covariance = spread[r] if spread.dim() == 3 else torch.diag_embed(spread[r])
        parts.append(_moments(prepared, phi, squares, cross, x[r], covariance))
    return Moments(*(torch.cat(column) for column in zip(*parts)))


def _noisy_squares(
    prepared: Prepared, x: Float[Tensor, "r d"], spread: Float[Tensor, "r *d_d"]
) -> Float[Tensor, "r 3"]:
    """Sums over pairs of E[phi_i phi_j], in blocks of rows and pairs."""
    basis, total = prepared.fitted.basis, x.new_zeros(len(x), 3)
    for forms, i, j in pair_blocks(basis):
        share = prepared.shares[:, i, j] * torch.where(i == j, 1.0, 2.0).to(x)
        for r in row_chunks(forms, spread):
            total[r] += log_expected(forms, x[r], spread[r]).exp() @ share.T
    return total

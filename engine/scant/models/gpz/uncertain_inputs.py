"""GPz's predictions where inputs are noisy, missing, or both: Almosallam (2017), section 5.1.

Departures from the print. The thesis writes the moments for basis functions alone; with a joint
linear mean E[f^2] and E[nu^2] also hold E[phi_j x] and E[x x'], which are added here. E[1/beta] is
the second-order Taylor series 5.17 taken within each component of the mixture and then averaged:
within a component ln beta varies less than over them all. Integrals are done on precisions
(`Forms`), so the widths of basis functions need not be finite. Of many inputs a row lacks few:
the integrals are then over these alone (`partial_expectations`), and no matrix is larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.inference.expectations import (
    CHUNK,
    Forms,
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
from scant.models.gpz.completion import WIDE, completed
from scant.models.gpz.given import Prepared
from scant.models.gpz.input_density import patterns
from scant.models.gpz.prediction import Components

# Components that hold less of a row's probability are left out: at most a few thousandths in sum.
LEAST_SHARE = 1e-4
CACHED = 1 << 18  # numbers that are worked on at once on a CPU (2 MiB)


class Moments(NamedTuple):
    """Mean of f, V[f], E[nu^2] and E[1 / beta] of rows under one Gaussian each."""

    mean: Float[Tensor, " r"]
    input_variance: Float[Tensor, " r"]
    model_variance: Float[Tensor, " r"]
    noise_variance: Float[Tensor, " r"]


class _Part(NamedTuple):
    """Moments of some rows under one component of the mixture."""

    rows: Tensor
    component: int
    shares: Float[Tensor, " r"]
    moments: Moments


def predict_inputs(
    prepared: Prepared, X: Float[Tensor, "n d"], noise: Float[Tensor, "n *d_d"] | None
) -> Components:
    """Components of p(y | observed) for rows with NaN, with input noise, or with both.

    Args:
        prepared: The model.
        X: Inputs, NaN where missing.
        noise: Variances (n, d) or covariances (n, d, d) of the inputs; where a value is missing
            its noise is not read.
    """
    k = len(prepared.fitted.mixture.log_weights) if bool(X.isnan().any()) else 1
    out = X.new_zeros(5, len(X), k)
    if noise is None and (X.shape[1] > WIDE or len(prepared.fitted.projection)):
        for part in _lacking(prepared, X):
            out[:, part.rows, part.component] = torch.stack([part.shares, *part.moments])
        return Components(*_reordered(out))
    for observed, rows in patterns(X):
        if noise is None:
            parts = _known(prepared, X[rows], observed)
        else:
            parts = _noisy(prepared, X[rows], noise[rows], observed)
        for part in parts:
            out[:, rows[part.rows], part.component] = torch.stack([part.shares, *part.moments])
    return Components(*_reordered(out))


def _reordered(out: Float[Tensor, "5 n k"]) -> list[Tensor]:
    """The fields of `Components` from shares and `Moments`."""
    weights, mean, inside, model, beta = out
    return [weights, mean, model, beta, inside]


def _moments(
    prepared: Prepared,
    phi: Float[Tensor, "r m"],
    squares: Float[Tensor, "r 3"],
    cross: Float[Tensor, "2 r"],
    x: Float[Tensor, "r d"],
    spread: Float[Tensor, "*r d d"],
) -> Moments:
    """Put the expectations together.

    Args:
        prepared: The model.
        phi: E[phi_j].
        squares: Sums over pairs of E[phi_i phi_j] for f^2, nu^2 and ln^2 beta.
        cross: Sums over j of E[phi_j (row j of the matrix) (x, 1)] for f^2 and nu^2.
        x: E[x].
        spread: V[x], one or one a row.
    """
    fitted = prepared.fitted
    mean = phi @ fitted.weights  # (5.8)
    f2, nu = squares[:, 0], squares[:, 1]
    if len(fitted.linear):
        whole = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)
        mean = mean + whole @ fitted.linear
        blocks = prepared.quadratic[:, len(fitted.weights) :, len(fitted.weights) :]
        own = torch.einsum("ri,sij,rj->sr", whole, blocks, whole)
        own = own + (blocks[:, None, :-1, :-1] * spread).sum((-1, -2))
        f2, nu = f2 + 2 * cross[0] + own[0], nu + 2 * cross[1] + own[1]
    log_beta = phi @ fitted.v
    bend = 1 + 0.5 * (squares[:, 2] - log_beta.square()).clamp(min=0)  # with V of 5.16
    noise = (-log_beta - fitted.b).exp() * bend  # (5.17)
    return Moments(mean, (f2 - mean.square()).clamp(min=0), nu, noise)  # V[f] of 5.9-5.10


def _shares(log_joint: Float[Tensor, "r k"]) -> Float[Tensor, "r k"]:
    return _truncated((log_joint - log_joint.logsumexp(1, keepdim=True)).exp())


def _truncated(shares: Float[Tensor, "r k"]) -> Float[Tensor, "r k"]:
    kept = torch.where(shares >= LEAST_SHARE, shares, 0.0)
    return kept / kept.sum(1, keepdim=True)


def _known(
    prepared: Prepared, X: Float[Tensor, "r d"], observed: Bool[Tensor, " d"]
) -> Iterator[_Part]:
    """Rows whose observed values are exact and some missing (5.22-5.40), a component at a time.

    The time grows with the number of components that a row belongs to times the square of the
    number of basis functions.
    """
    o = X[:, observed]
    products = torch.cat([features(o, diagonal=False), o.new_ones(len(o), 1)], dim=1)
    shares = _shares(prepared.fitted.mixture.log_joint(X, observed))
    for j in (shares > 0).any(0).nonzero().squeeze(1).tolist():
        rows = (shares[:, j] > 0).nonzero().squeeze(1)
        given, here, own = prepared.given(observed, j), products[rows], o[rows]
        phi = exp_(here @ given.single)
        squares, cross = phi.new_empty(len(rows), 3), phi.new_zeros(2, len(rows))
        for r in _chunks(len(rows), given.both):
            both = exp_(here[r] @ given.both)
            squares[r] = (prepared.pair_shares @ both.T).T
        for total, slope, constant in zip(cross, given.slope, given.constant):
            torch.sum(phi * (own @ slope.T + constant), 1, out=total)
        x = own @ given.along.T + given.offset
        moments = _moments(prepared, phi, squares, cross, x, given.spread)
        yield _Part(rows, j, shares[rows, j], moments)


def _lacking(prepared: Prepared, X: Float[Tensor, "n d"]) -> Iterator[_Part]:
    """The same as `_known` of all rows, whatever they lack, by integrals over that alone.

    The time of a pattern and a component grows with the square of the number of basis functions
    times the cube of the number of missing values, or of the basis functions' inputs if these are
    fewer; the memory with neither.
    """
    fitted = prepared.fitted
    m = len(fitted.weights)
    cross_rows = prepared.quadratic[:, :m, m:]
    for some in completed(*fitted.mixture, X):
        shares = _shares(some.log_joint)
        kinds, kind = torch.unique(some.missing, dim=0, return_inverse=True)
        for place, missing in enumerate(kinds):
            for j in (shares[kind == place] > 0).any(0).nonzero().squeeze(1).tolist():
                at = ((kind == place) & (shares[:, j] > 0)).nonzero().squeeze(1)
                root = _root(prepared, missing, some.covariance[j, at[0]])
                x = fitted.inner(some.means[j, at])
                partial = Partial.of(fitted.basis, x, root)
                phi, pulled = partial.singles()
                cross = phi.new_zeros(2, len(phi))
                if len(fitted.linear):
                    tilted = torch.einsum("nm,smd,nd->sn", phi, cross_rows[..., :-1], x)
                    moved = torch.einsum("nm,smr,nmr->sn", phi, cross_rows[..., :-1] @ root, pulled)
                    cross = tilted - moved + (phi @ cross_rows[..., -1].T).T
                squares, spread = partial.squares(prepared.shares), root @ root.T
                moments = _moments(prepared, phi, squares, cross, x, spread)
                yield _Part(some.rows[at], j, shares[at, j], moments)


def _root(
    prepared: Prepared, missing: Int[Tensor, " u"], covariance: Float[Tensor, "u u"]
) -> Float[Tensor, "q r"]:
    """A root of the covariance of the basis functions' inputs, with as few columns as it has."""
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
    """Rows with noise on what is observed (5.8-5.19), and perhaps missing values (5.44-5.66)."""
    if bool(observed.all()):
        everything = torch.arange(len(X), device=X.device)
        moments = _noisy_moments(prepared, X, noise)
        yield _Part(everything, 0, torch.ones_like(X[:, 0]), moments)
        return
    mixture = prepared.fitted.mixture
    noise = noise if noise.dim() == 3 else torch.diag_embed(noise)
    noise, o = noise[:, observed][:, :, observed], X[:, observed]
    shares = _noisy_shares(marginal_forms(mixture.forms(), observed), o, noise)
    slope, offset, spread = mixture.conditional(observed)
    for j in (shares > 0).any(0).nonzero().squeeze(1):
        rows = (shares[:, j] > 0).nonzero().squeeze(1)
        x = o[rows] @ slope[j].T + offset[j]
        wide = spread[j] + slope[j] @ noise[rows] @ slope[j].T  # (5.57)
        yield _Part(rows, int(j), shares[rows, j], _noisy_moments(prepared, x, wide))


def _noisy_shares(
    density: Forms, o: Float[Tensor, "r o"], noise: Float[Tensor, "r o o"]
) -> Float[Tensor, "r k"]:
    """p(j | o, O) by the Taylor series 5.46, whose terms sum to one; negative ones are cut."""
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
    x, spread = fitted.inner(x), fitted.inner_spread(spread)
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
        wide = spread[r] if spread.dim() == 3 else torch.diag_embed(spread[r])
        parts.append(_moments(prepared, phi, squares, cross, x[r], wide))
    return Moments(*(torch.cat(column) for column in zip(*parts)))


def _noisy_squares(
    prepared: Prepared, x: Float[Tensor, "r d"], spread: Float[Tensor, "r *d_d"]
) -> Float[Tensor, "r 3"]:
    """Sums over pairs of E[phi_i phi_j], of some rows and pairs at a time."""
    basis, total = prepared.fitted.basis, x.new_zeros(len(x), 3)
    for forms, i, j in pair_blocks(basis):
        share = prepared.shares[:, i, j] * torch.where(i == j, 1.0, 2.0).to(x)
        for r in row_chunks(forms, spread):
            total[r] += log_expected(forms, x[r], spread[r]).exp() @ share.T
    return total


def _chunks(n: int, coefficients: Float[Tensor, "f k"]) -> Iterator[slice]:
    """Rows whose numbers, one for each pair, stay in a processor's cache."""
    step = max(1, (CACHED if coefficients.device.type == "cpu" else CHUNK) // coefficients.shape[1])
    for start in range(0, n, step):
        yield slice(start, start + step)

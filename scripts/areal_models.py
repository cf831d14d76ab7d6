"""Comparison methods for counts of areas: group rate, area weighting, BYM2, and a Matern field.

BYM2 and the Matern field are models of log rates with a Gaussian prior as in INLA, with
hyperparameters integrated out over a grid (Rue, Martino & Chopin 2009) and the default
penalized-complexity priors of INLA (Simpson et al. 2017). They are implemented here with dense
algebra and Gaussian marginals, since R-INLA is in no package registry. Groups are single units, as
in areal models, or sums over the units inside, as in inlabru and the R package `disaggregation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import cho_factor, cho_solve
from scipy.special import gammaln, kv, logsumexp

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
FLAT = 100.0  # prior variance of intercepts and coefficients
SIGMA_1PERCENT = 1.0  # standard deviation of log rates with prior exceedance probability 0.01
STEPS, TOLERANCE = 60, 1e-9  # maximum Newton steps; change of the log density at convergence
HALVINGS = 20  # maximum halvings of a Newton step

Square = Float[np.ndarray, "n n"]


class Problem(NamedTuple):
    """Counts of groups of units.

    Attributes:
        y: Counts of the groups.
        people: Exposure of each unit in each group, 0 for units outside.
        x: Covariates of the units, including columns of ones for intercepts.
    """

    y: Float[np.ndarray, " g"]
    people: Float[np.ndarray, "g n"]
    x: Float[np.ndarray, "n p"]


@dataclass(frozen=True)
class LogRates:
    """Posterior of the log rates of units, a Gaussian mixture over the grid of hyperparameters.

    Attributes:
        weights: Weights of the k grid points.
        mean: Posterior mean for each grid point.
        variance: Posterior variance for each grid point.
    """

    weights: Float[np.ndarray, " k"]
    mean: Float[np.ndarray, "k n"]
    variance: Float[np.ndarray, "k n"]

    def at(self, units: np.ndarray) -> LogRates:
        """Select units by index, possibly repeated."""
        return LogRates(self.weights, self.mean[:, units], self.variance[:, units])

    def rate(self) -> Float[np.ndarray, " n"]:
        """Return the posterior means of the rates."""
        return self.weights @ np.exp(self.mean + self.variance / 2)

    def log_probability(
        self, y: Float[np.ndarray, " n"], people: Float[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """Return the log probability of a new Poisson count for each unit, in nats."""
        mean, variance = self.mean + np.log(people), self.variance
        mode = np.maximum(
            mean, np.log(y + 0.5)
        )  # start from above, where Newton's method converges
        for _ in range(STEPS):
            curvature = np.exp(mode) + 1 / variance
            mode = mode + (y - np.exp(mode) - (mode - mean) / variance) / curvature
        width = 1 / np.sqrt(np.exp(mode) + 1 / variance)
        # Centered at the mode, since a peaked likelihood may lie between nodes around the mean.
        f = mode[..., None] + width[..., None] * NODES
        log_terms = y[:, None] * f - np.exp(f) - gammaln(y + 1)[:, None]
        log_terms += 0.5 * NODES**2 - 0.5 * (f - mean[..., None]) ** 2 / variance[..., None]
        log_terms += np.log(width / np.sqrt(variance))[..., None]
        weight = self.weights[:, None, None] * WEIGHTS / WEIGHTS.sum()
        return np.asarray(
            logsumexp(log_terms, b=np.broadcast_to(weight, log_terms.shape), axis=(0, 2))
        )


def group_rate(problem: Problem) -> Float[np.ndarray, " n"]:
    """Return the observed rate of the group of each unit; NaN for units in no group."""
    rates = problem.y / problem.people.sum(1)
    inside = problem.people > 0
    return np.where(inside.any(0), rates[inside.argmax(0)], np.nan)


def by_area(
    groups: np.ndarray, units: np.ndarray, y: Float[np.ndarray, " g"], system: str
) -> Float[np.ndarray, " n"]:
    """Predict counts of units by area-weighted interpolation with tobler.

    Args:
        groups: Polygons of the groups in degrees (shapely).
        units: Polygons of the units.
        y: Counts of the groups.
        system: Equal-area projection.
    """
    import geopandas
    from tobler.area_weighted import area_interpolate

    source, target = (
        geopandas.GeoDataFrame(data, geometry=shapes, crs=4326).to_crs(system)
        for data, shapes in (({"y": y}, groups), ({}, units))
    )
    interpolated: Any = area_interpolate(source, target, extensive_variables=["y"])
    return np.asarray(interpolated["y"].to_numpy(), float)


def bym2(
    problem: Problem,
    touching: Bool[np.ndarray, "n n"],
    tasks: Float[np.ndarray, "t t"] | None = None,
) -> LogRates:
    """Fit the BYM2 model (Riebler et al. 2016) of unstructured and spatial effects, mixed by phi.

    Args:
        problem: Counts with the units of all tasks, ordered by task.
        touching: Adjacency matrix of the units of a task.
        tasks: Matrix of ones for several tasks, such that a unit is correlated across tasks, with a
            grid over the correlation.
    """
    scaled = _scaled(touching)
    values = np.linalg.eigvalsh(scaled)
    phis, log_phi = _phi_prior(values)
    n = len(scaled)

    def grid() -> Iterator[tuple[float, Square]]:
        for sigma, log_sigma in zip(*_sigmas()):
            for phi, log_phi_k in zip(phis, log_phi):
                K_task = sigma**2 * ((1 - phi) * np.eye(n) + phi * scaled)
                for rho in (0.0,) if tasks is None else RHOS:
                    yield log_sigma + log_phi_k, _over_tasks(K_task, tasks, rho)

    return _integrated(problem, grid())


def matern(
    problem: Problem,
    places: Float[np.ndarray, "n 2"],
    tasks: Float[np.ndarray, "t t"] | None = None,
) -> LogRates:
    """Fit a Matern field of smoothness 1, as of the usual SPDE, at population centers of the units.

    The PC prior (Fuglstad et al. 2019) has probability 0.5 for a range above a fifth of the region.

    Args:
        problem: Counts as in `bym2`.
        places: Coordinates of the units of a task in a plane.
        tasks: Matrix of ones as in `bym2`.
    """
    distance = np.linalg.norm(places[:, None] - places, axis=-1)
    median = distance.max() / 5
    ranges = median * np.geomspace(0.25, 4, 6)
    # Exponential prior of the inverse range in two dimensions, as density of the log range.
    log_range = np.log(np.log(2) * median / ranges) - np.log(2) * median / ranges

    def grid() -> Iterator[tuple[float, Square]]:
        for sigma, log_sigma in zip(*_sigmas()):
            for reach, log_range_k in zip(ranges, log_range):
                scaled = np.sqrt(8.0) * distance / reach
                with np.errstate(invalid="ignore"):
                    correlation = np.where(
                        scaled > 0, scaled * kv(1, np.maximum(scaled, 1e-12)), 1.0
                    )
                K_task = sigma**2 * (correlation + 1e-8 * np.eye(len(correlation)))
                for rho in (0.0,) if tasks is None else RHOS:
                    yield log_sigma + log_range_k, _over_tasks(K_task, tasks, rho)

    return _integrated(problem, grid())


RHOS = (0.0, 0.5, 0.8, 0.95)  # correlations of tasks with equal prior probability


def _over_tasks(one: Square, tasks: np.ndarray | None, rho: float) -> Float[np.ndarray, "m m"]:
    if tasks is None:
        return one
    return np.kron(rho * tasks + (1 - rho) * np.eye(len(tasks)), one)


def _sigmas() -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of standard deviations and the log density of the PC prior in log sigma."""
    sigma = np.geomspace(0.05, 1.2, 7)
    rate = -np.log(0.01) / SIGMA_1PERCENT
    return sigma, np.log(rate * sigma) - rate * sigma


def _scaled(touching: Bool[np.ndarray, "n n"]) -> Square:
    """Return the covariance of the intrinsic autoregression with geometric mean variance 1.

    Scaling by Sorbye & Rue (2014).
    """
    Q = np.diag(touching.sum(1).astype(float)) - touching
    S = np.linalg.pinv(Q, hermitian=True)
    return np.asarray(S / np.exp(np.log(np.diag(S)).mean()))


def _phi_prior(values: Float[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
    """A grid of phi and its log PC prior by the logit; phi < 0.5 with probability 0.5."""

    def distance(phi: np.ndarray) -> np.ndarray:
        inner = 1 + phi[:, None] * (values - 1)
        kld = 0.5 * (phi * (values - 1).sum() - np.log(np.maximum(inner, 1e-300)).sum(1))
        return np.sqrt(np.maximum(2 * kld, 1e-300))

    # P(phi < 0.5) = (1 - exp(-rate d(0.5))) / (1 - exp(-rate d(1))) = 0.5, by bisection; the
    # distance at 1 is that of a hair below it, for the autoregression has no variance of the mean.
    half, whole = distance(np.array([0.5, 1 - 1e-6]))
    low, high = 1e-9, 50.0 / half
    for _ in range(200):
        rate = (low + high) / 2
        below = np.expm1(-rate * half) / np.expm1(-rate * whole)
        low, high = (rate, high) if below < 0.5 else (low, rate)
    logit = np.linspace(-3, 3, 5)
    phi = 1 / (1 + np.exp(-logit))
    d, step = distance(phi), 1e-4
    slope = (distance(1 / (1 + np.exp(-logit - step))) - d) / step
    return phi, np.log(rate * np.maximum(slope, 1e-300)) - rate * d


def _integrated(problem: Problem, grid: Iterator[tuple[float, Square]]) -> LogRates:
    """Integrate over the grid with weights from the prior and the Laplace evidence."""
    offset = float(np.log(problem.y.sum() / problem.people.sum()))
    flat = FLAT * problem.x @ problem.x.T
    parts: list[tuple[float, np.ndarray, np.ndarray]] = []
    start = np.zeros(len(flat))
    for prior, K in grid:
        evidence, mean, variance, start = _laplace(problem, offset, K + flat, start)
        parts.append((prior + evidence, mean, variance))
    log = np.array([p[0] for p in parts])
    weights = np.exp(log - logsumexp(log))
    selected = np.flatnonzero(weights > 1e-5)
    return LogRates(
        weights[selected] / weights[selected].sum(),
        np.stack([parts[k][1] for k in selected]),
        np.stack([parts[k][2] for k in selected]),
    )


def _laplace(
    problem: Problem, offset: float, K: Square, start: Float[np.ndarray, " n"]
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return log evidence, mean and variance of the log rates, and K⁻¹(mode - offset).

    As in INLA, the mean is that of the best Gaussian with the covariance at the mode (van Niekerk &
    Rue 2024), such that counts agree with expected rates.
    """
    a, value, H = _mode(problem, offset, K, start)
    KH = K @ H.T
    factor = cho_factor(np.eye(len(H)) + H @ KH)
    evidence = value - float(np.log(np.diag(factor[0])).sum())
    variance = np.diag(K) - np.einsum("ng,gn->n", KH, cho_solve(factor, KH.T))
    variance = np.maximum(variance, 1e-12)
    shifted = problem._replace(people=problem.people * np.exp(np.minimum(variance, 20.0) / 2))
    b, _, _ = _mode(shifted, offset, K, a)
    return evidence, offset + K @ b, variance, a


def _mode(
    problem: Problem, offset: float, K: Square, start: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], float, Float[np.ndarray, "g n"]]:
    """Return K⁻¹(mode - offset), the log joint density at the mode, and H.

    Newton's method with the expected information W = Hᵀ H instead of the Hessian, which is not
    definite for sums of exponentials. Only the matrix I + H K Hᵀ of groups is factored.
    """
    y, people, _ = problem

    def objective(a: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        f = K @ a
        each = people * np.exp(np.clip(offset + f, -40.0, 40.0))
        total = each.sum(1)
        fit = float((y * np.log(total) - total - gammaln(y + 1)).sum())
        return fit - 0.5 * float(a @ f), each, total

    a = start
    value, each, total = objective(a)
    for _ in range(STEPS):
        H = each / np.sqrt(total)[:, None]
        f = K @ a
        r = H.T @ (H @ f) + each.T @ (y / total - 1)
        KH = K @ H.T
        factor = cho_factor(np.eye(len(y)) + H @ KH)
        step = r - H.T @ cho_solve(factor, KH.T @ r) - a
        size = 1.0
        for _ in range(HALVINGS):
            new = objective(a + size * step)
            if new[0] >= value:
                break
            size /= 2
        gained = new[0] - value
        if gained > 0:
            a, (value, each, total) = a + size * step, new
        if gained < TOLERANCE:
            break
    return a, value, each / np.sqrt(total)[:, None]


def joined(problems: Sequence[Problem]) -> Problem:
    """Join problems of several tasks, each with its own units and coefficients."""
    from scipy.linalg import block_diag

    return Problem(
        np.concatenate([p.y for p in problems]),
        block_diag(*(p.people for p in problems)),
        block_diag(*(p.x for p in problems)),
    )

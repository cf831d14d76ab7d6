"""Rivals for counts of areas: the rate of the group, shares by area, BYM2, a Matern field.

The last two are what an expert builds in INLA: log rates of the units with a Gaussian prior, whose
hyperparameters are integrated out over a grid (Rue, Martino & Chopin 2009), with INLA's default
penalized-complexity priors (Simpson et al. 2017). They are our own implementation, in dense
algebra and with Gaussian marginals, because R-INLA comes through no package registry. Counts of
groups are either the units themselves, as areal models take them, or sums over the units inside,
as inlabru and R's `disaggregation` take them.
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
SIGMA_1PERCENT = 1.0  # deviation of log rates that is exceeded with probability 0.01
STEPS, SETTLED = 60, 1e-9
HALVINGS = 20

Square = Float[np.ndarray, "n n"]


class Problem(NamedTuple):
    """Counts of groups of units.

    Attributes:
        y: Counts of the groups.
        people: Exposure of each unit in each group, 0 where it is not inside.
        x: Covariates of the units, a column of ones for each intercept among them.
    """

    y: Float[np.ndarray, " g"]
    people: Float[np.ndarray, "g n"]
    x: Float[np.ndarray, "n p"]


@dataclass(frozen=True)
class LogRates:
    """Posterior of the units' log rates: a mixture of Gaussians over the hyperparameters.

    Attributes:
        weights: Of the nodes of the grid.
        mean: Of each node.
        variance: Of each node.
    """

    weights: Float[np.ndarray, " k"]
    mean: Float[np.ndarray, "k n"]
    variance: Float[np.ndarray, "k n"]

    def at(self, units: np.ndarray) -> LogRates:
        """Of some units, each as often as it is named."""
        return LogRates(self.weights, self.mean[:, units], self.variance[:, units])

    def rate(self) -> Float[np.ndarray, " n"]:
        """Posterior means of the rates."""
        return self.weights @ np.exp(self.mean + self.variance / 2)

    def log_probability(
        self, y: Float[np.ndarray, " n"], people: Float[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """Of a new Poisson count of each unit, in nats."""
        mean, variance = self.mean + np.log(people), self.variance
        mode = np.maximum(mean, np.log(y + 0.5))  # from above, where Newton's steps converge
        for _ in range(STEPS):
            curvature = np.exp(mode) + 1 / variance
            mode = mode + (y - np.exp(mode) - (mode - mean) / variance) / curvature
        width = 1 / np.sqrt(np.exp(mode) + 1 / variance)
        # About the mode: the likelihood of a thousand cases lies between nodes about the mean.
        f = mode[..., None] + width[..., None] * NODES
        each = y[:, None] * f - np.exp(f) - gammaln(y + 1)[:, None]
        each += 0.5 * NODES**2 - 0.5 * (f - mean[..., None]) ** 2 / variance[..., None]
        each += np.log(width / np.sqrt(variance))[..., None]
        weight = self.weights[:, None, None] * WEIGHTS / WEIGHTS.sum()
        return np.asarray(logsumexp(each, b=np.broadcast_to(weight, each.shape), axis=(0, 2)))


def group_rate(problem: Problem) -> Float[np.ndarray, " n"]:
    """The observed rate of its group for each unit; NaN for one in none."""
    rates = problem.y / problem.people.sum(1)
    inside = problem.people > 0
    return np.where(inside.any(0), rates[inside.argmax(0)], np.nan)


def by_area(
    groups: np.ndarray, units: np.ndarray, y: Float[np.ndarray, " g"], system: str
) -> Float[np.ndarray, " n"]:
    """Counts of units by area-weighted interpolation (tobler), counts spread evenly in a group.

    Args:
        groups: shapely's polygons in degrees, with these counts.
        units: Polygons whose counts are asked for.
        y: Counts of the groups.
        system: An equal-area projection.
    """
    import geopandas
    from tobler.area_weighted import area_interpolate

    source, target = (
        geopandas.GeoDataFrame(data, geometry=shapes, crs=4326).to_crs(system)
        for data, shapes in (({"y": y}, groups), ({}, units))
    )
    made: Any = area_interpolate(source, target, extensive_variables=["y"])
    return np.asarray(made["y"].to_numpy(), float)


def bym2(
    problem: Problem,
    touching: Bool[np.ndarray, "n n"],
    tasks: Float[np.ndarray, "t t"] | None = None,
) -> LogRates:
    """Riebler et al. (2016): unstructured and spatial effects of one variance each, mixed by phi.

    Args:
        problem: Units of all tasks, those of the first task first.
        touching: Which units of a task are neighbors.
        tasks: Ones where there are several tasks, so many square; units of a task are then
            correlated with the same units of another, by a grid of correlations.
    """
    scaled = _scaled(touching)
    values = np.linalg.eigvalsh(scaled)
    phis, log_phi = _phi_prior(values)
    n = len(scaled)

    def members() -> Iterator[tuple[float, Square]]:
        for sigma, log_sigma in zip(*_sigmas()):
            for phi, log_own in zip(phis, log_phi):
                one = sigma**2 * ((1 - phi) * np.eye(n) + phi * scaled)
                for rho in (0.0,) if tasks is None else RHOS:
                    yield log_sigma + log_own, _over_tasks(one, tasks, rho)

    return _integrated(problem, members())


def matern(
    problem: Problem,
    places: Float[np.ndarray, "n 2"],
    tasks: Float[np.ndarray, "t t"] | None = None,
) -> LogRates:
    """A Matern field (smoothness 1, that of the usual SPDE) at the units' centers of population.

    PC priors (Fuglstad et al. 2019): the range exceeds a fifth of the region with probability 0.5.

    Args:
        problem: As of `bym2`.
        places: Of one task's units, in a plane.
        tasks: As of `bym2`.
    """
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    median = apart.max() / 5
    ranges = median * np.geomspace(0.25, 4, 6)
    # The inverse of the range is exponential in two dimensions; by its logarithm.
    log_range = np.log(np.log(2) * median / ranges) - np.log(2) * median / ranges

    def members() -> Iterator[tuple[float, Square]]:
        for sigma, log_sigma in zip(*_sigmas()):
            for reach, log_own in zip(ranges, log_range):
                scaled = np.sqrt(8.0) * apart / reach
                with np.errstate(invalid="ignore"):
                    own = np.where(scaled > 0, scaled * kv(1, np.maximum(scaled, 1e-12)), 1.0)
                one = sigma**2 * (own + 1e-8 * np.eye(len(own)))
                for rho in (0.0,) if tasks is None else RHOS:
                    yield log_sigma + log_own, _over_tasks(one, tasks, rho)

    return _integrated(problem, members())


RHOS = (0.0, 0.5, 0.8, 0.95)  # correlations of tasks, equally probable before the data


def _over_tasks(one: Square, tasks: np.ndarray | None, rho: float) -> Float[np.ndarray, "m m"]:
    if tasks is None:
        return one
    return np.kron(rho * tasks + (1 - rho) * np.eye(len(tasks)), one)


def _sigmas() -> tuple[np.ndarray, np.ndarray]:
    """A grid of deviations and their log prior by the logarithm: exponential (PC prior)."""
    sigma = np.geomspace(0.05, 1.2, 7)
    rate = -np.log(0.01) / SIGMA_1PERCENT
    return sigma, np.log(rate * sigma) - rate * sigma


def _scaled(touching: Bool[np.ndarray, "n n"]) -> Square:
    """Covariance of the intrinsic autoregression, scaled so that the geometric mean of its
    variances is 1 (Sorbye & Rue 2014)."""
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


def _integrated(problem: Problem, members: Iterator[tuple[float, Square]]) -> LogRates:
    """The mixture over all members of the grid, weighed by prior and Laplace evidence."""
    offset = float(np.log(problem.y.sum() / problem.people.sum()))
    flat = FLAT * problem.x @ problem.x.T
    parts: list[tuple[float, np.ndarray, np.ndarray]] = []
    start = np.zeros(len(flat))
    for prior, K in members:
        evidence, mean, variance, start = _laplace(problem, offset, K + flat, start)
        parts.append((prior + evidence, mean, variance))
    log = np.array([p[0] for p in parts])
    weights = np.exp(log - logsumexp(log))
    kept = np.flatnonzero(weights > 1e-5)
    return LogRates(
        weights[kept] / weights[kept].sum(),
        np.stack([parts[k][1] for k in kept]),
        np.stack([parts[k][2] for k in kept]),
    )


def _laplace(
    problem: Problem, offset: float, K: Square, start: Float[np.ndarray, " n"]
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Log evidence, mean and variance of the log rates, and K⁻¹(mode - offset).

    The mode is moved to the mean of the best Gaussian of this covariance, as INLA does it (van
    Niekerk & Rue 2024): counts agree with means of exponentials, not with exponentials of means.
    """
    a, value, H = _mode(problem, offset, K, start)
    KH = K @ H.T
    factor = cho_factor(np.eye(len(H)) + H @ KH)
    evidence = value - float(np.log(np.diag(factor[0])).sum())
    variance = np.diag(K) - np.einsum("ng,gn->n", KH, cho_solve(factor, KH.T))
    variance = np.maximum(variance, 1e-12)
    moved = problem._replace(people=problem.people * np.exp(np.minimum(variance, 20.0) / 2))
    b, _, _ = _mode(moved, offset, K, a)
    return evidence, offset + K @ b, variance, a


def _mode(
    problem: Problem, offset: float, K: Square, start: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], float, Float[np.ndarray, "g n"]]:
    """K⁻¹(mode - offset), the log joint density there, and H.

    Newton's method with the expected information in place of the Hessian, which is not definite
    for sums of exponentials; W = Hᵀ H, of which only groups by groups is factored.
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
        if gained < SETTLED:
            break
    return a, value, each / np.sqrt(total)[:, None]


def joined(problems: Sequence[Problem]) -> Problem:
    """Problems of several tasks as one, each with its own units and coefficients."""
    from scipy.linalg import block_diag

    return Problem(
        np.concatenate([p.y for p in problems]),
        block_diag(*(p.people for p in problems)),
        block_diag(*(p.x for p in problems)),
    )

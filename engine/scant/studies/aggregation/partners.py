"""Predictions of the scarce task calibrated on its rows, each left out.

The model's predictions of left-out rows have a closed form (Rasmussen and Williams 2006, 5.4.2).
They tell whether the model knows more than the task's mean, towards which it is shrunk as far as a
gain may be chance, and how wide the errors are by level and place (`scant.ensemble.spread`).
Averages with further models (dependent GPs on centroids, GPs of the task alone, a straight line)
had larger errors than the model alone on 12 of 14 kinds of held-out data, by 7 % in the median: a
few rows that are left out do not tell which model errs where no row is. Runs of earlier versions
have such averages, and predict by them.
A box of another size than those of the task is asked of the model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.ensemble import Ensemble, Widened, stacking
from scant.inference.exact import left_out
from scant.models.anchored_gp import AnchoredGP
from scant.models.mtgpa.exact import ExactGP
from scant.predictive import MixturePredictive
from scant.studies.protocol import Tensors, part

LEAST_ROWS = 8  # of the task
ALIKE = 1e-6  # difference of widths, as a share of the greatest extent

MODEL = "model"
OTHERS = {  # of all tasks, in older runs; keys of their tensors
    "model of more or fewer functions": "functions",
    "dependent GPs on centroids": "dependent",
}
TRIVIAL = "no input"  # the partner of a new run
PARTNERS = {  # of the task alone; older runs have all of them
    "GP of the task alone": "rbf",
    "rough GP of the task alone": "rough",
    "straight line": "linear",
    TRIVIAL: "constant",
}
NAMES = (MODEL, *OTHERS, *PARTNERS)
Values = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class BoxFrame:
    """Boxes of one size.

    Attributes:
        rows: Mean and deviation of their centers by dimension; their width.
    """

    rows: Float[Tensor, "3 d"]

    @classmethod
    def of(cls, supports: Float[Tensor, "n c"]) -> BoxFrame:
        lower, upper = supports.chunk(2, dim=1)
        centers = (lower + upper) / 2
        deviation = torch.where(centers.std(0) > 0, centers.std(0), 1.0)
        return cls(torch.stack([centers.mean(0), deviation, (upper - lower).mean(0)]))

    def same_size(self, supports: Float[Tensor, "n c"]) -> Bool[np.ndarray, " n"]:
        """Which boxes have this size."""
        lower, upper = supports.chunk(2, dim=1)
        off = (upper - lower - self.rows[2]).abs()
        close = (off <= ALIKE * (self.rows[1] + self.rows[2])).all(1)
        return np.asarray(close.cpu().numpy())

    def standardized(self, supports: Float[Tensor, "n c"]) -> Float[np.ndarray, "n d"]:
        """Standardized centers of boxes."""
        lower, upper = supports.chunk(2, dim=1)
        centers = ((lower + upper) / 2 - self.rows[0]) / self.rows[1]
        return np.asarray(centers.cpu().numpy())


@dataclass(frozen=True)
class Average:
    """The page's model with the mean of the task, and in older runs with further models.

    Attributes:
        ensemble: Their weights.
        task: The number of the scarce task.
        others: Models in `OTHERS` that have a weight, by name.
        gps: GPs in `PARTNERS`, by name.
        frame: The boxes of its training rows.
        scale: Mean and deviation of its values, in the unit of the model.
    """

    ensemble: Ensemble[MixturePredictive]
    task: int
    others: Mapping[str, ExactGP]
    gps: Mapping[str, AnchoredGP]
    frame: BoxFrame
    scale: tuple[float, float]

    @classmethod
    @torch.no_grad()
    def fit(cls, model: ExactGP, task: int) -> Average | None:
        """By its own rows, each left out; None of few ones, of several sizes, or of polygons.

        Args:
            model: Of all tasks.
            task: The scarce one.
        """
        data = model.data
        if data.supports.shape[1] > 2 * model.prior.dimensions:
            return None  # polygons
        mine = data.task == task
        supports, y = data.supports[mine], data.y[mine].cpu().numpy()
        if len(y) < LEAST_ROWS or not y.std() > 0:
            return None
        frame, scale = BoxFrame.of(supports), (float(y.mean()), float(y.std()))
        if not frame.same_size(supports).all():
            return None
        x, z = frame.standardized(supports), (y - scale[0]) / scale[1]
        gp = AnchoredGP.fit(PARTNERS[TRIVIAL], x, z)
        K = torch.as_tensor(gp.signal(x) + gp.noise * np.eye(len(x)))
        error, variance = (v.numpy() for v in left_out(K, torch.as_tensor(z)))
        trivial = _unscaled(scale, z - error, variance, np.minimum(gp.noise, variance))
        told = {MODEL: model.left_out().predictive().rows(mine.cpu().numpy()), TRIVIAL: trivial}
        share = stacking.confidence(told[MODEL].log_prob(y) - trivial.log_prob(y))
        if share > 1 - stacking.MIN_WEIGHT:
            share = 1.0
        ensemble = Ensemble.fit_shape({MODEL: share, TRIVIAL: 1 - share}, told, y, Widened, x)
        return cls(ensemble.reindex(NAMES), task, {}, {TRIVIAL: gp}, frame, scale)

    def combine(self, supports: Float[Tensor, "n c"], told: MixturePredictive) -> MixturePredictive:
        """The average at supports, of which the model says this, in its unit."""
        x, alike = self.frame.standardized(supports), self.frame.same_size(supports)
        parts = {MODEL: told}
        for name in self.ensemble.used:
            if name == MODEL:
                continue
            if name in self.others:
                own = self.others[name].mixture(supports, self.task).predictive()
            else:
                mean, variance = self.gps[name].predict(x)
                noise = np.full(len(x), self.gps[name].noise)
                own = _unscaled(self.scale, mean, variance + noise, noise)
            parts[name] = own.answering(alike)
        return self.ensemble.combine(parts, x, fallback=told)

    def limits(self, scarce: str, own: str) -> list[str]:
        """Which supports the average predicts, and whether left-out rows correct its intervals."""
        sizes = (
            f"The average predicts {scarce} over supports of the size of its training rows; other "
            f"sizes and other tasks are predicted by {own} alone."
        )
        corrected = "The width of the average's intervals is corrected by left-out rows."
        shape = self.ensemble.shape
        return [sizes, *([corrected] if isinstance(shape, Widened) and shape.changes else [])]

    def tensors(self) -> Tensors:
        """Tensors for `from_meta`."""
        found = {
            f"{k}.{n}": v
            for k, name in enumerate(PARTNERS)
            if name in self.gps
            for n, v in self.gps[name].tensors().items()
        }
        for name, other in self.others.items():
            found |= {f"{OTHERS[name]}.{n}": v for n, v in other.state_dict().items()}
        return {**found, "frame": self.frame.rows}

    def meta(self) -> dict[str, Any]:
        """JSON-ready arguments of `from_meta`."""
        others = [OTHERS[name] for name in self.others]
        return {"task": self.task, "others": others, **self.ensemble.meta()}

    @classmethod
    def from_meta(
        cls,
        tensors: Tensors,
        meta: Mapping[str, Any] | None,
        restored: Callable[[str, Tensors], ExactGP],
    ) -> Average | None:
        """The inverse of `tensors` and `meta`; None of a run without an average.

        Args:
            tensors: As `tensors` gave them.
            meta: As `meta` gave it.
            restored: Makes one of `others` of its key and its state.
        """
        if not meta:
            return None
        gps = {
            name: AnchoredGP.from_tensors(shape, part(tensors, f"{k}."))
            for k, (name, shape) in enumerate(PARTNERS.items())
            if f"{k}.theta" in tensors
        }
        others = {
            name: restored(key, part(tensors, f"{key}."))
            for name, key in OTHERS.items()
            if key in meta.get("others", ())
        }
        own, *rest = meta["weights"]
        if len(rest) == len(PARTNERS):  # of a run before there were others
            meta = {**meta, "weights": [own, *[0.0] * len(OTHERS), *rest]}
        ensemble = Ensemble.from_meta(meta, NAMES, Widened)
        offset, factor = meta["scale"]
        return cls(
            ensemble, meta["task"], others, gps, BoxFrame(tensors["frame"]), (offset, factor)
        )


def _unscaled(
    scale: tuple[float, float], mean: Values, variance: Values, noise: Values
) -> MixturePredictive:
    """Standardized Gaussian predictions in the unit of the model."""
    offset, factor = scale
    return MixturePredictive.gaussian(mean, variance, noise).scaled(factor, offset, log=False)

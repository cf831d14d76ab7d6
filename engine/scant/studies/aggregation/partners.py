"""Leave-one-out calibration of the scarce task's predictions.

The model's predictions of left-out rows have a closed form (Rasmussen and Williams 2006, 5.4.2).
They show whether the model is better than the task's mean, towards which it is shrunk as far as a
gain may be chance, and how large the errors are by level and place (`scant.ensemble.spread`).
Averages with further models (dependent GPs on centroids, GPs of the task alone, a straight line)
had larger errors than the model alone on 12 of 14 kinds of held-out data, by 7 % in the median: a
few left-out rows do not show which model errs where there are no rows. Runs of earlier versions
have such averages, and predict with them.
The model alone predicts boxes of other sizes than those of the task.
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

LEAST_ROWS = 8  # minimum number of rows of the task
ALIKE = 1e-6  # difference of widths, as a share of the greatest extent

MODEL = "model"
OTHERS = {  # models of all tasks in older runs; keys of their tensors
    "model of more or fewer functions": "functions",
    "dependent GPs on centroids": "dependent",
}
TRIVIAL = "no input"  # the only one in new runs
PARTNERS = {  # models of the task alone; older runs have all of them
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
        """Mask of the boxes of this size."""
        lower, upper = supports.chunk(2, dim=1)
        difference = (upper - lower - self.rows[2]).abs()
        close = (difference <= ALIKE * (self.rows[1] + self.rows[2])).all(1)
        return np.asarray(close.cpu().numpy())

    def standardized(self, supports: Float[Tensor, "n c"]) -> Float[np.ndarray, "n d"]:
        """Standardized centers of boxes."""
        lower, upper = supports.chunk(2, dim=1)
        centers = ((lower + upper) / 2 - self.rows[0]) / self.rows[1]
        return np.asarray(centers.cpu().numpy())


@dataclass(frozen=True)
class Average:
    """Average of the model with the task's mean, and in older runs with further models.

    Attributes:
        ensemble: Weights of the models.
        task: Number of the scarce task.
        others: Models in `OTHERS` that have a weight, by name.
        gps: GPs in `PARTNERS`, by name.
        frame: Frame of the task's training boxes.
        scale: Mean and deviation of the task's values, in the model's unit.
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
        """Fit to left-out rows; None for few rows, several box sizes, or polygons.

        Args:
            model: Model of all tasks.
            task: Number of the scarce task.
        """
        data = model.data
        if data.supports.shape[1] > 2 * model.prior.dimensions:
            return None  # polygons
        in_task = data.task == task
        supports, y = data.supports[in_task], data.y[in_task].cpu().numpy()
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
        predictions = {
            MODEL: model.left_out().predictive().rows(in_task.cpu().numpy()),
            TRIVIAL: trivial,
        }
        share = stacking.confidence(predictions[MODEL].log_prob(y) - trivial.log_prob(y))
        if share > 1 - stacking.MIN_WEIGHT:
            share = 1.0
        ensemble = Ensemble.fit_shape(
            {MODEL: share, TRIVIAL: 1 - share}, predictions, y, Widened, x
        )
        return cls(ensemble.reindex(NAMES), task, {}, {TRIVIAL: gp}, frame, scale)

    def combine(
        self, supports: Float[Tensor, "n c"], prediction: MixturePredictive
    ) -> MixturePredictive:
        """Average at supports, from the model's prediction there, in its unit."""
        x, is_same_size = self.frame.standardized(supports), self.frame.same_size(supports)
        parts = {MODEL: prediction}
        for name in self.ensemble.used:
            if name == MODEL:
                continue
            if name in self.others:
                other = self.others[name].mixture(supports, self.task).predictive()
            else:
                mean, variance = self.gps[name].predict(x)
                noise = np.full(len(x), self.gps[name].noise)
                other = _unscaled(self.scale, mean, variance + noise, noise)
            parts[name] = other.answering(is_same_size)
        return self.ensemble.combine(parts, x, fallback=prediction)

    def limits(self, scarce: str, model_name: str) -> list[str]:
        """Notes on the supports that the average predicts, and on corrected intervals."""
        sizes = (
            f"The average predicts {scarce} over supports of the size of its training rows; other "
            f"sizes and other tasks are predicted by {model_name} alone."
        )
        corrected = "The width of the average's intervals is corrected by left-out rows."
        shape = self.ensemble.shape
        return [sizes, *([corrected] if isinstance(shape, Widened) and shape.changes else [])]

    def tensors(self) -> Tensors:
        """Tensors for `from_meta`."""
        tensors = {
            f"{k}.{n}": v
            for k, name in enumerate(PARTNERS)
            if name in self.gps
            for n, v in self.gps[name].tensors().items()
        }
        for name, other in self.others.items():
            tensors |= {f"{OTHERS[name]}.{n}": v for n, v in other.state_dict().items()}
        return {**tensors, "frame": self.frame.rows}

    def meta(self) -> dict[str, Any]:
        """JSON-ready arguments of `from_meta`."""
        others = [OTHERS[name] for name in self.others]
        return {"task": self.task, "others": others, **self.ensemble.meta()}

    @classmethod
    def from_meta(
        cls,
        tensors: Tensors,
        meta: Mapping[str, Any] | None,
        restore: Callable[[str, Tensors], ExactGP],
    ) -> Average | None:
        """Inverse of `tensors` and `meta`; None for a run without an average.

        Args:
            tensors: Result of `tensors`.
            meta: Result of `meta`.
            restore: Function from key and state to one of `others`.
        """
        if not meta:
            return None
        gps = {
            name: AnchoredGP.from_tensors(shape, part(tensors, f"{k}."))
            for k, (name, shape) in enumerate(PARTNERS.items())
            if f"{k}.theta" in tensors
        }
        others = {
            name: restore(key, part(tensors, f"{key}."))
            for name, key in OTHERS.items()
            if key in meta.get("others", ())
        }
        model_weight, *rest = meta["weights"]
        if len(rest) == len(PARTNERS):  # stored before there were others
            meta = {**meta, "weights": [model_weight, *[0.0] * len(OTHERS), *rest]}
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

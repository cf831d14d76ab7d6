"""Predictions of the scarce task calibrated on its rows, each left out.

The model's predictions of left-out rows have a closed form (Rasmussen and Williams 2006, 5.4.2).
They tell whether the model knows more than the task's mean, towards which it is shrunk as far as a
gain may be chance, and how wide the errors are by level and place (`scant.inference.spread`).
Averages with further models (dependent GPs on centroids, GPs of the task alone, a straight line)
had larger errors than the model alone on 12 of 14 kinds of held-out data, by 7 % in the median: a
few rows that are left out do not tell which model errs where no row is. Runs of earlier versions
have such averages, and predict by them.
A box of another size than those of the task is asked of the model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.inference import spread, stacking
from scant.inference.exact import left_out
from scant.models.anchored_gp import AnchoredGP
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.likelihoods import MTGPAPrediction
from scant.models.mtgpa.mixture import Mixture
from scant.studies.protocol import Tensors, part

LEAST_ROWS = 8  # of the task
ALIKE = 1e-6  # difference of widths, as a share of the greatest extent

OTHERS = {  # of all tasks, in older runs
    "model of more or fewer functions": "functions",
    "dependent GPs on centroids": "dependent",
}
PARTNERS = {  # likewise
    "GP of the task alone": "rbf",
    "rough GP of the task alone": "rough",
    "straight line": "linear",
    "no input": "constant",
}
TRIVIAL = "constant"  # the partner of a new run


@dataclass(frozen=True)
class Stack(stacking.Average):
    """Widths of an exact model's predictions; members beside it and weights of an older run.

    Attributes:
        weights: Of the model, then of the others, then of the partners.
        task: The number of the scarce task.
        others: By their keys in `OTHERS`, those that have a weight.
        gps: The partners, by their shapes in `PARTNERS`.
        frame: Rows: mean and deviation of the centers of its boxes, by dimension; their width.
        scale: Mean and deviation of its values, in the unit of the model.
        widths: Coefficients of `scant.inference.spread`; none of an older run.
    """

    names = ("model", *OTHERS, *PARTNERS)

    task: int
    others: Mapping[str, ExactGP]
    gps: Mapping[str, AnchoredGP]
    frame: Float[Tensor, "3 d"]
    scale: tuple[float, float]
    widths: tuple[float, ...] = ()

    @classmethod
    @torch.no_grad()
    def weighed(cls, model: ExactGP, task: int) -> Stack | None:
        """By its own rows, each left out; None of few ones, of several sizes, or of polygons.

        Args:
            model: Of all tasks.
            task: The scarce one.
        """
        data = model.data
        if data.supports.shape[1] > 2 * model.prior.dimensions:
            return None  # polygons
        mine = data.task == task
        lower, upper = data.supports[mine].chunk(2, dim=1)
        y, centers = data.y[mine], (lower + upper) / 2
        if len(y) < LEAST_ROWS or not float(y.std()) > 0:
            return None
        deviation = centers.std(0)
        frame = torch.stack(
            [centers.mean(0), torch.where(deviation > 0, deviation, 1.0), (upper - lower).mean(0)]
        )
        offset, factor = float(y.mean()), float(y.std())
        made = cls((), task, {}, {}, frame, (offset, factor))
        if not bool(made._alike(data.supports[mine]).all()):
            return None
        x, z = made._seen(data.supports[mine]), ((y - offset) / factor).cpu()
        gp = AnchoredGP.fit(TRIVIAL, x, z.numpy())
        K = torch.as_tensor(gp.signal(x) + gp.noise * np.eye(len(x)))
        error, variance = (v.to(y) for v in left_out(K, z))
        trivial = Mixture.single(made._own_unit(z.to(y) - error, variance, 0.0))
        own = Mixture(*(column[:, mine] for column in model.left_out()))
        share = stacking.confidence((own.log_prob(y) - trivial.log_prob(y)).cpu().numpy())
        if share > 1 - stacking.MIN_WEIGHT:
            share = 1.0
        between = [0.0] * (len(cls.names) - 2)
        made = replace(made, weights=(share, *between, 1 - share), gps={TRIVIAL: gp})
        whole = Mixture.joined([own.weighted(share), trivial.weighted(1 - share)])
        return replace(made, widths=made._widths(whole, y, x))

    def sentence(self) -> str:
        if any(self.weights[1:]):
            return super().sentence()
        return "Intervals are as wide as suits the training rows of the scarce task, each left out."

    def _widths(
        self, left_out: Mixture, y: Float[Tensor, " n"], x: Float[np.ndarray, "n d"]
    ) -> tuple[float, ...]:
        def log_density(factor: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
            wide = left_out.widened(torch.as_tensor(factor).to(y))
            return np.asarray(wide.log_prob(y).cpu().numpy())

        found = spread.fitted(log_density, spread.features(self._level(left_out), x))
        return tuple(found.tolist())

    def _level(self, told: Mixture) -> Float[np.ndarray, " n"]:
        offset, factor = self.scale
        return np.asarray(((told.moments().mean - offset) / factor).cpu().numpy())

    def mixture(self, supports: Float[Tensor, "n c"], told: Mixture) -> Mixture:
        """The average at supports, of which the model says this."""
        alike = self._alike(supports)
        own, *beside = self.weights
        parts = [told.weighted(torch.where(alike, own, 1.0))]
        weights = dict(zip((*OTHERS.values(), *PARTNERS.values()), beside))
        for key, other in self.others.items():
            parts.append(other.mixture(supports, self.task).weighted(weights[key] * alike))
        x = self._seen(supports)
        for shape, gp in self.gps.items():
            if weights[shape]:
                mean, variance = (torch.as_tensor(v).to(supports) for v in gp.predict(x))
                one = Mixture.single(self._own_unit(mean, variance, gp.noise))
                parts.append(one.weighted(weights[shape] * alike))
        whole = Mixture.joined(parts)
        if not self.widths:
            return whole
        factor = spread.factor(np.array(self.widths), spread.features(self._level(whole), x))
        return whole.widened(torch.where(alike, torch.as_tensor(factor).to(supports), 1.0))

    def _own_unit(
        self, mean: Float[Tensor, " n"], variance: Float[Tensor, " n"], noise: float
    ) -> MTGPAPrediction:
        """In the unit of the model, of what a partner says."""
        offset, factor = self.scale
        wide = torch.full_like(mean, factor**2 * noise)
        return MTGPAPrediction(offset + factor * mean, factor**2 * variance, wide)

    def _alike(self, supports: Float[Tensor, "n c"]) -> Bool[Tensor, " n"]:
        lower, upper = supports.chunk(2, dim=1)
        off = (upper - lower - self.frame[2]).abs()
        return (off <= ALIKE * (self.frame[1] + self.frame[2])).all(1)

    def _seen(self, supports: Float[Tensor, "n c"]) -> Float[np.ndarray, "n d"]:
        lower, upper = supports.chunk(2, dim=1)
        seen = ((lower + upper) / 2 - self.frame[0]) / self.frame[1]
        return np.asarray(seen.cpu().numpy())

    def tensors(self) -> Tensors:
        """What `read` needs beside `meta`."""
        found = {
            f"{k}.{n}": v
            for k, shape in enumerate(PARTNERS.values())
            if shape in self.gps
            for n, v in self.gps[shape].tensors().items()
        }
        for key, other in self.others.items():
            found |= {f"{key}.{n}": v for n, v in other.state_dict().items()}
        return {**found, "frame": self.frame}

    def meta(self) -> dict[str, Any]:
        """What `read` needs, ready for JSON."""
        return {
            "weights": list(self.weights),
            "task": self.task,
            "scale": list(self.scale),
            "widths": list(self.widths),
            "others": list(self.others),
        }

    @classmethod
    def read(
        cls,
        tensors: Tensors,
        meta: Mapping[str, Any] | None,
        restored: Callable[[str, Tensors], ExactGP],
    ) -> Stack | None:
        """The inverse of `tensors` and `meta`; None of a run without an average.

        Args:
            tensors: As `tensors` gave them.
            meta: As `meta` gave it.
            restored: Makes one of `others` of its key and its state.
        """
        if not meta:
            return None
        gps = {
            shape: AnchoredGP.from_tensors(shape, part(tensors, f"{k}."))
            for k, shape in enumerate(PARTNERS.values())
            if f"{k}.theta" in tensors
        }
        others = {key: restored(key, part(tensors, f"{key}.")) for key in meta.get("others", ())}
        own, *rest = meta["weights"]
        if len(rest) == len(PARTNERS):  # of a run before there were others
            rest = [0.0] * len(OTHERS) + rest
        weights, widths = (own, *rest), tuple(meta.get("widths", ()))
        offset, factor = meta["scale"]
        return cls(weights, meta["task"], others, gps, tensors["frame"], (offset, factor), widths)

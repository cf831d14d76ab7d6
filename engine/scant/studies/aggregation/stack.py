"""An average of the model with others of the scarce task, weighted by its rows left out.

Tasks that share functions help where they have something in common; where they do not, or where a
task is noise, its own rows know as much. Members beside the model are: one of more or fewer shared
functions, dependent GPs that take each box for its center, and GPs of the task alone, a straight
line and its mean among them. The weights are those under which the task's rows are the most
probable when each is left out (`scant.inference.stacking`), in closed form (Rasmussen and Williams
2006, 5.4.2); what rows have chosen a hyperparameter is taken off, a nat for each (Akaike 1974).
The same rows tell how wide the errors are by level and place (`scant.inference.spread`).
A box of another size than those of the task is asked of the model alone, which knows averages.
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
from scant.models.mtgpa.hyperparameter_nodes import NodesGP
from scant.models.mtgpa.likelihoods import MTGPAPrediction
from scant.models.mtgpa.mixture import Mixture
from scant.studies.protocol import Tensors, part

LEAST_ROWS = 8  # of the task
PRIOR = 0.3  # rows for which each member counts as the best from the start
ALIKE = 1e-6  # difference of widths, as a share of the greatest extent

OTHERS = {  # of all tasks
    "model of more or fewer functions": "functions",
    "dependent GPs on centroids": "dependent",
}
PARTNERS = {
    "GP of the task alone": "rbf",
    "rough GP of the task alone": "rough",
    "straight line": "linear",
    "no input": "constant",
}


@dataclass(frozen=True)
class Stack(stacking.Average):
    """Members beside an exact model, and the weights of all.

    Attributes:
        weights: Of the model, then of the others, then of the partners.
        task: The number of the scarce task.
        others: By their keys in `OTHERS`, those that have a weight.
        gps: The partners.
        frame: Rows: mean and deviation of the centers of its boxes, by dimension; their width.
        scale: Mean and deviation of its values, in the unit of the model.
        widths: Coefficients of `scant.inference.spread`; none of an older run.
    """

    names = ("model", *OTHERS, *PARTNERS)

    task: int
    others: Mapping[str, ExactGP]
    gps: tuple[AnchoredGP, ...]
    frame: Float[Tensor, "3 d"]
    scale: tuple[float, float]
    widths: tuple[float, ...] = ()

    @classmethod
    @torch.no_grad()
    def weighed(
        cls, model: ExactGP, task: int, others: Mapping[str, ExactGP] | None = None
    ) -> Stack | None:
        """By its own rows, each left out; None of few ones, of several sizes, or of polygons.

        Args:
            model: Of all tasks.
            task: The scarce one.
            others: Models of the same rows, by their keys in `OTHERS`.
        """
        others = others or {}
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
        made = cls((), task, {}, (), frame, (offset, factor))
        if not bool(made._alike(data.supports[mine]).all()):
            return None
        x, z = made._seen(data.supports[mine]), ((y - offset) / factor).cpu().numpy()
        told, chosen = list[Mixture](), list[float]()
        for member in (model, *others.values()):
            told.append(Mixture(*(column[:, mine] for column in member.left_out())))
            chosen.append(_chosen(member) / len(data.y))
        gps = tuple(AnchoredGP.fit(shape, x, z) for shape in PARTNERS.values())
        for gp in gps:
            K = gp.signal(x) + gp.noise * np.eye(len(x))
            error, variance = (v.to(y) for v in left_out(torch.as_tensor(K), torch.as_tensor(z)))
            both = made._own_unit(torch.as_tensor(z).to(y) - error, variance, 0.0)
            told.append(Mixture.single(both))
            chosen.append(len(gp.theta) / len(z))
        density = torch.stack([m.log_prob(y) - c for m, c in zip(told, chosen)], 1)
        weights = stacking.weights(density.cpu().numpy(), density.shape[1] - 1, PRIOR)
        keys = ["model", *others, *PARTNERS.values()]
        by_key = dict(zip(keys, weights.tolist()))
        ordered = ("model", *OTHERS.values(), *PARTNERS.values())
        made = replace(
            made,
            weights=tuple(by_key.get(key, 0.0) for key in ordered),
            others={key: other for key, other in others.items() if by_key[key]},
            gps=gps,
        )
        whole = Mixture.joined([m.weighted(w) for m, w in zip(told, weights.tolist()) if w])
        return replace(made, widths=made._widths(whole, y, x))

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
        for shape, gp in zip(PARTNERS.values(), self.gps):
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
        found = {f"{k}.{n}": v for k, gp in enumerate(self.gps) for n, v in gp.tensors().items()}
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
        gps = tuple(
            AnchoredGP.from_tensors(shape, part(tensors, f"{k}."))
            for k, shape in enumerate(PARTNERS.values())
        )
        others = {key: restored(key, part(tensors, f"{key}.")) for key in meta.get("others", ())}
        own, *rest = meta["weights"]
        if len(rest) == len(PARTNERS):  # of a run before there were others
            rest = [0.0] * len(OTHERS) + rest
        weights, widths = (own, *rest), tuple(meta.get("widths", ()))
        offset, factor = meta["scale"]
        return cls(weights, meta["task"], others, gps, tensors["frame"], (offset, factor), widths)


def _chosen(model: ExactGP) -> int:
    """Hyperparameters that were chosen; nodes have counted already that they might be others."""
    if isinstance(model, NodesGP):
        return 0
    return sum(p.numel() for p in model.parameters() if p.requires_grad)

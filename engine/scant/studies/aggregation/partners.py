"""Models with which the page's model is averaged for the scarce task, by its rows left out.

Tasks that share functions help where they have something in common; where they do not, or where a
task is noise, its own rows know as much. Members beside the model are: one of more or fewer shared
functions, dependent GPs that take each box for its center, and GPs of the task alone, a straight
line and its mean among them. The weights are those under which the task's rows are the most
probable when each is left out (`scant.ensemble`), in closed form (Rasmussen and Williams 2006,
5.4.2); what rows have chosen of hyperparameters is taken off, a nat for each (Akaike 1974). The
same rows tell how wide the errors are by level and place (`scant.ensemble.spread`). A box of
another size than those of the task is asked of the model alone, which knows averages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.ensemble import AsTold, Ensemble, Widened
from scant.inference.exact import left_out
from scant.models.anchored_gp import AnchoredGP
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.hyperparameter_nodes import NodesGP
from scant.predictive import MixturePredictive
from scant.studies.protocol import Tensors, part

LEAST_ROWS = 8  # of the task
PRIOR = 0.3  # rows for which each member counts as the best from the start
ALIKE = 1e-6  # difference of widths, as a share of the greatest extent

MODEL = "model"
FUNCTIONS, DEPENDENT = "model of more or fewer functions", "dependent GPs on centroids"
OTHERS = {FUNCTIONS: "functions", DEPENDENT: "dependent"}  # of all tasks; keys of their tensors
PARTNERS = {
    "GP of the task alone": "rbf",
    "rough GP of the task alone": "rough",
    "straight line": "linear",
    "no input": "constant",
}
NAMES = (MODEL, *OTHERS, *PARTNERS)
Values = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Average:
    """The page's model and its partners.

    Attributes:
        ensemble: Their weights.
        task: The number of the scarce task.
        others: Of `OTHERS`, by name, those that have a weight.
        gps: Of `PARTNERS`, by name.
        frame: Rows: mean and deviation of the centers of its boxes, by dimension; their width.
        scale: Mean and deviation of its values, in the unit of the model.
    """

    ensemble: Ensemble[MixturePredictive]
    task: int
    others: Mapping[str, ExactGP]
    gps: Mapping[str, AnchoredGP]
    frame: Float[Tensor, "3 d"]
    scale: tuple[float, float]

    @classmethod
    @torch.no_grad()
    def weighed(
        cls, model: ExactGP, task: int, others: Mapping[str, ExactGP] | None = None
    ) -> Average | None:
        """By its own rows, each left out; None of few ones, of several sizes, or of polygons.

        Args:
            model: Of all tasks.
            task: The scarce one.
            others: Models of the same rows, by their names in `OTHERS`.
        """
        others = others or {}
        data = model.data
        if data.supports.shape[1] > 2 * model.prior.dimensions:
            return None  # polygons
        mine = data.task == task
        supports, y = data.supports[mine], data.y[mine].cpu().numpy()
        lower, upper = supports.chunk(2, dim=1)
        if len(y) < LEAST_ROWS or not y.std() > 0:
            return None
        centers = (lower + upper) / 2
        deviation = centers.std(0)
        frame = torch.stack(
            [centers.mean(0), torch.where(deviation > 0, deviation, 1.0), (upper - lower).mean(0)]
        )
        scale = float(y.mean()), float(y.std())
        made = cls(Ensemble({}, AsTold()), task, others, {}, frame, scale)
        if not made._alike(supports).all():
            return None
        x, z = made._standardized(supports), (y - scale[0]) / scale[1]
        gps = {name: AnchoredGP.fit(shape, x, z) for name, shape in PARTNERS.items()}
        told = {
            name: member.left_out().predictive().rows(mine.cpu().numpy())
            for name, member in {MODEL: model, **others}.items()
        }
        chosen = [_chosen(member) / len(data.y) for member in (model, *others.values())]
        for name, gp in gps.items():
            K = torch.as_tensor(gp.signal(x) + gp.noise * np.eye(len(x)))
            error, variance = (v.numpy() for v in left_out(K, torch.as_tensor(z)))
            told[name] = made._own_unit(z - error, variance, np.minimum(gp.noise, variance))
            chosen.append(len(gp.theta) / len(z))
        found = Ensemble.weighed(
            told, y, Widened, x=x, trivial=NAMES[-1], prior=PRIOR, chosen=chosen
        ).among(NAMES)
        kept = {name: other for name, other in others.items() if found.weights[name]}
        return replace(made, ensemble=found, others=kept, gps=gps)

    def mixed(self, supports: Float[Tensor, "n c"], told: MixturePredictive) -> MixturePredictive:
        """The average at supports, of which the model says this, in its unit."""
        x, alike = self._standardized(supports), self._alike(supports)
        parts = {MODEL: told}
        for name in self.ensemble.used:
            if name == MODEL:
                continue
            if name in self.others:
                own = self.others[name].mixture(supports, self.task).predictive()
            else:
                mean, variance = self.gps[name].predict(x)
                noise = np.full(len(x), self.gps[name].noise)
                own = self._own_unit(mean, variance + noise, noise)
            parts[name] = own.answering(alike)
        return self.ensemble.mixed(parts, x, otherwise=told)

    def limits(self, scarce: str, own: str) -> list[str]:
        """Which supports the average predicts, and whether left-out rows correct its intervals."""
        sizes = (
            f"The average predicts {scarce} over supports of the size of its training rows; other "
            f"sizes and other tasks are predicted by {own} alone."
        )
        corrected = "Rows that were left out correct the width of the average's intervals."
        shape = self.ensemble.shape
        return [sizes, *([corrected] if isinstance(shape, Widened) and shape.changes else [])]

    def _own_unit(self, mean: Values, variance: Values, noise: Values) -> MixturePredictive:
        """In the unit of the model, of what a partner says."""
        offset, factor = self.scale
        return MixturePredictive.gaussian(mean, variance, noise).scaled(factor, offset, log=False)

    def _alike(self, supports: Float[Tensor, "n c"]) -> Bool[np.ndarray, " n"]:
        """Boxes of the task's size, which its GPs know."""
        lower, upper = supports.chunk(2, dim=1)
        off = (upper - lower - self.frame[2]).abs()
        close = (off <= ALIKE * (self.frame[1] + self.frame[2])).all(1)
        return np.asarray(close.cpu().numpy())

    def _standardized(self, supports: Float[Tensor, "n c"]) -> Float[np.ndarray, "n d"]:
        """Centers of boxes."""
        lower, upper = supports.chunk(2, dim=1)
        own = ((lower + upper) / 2 - self.frame[0]) / self.frame[1]
        return np.asarray(own.cpu().numpy())

    def tensors(self) -> Tensors:
        """What `read` needs beside `meta`."""
        found = {
            f"{k}.{n}": v for k, gp in enumerate(self.gps.values()) for n, v in gp.tensors().items()
        }
        for name, other in self.others.items():
            found |= {f"{OTHERS[name]}.{n}": v for n, v in other.state_dict().items()}
        return {**found, "frame": self.frame}

    def meta(self) -> dict[str, Any]:
        """What `read` needs, ready for JSON."""
        others = [OTHERS[name] for name in self.others]
        return {"task": self.task, "others": others, **self.ensemble.meta()}

    @classmethod
    def read(
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
        }
        others = {
            name: restored(key, part(tensors, f"{key}."))
            for name, key in OTHERS.items()
            if key in meta.get("others", ())
        }
        own, *rest = meta["weights"]
        if len(rest) == len(PARTNERS):  # of a run before there were others
            meta = {**meta, "weights": [own, *[0.0] * len(OTHERS), *rest]}
        ensemble = Ensemble.read(meta, NAMES, Widened)
        offset, factor = meta["scale"]
        return cls(ensemble, meta["task"], others, gps, tensors["frame"], (offset, factor))


def _chosen(model: ExactGP) -> int:
    """Hyperparameters that were chosen; nodes have counted already that they might be others."""
    if isinstance(model, NodesGP):
        return 0
    return sum(p.numel() for p in model.parameters() if p.requires_grad)

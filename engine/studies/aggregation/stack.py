"""An average of the model with GPs of the scarce task alone, a straight line and its mean.

Tasks that share functions help where they have something in common; where they do not, or where a
task is noise, its own rows know as much. The weights are those under which its rows are the most
probable when each is left out (`scant.inference.stacking`), in closed form (Rasmussen and Williams
2006, 5.4.2); what rows have chosen a hyperparameter is taken off, a nat for each (Akaike 1974).
A box of another size than those of the task is asked of the model alone, which knows averages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from scant.inference import stacking
from scant.inference.exact import left_out
from scant.models.anchored_gp import AnchoredGP
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.likelihoods import MTGPAPrediction
from scant.studies.protocol import Tensors, part
from torch import Tensor

LEAST_ROWS = 8  # of the task
PRIOR = 0.3  # rows for which each member counts as the best from the start
ALIKE = 1e-6  # difference of widths, as a share of the greatest extent

PARTNERS = {
    "GP of the task alone": "rbf",
    "rough GP of the task alone": "rough",
    "straight line": "linear",
    "no input": "constant",
}


class Parts(NamedTuple):
    """The mixture: of each member its weight, mean, variance of the average, and noise."""

    weights: Float[Tensor, "k n"]
    mean: Float[Tensor, "k n"]
    variance: Float[Tensor, "k n"]
    noise: Float[Tensor, "k n"]

    def moments(self) -> MTGPAPrediction:
        """Of the whole; what the members disagree on is no noise."""
        mean = (self.weights * self.mean).sum(0)
        variance = (self.weights * (self.variance + (self.mean - mean).square())).sum(0)
        return MTGPAPrediction(mean, variance, (self.weights * self.noise).sum(0))

    @property
    def std(self) -> Float[Tensor, "k n"]:
        """Deviations of new observations."""
        return (self.variance + self.noise).sqrt()


@dataclass(frozen=True)
class Stack(stacking.Average):
    """Partners of an exact model, and the weights of all.

    Attributes:
        weights: Of the model, then of the partners.
        task: The number of the scarce task.
        gps: The partners.
        frame: Rows: mean and deviation of the centers of its boxes, by dimension; their width.
        scale: Mean and deviation of its values, in the unit of the model.
    """

    names = ("model", *PARTNERS)

    task: int
    gps: tuple[AnchoredGP, ...]
    frame: Float[Tensor, "3 d"]
    scale: tuple[float, float]

    @classmethod
    @torch.no_grad()
    def weighed(cls, model: ExactGP, task: int) -> Stack | None:
        """By its own rows, each left out; None where they are few, or not of one size."""
        data = model.data
        mine = data.task == task
        lower, upper = data.supports[mine].chunk(2, dim=1)
        y, centers = data.y[mine], (lower + upper) / 2
        if len(y) < LEAST_ROWS or not float(y.std()) > 0:
            return None
        spread = centers.std(0)
        frame = torch.stack(
            [centers.mean(0), torch.where(spread > 0, spread, 1.0), (upper - lower).mean(0)]
        )
        made = cls((), task, (), frame, (float(y.mean()), float(y.std())))
        if not bool(made._alike(data.supports[mine]).all()):
            return None
        x, z = made._seen(data.supports[mine]), ((y - made.scale[0]) / made.scale[1]).cpu().numpy()
        told = [_density(model._covariance(), model._residual(), _learned(model))[mine]]
        gps = []
        for shape in PARTNERS.values():
            gp = AnchoredGP.of(shape, x, z)
            K = gp.signal(x) + gp.noise * np.eye(len(x))
            density = _density(torch.as_tensor(K), torch.as_tensor(z), len(gp.theta))
            told.append(density.to(y) - np.log(made.scale[1]))
            gps.append(gp)
        weights = stacking.weights(
            torch.stack(told, 1).cpu().numpy(), cls.names.index("no input"), PRIOR
        )
        return cls(tuple(weights.tolist()), task, tuple(gps), frame, made.scale)

    def parts(self, supports: Float[Tensor, "n c"], told: MTGPAPrediction) -> Parts:
        """The mixture at supports, of which the model says this."""
        alike = self._alike(supports)
        weights = supports.new_tensor(self.weights)[:, None] * alike
        weights[0, ~alike] = 1.0
        offset, factor = self.scale
        x, columns = self._seen(supports), [told]
        for gp in self.gps:
            mean, variance = (torch.as_tensor(v).to(supports) for v in gp.ask(x))
            noise = torch.full_like(mean, factor**2 * gp.noise)
            columns.append(MTGPAPrediction(offset + factor * mean, factor**2 * variance, noise))
        return Parts(weights, *(torch.stack(column) for column in zip(*columns)))

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
        return {**found, "frame": self.frame}

    def meta(self) -> dict[str, Any]:
        """What `read` needs, ready for JSON."""
        return {"weights": list(self.weights), "task": self.task, "scale": list(self.scale)}

    @classmethod
    def read(cls, tensors: Tensors, meta: Mapping[str, Any] | None) -> Stack | None:
        """The inverse of `tensors` and `meta`; None of a run without an average."""
        if not meta:
            return None
        gps = (
            AnchoredGP.read(shape, part(tensors, f"{k}."))
            for k, shape in enumerate(PARTNERS.values())
        )
        offset, factor = meta["scale"]
        weights = tuple(meta["weights"])
        return cls(weights, meta["task"], tuple(gps), tensors["frame"], (offset, factor))


def _learned(model: ExactGP) -> int:
    """Its hyperparameters."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def _density(
    K: Float[Tensor, "n n"], residual: Float[Tensor, " n"], chosen: int
) -> Float[Tensor, " n"]:
    """Log densities of rows, each left out, less their share of a nat for each that was chosen."""
    error, variance = left_out(K, residual)
    density = -0.5 * (error.square() / variance + (2 * torch.pi * variance).log())
    return density - chosen / len(residual)

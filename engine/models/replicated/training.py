"""Training of the models of replicas that need nothing but their own objective's gradient."""

from __future__ import annotations

import math

import torch
from linear_operator.utils.errors import NanError, NotPSDError
from scant.errors import BadInput
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.replicated.exact import ReplicaGP
from scant.optim.lbfgs import LBFGS
from scant.optim.state import from_tensors, to_tensors
from torch import Tensor

SCHEMES = ("lbfgs", "adam")


class Training:
    """Optimizer steps on a model and the data it was built on.

    Args:
        model: Trained in place.
        scheme: "lbfgs" or "adam".
        rate: Adam's step.

    Raises:
        BadInput: An unknown scheme.
    """

    def __init__(self, model: ReplicaGP, scheme: str = "lbfgs", rate: float = 0.02) -> None:
        if scheme not in SCHEMES:
            raise BadInput(f"Scheme {scheme!r} is unknown; use one of {', '.join(SCHEMES)}.")
        self.model = model
        self.notes: list[str] = []
        self.parameters = list(model.parameters())
        self.lbfgs = LBFGS(self.parameters, self._objective) if scheme == "lbfgs" else None
        self.adams = [] if self.lbfgs else [torch.optim.Adam(self.parameters, lr=rate)]

    @property
    def stalled(self) -> bool:
        """Whether no lower point is found any more."""
        return self.lbfgs is not None and self.lbfgs.stalled

    def step(self) -> float:
        """One step; the objective in nats: after it with L-BFGS, else before it.

        NaN where a matrix can no longer be factorized; no step is taken then. Jitter that a
        factor needed is told in `notes`, once.
        """
        with collect_numerical_warnings(self.notes):
            value = -self.lbfgs.step() if self.lbfgs else self._adam_step()
        return value

    def _adam_step(self) -> float:
        self.model.zero_grad()
        value = self._objective()
        if math.isfinite(value.item()):
            value.backward()  # type: ignore[no-untyped-call]
            for adam in self.adams:
                adam.step()
        return -value.item()

    def _objective(self) -> Tensor:
        try:
            return -self.model.elbo()
        except (NanError, NotPSDError, torch.linalg.LinAlgError):
            # A point of no use: the line search turns back from it.
            return self.model.log_noise.sum() * math.nan

    def state(self) -> dict[str, Tensor]:
        """All that a bitwise resume needs besides the model's `state_dict`."""
        return self.lbfgs.state_dict() if self.lbfgs else to_tensors(self.adams)

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what `state` gave, the model's own state being loaded already."""
        if self.lbfgs:
            self.lbfgs.load_state_dict(tensors)
        else:
            from_tensors(self.adams, tensors)

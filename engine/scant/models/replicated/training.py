"""Training of exact models of replicated outputs by L-BFGS or Adam."""

from __future__ import annotations

import math

from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor, linalg

from scant.errors import BadInput
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.replicated.exact import ReplicaGP
from scant.optim.adam_lbfgs import AdamLBFGS

SCHEMES = ("lbfgs", "adam")


class ReplicaTrainer(AdamLBFGS):
    """Optimizer of a `ReplicaGP` on its data.

    Args:
        model: The model, trained in place.
        scheme: "lbfgs" or "adam".
        rate: Learning rate of Adam.

    Raises:
        BadInput: The scheme is unknown.
    """

    def __init__(self, model: ReplicaGP, scheme: str = "lbfgs", rate: float = 0.02) -> None:
        if scheme not in SCHEMES:
            raise BadInput(f"Scheme {scheme!r} is unknown; use one of {', '.join(SCHEMES)}.")
        self._notes: list[str] = []
        super().__init__(model, self._elbo, 1, 0 if scheme == "lbfgs" else None, rate)

    @property
    def notes(self) -> list[str]:
        """Numerical warnings about added jitter, each once."""
        return self._notes

    def _elbo(self) -> Tensor:
        model: ReplicaGP = self.model
        try:
            with collect_numerical_warnings(self._notes):
                return model.elbo()
        except (NanError, NotPSDError, linalg.LinAlgError):
            # NaN makes the line search take a smaller step.
            return model.log_noise.sum() * math.nan

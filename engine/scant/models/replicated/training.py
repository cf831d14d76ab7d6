"""Training of the models of replicas that need nothing but their own ELBO's gradient."""

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
    """Steps on a model and the data it was built on.

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
        self._notes: list[str] = []
        super().__init__(model, self._elbo, 1, 0 if scheme == "lbfgs" else None, rate)

    @property
    def notes(self) -> list[str]:
        """Jitter that a factor needed, each once."""
        return self._notes

    def _elbo(self) -> Tensor:
        model: ReplicaGP = self.model
        try:
            with collect_numerical_warnings(self._notes):
                return model.elbo()
        except (NanError, NotPSDError, linalg.LinAlgError):
            # A point of no use: the line search turns back from it.
            return model.log_noise.sum() * math.nan

"""Constraint for positive parameters stored as logarithms."""

from __future__ import annotations

import torch
from gpytorch.constraints import Positive


class LogPositive(Positive):
    """Positive value `x = exp(log_x)` with `log_x` as the raw parameter.

    The bounds are not part of the state dict: they never change.
    """

    def __init__(self) -> None:
        super().__init__(transform=torch.exp, inv_transform=torch.log)
        for name in ("lower_bound", "upper_bound"):
            bound = getattr(self, name)
            delattr(self, name)
            self.register_buffer(name, bound, persistent=False)

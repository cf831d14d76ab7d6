"""The constraint of positive parameters that are held as logarithms."""

from __future__ import annotations

import torch
from gpytorch.constraints import Positive


class LogPositive(Positive):
    """A positive number whose logarithm is the parameter: `x = exp(log_x)`.

    Its bounds never change, so that a model's state holds what is learned and nothing else.
    """

    def __init__(self) -> None:
        super().__init__(transform=torch.exp, inv_transform=torch.log)
        for name in ("lower_bound", "upper_bound"):
            bound = getattr(self, name)
            delattr(self, name)
            self.register_buffer(name, bound, persistent=False)

"""LVMOGP: the latent-variable multi-output GP that HMOGP-LV builds on, blind to replicas.

Dai, Alvarez and Lawrence (2017); a baseline in Ma (2023), section 5.4, where all replicas of an
output are rows of one output. It is HMOGP-LV with a single level in k_X, so all of that is used.
"""

from __future__ import annotations

import torch
from gpytorch.kernels import Kernel

from scant.kernels.hierarchical import ReplicaKernel
from scant.models.replicated.data import Data
from scant.models.replicated.hmogp_lv.initialization import start_level
from scant.models.replicated.hmogp_lv.model import HMOGPLV


class LVMOGP(HMOGPLV):
    """As HMOGP-LV, but every replica of an output is the same function."""

    @staticmethod
    def start_kernel(shared: str | Kernel, replica: str | Kernel) -> ReplicaKernel:
        return ReplicaKernel(start_level(shared, 1.0))

    @staticmethod
    def seen(data: Data) -> Data:
        """All rows are of one replica, which no replica is new to."""
        data.check(data.output, data.replica)
        one = torch.zeros_like(data.replica)
        return Data(data.output, one, data.x, data.y, torch.zeros_like(data.samplings[:, :1]))

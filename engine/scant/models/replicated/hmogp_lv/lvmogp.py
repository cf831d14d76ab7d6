"""LVMOGP: the latent variable multi-output GP, the basis of HMOGP-LV, which ignores replicas.

Dai, Alvarez and Lawrence (2017); a baseline in Ma (2023), section 5.4, where all replicas of an
output are rows of one output. It is HMOGP-LV with a single level in k_X.
"""

from __future__ import annotations

import torch
from gpytorch.kernels import Kernel

from scant.kernels.hierarchical import ReplicaKernel
from scant.models.replicated.data import Data
from scant.models.replicated.hmogp_lv.initialization import start_level
from scant.models.replicated.hmogp_lv.model import HMOGPLV


class LVMOGP(HMOGPLV):
    """HMOGP-LV in which all replicas of an output share one function."""

    @staticmethod
    def start_kernel(shared: str | Kernel, replica: str | Kernel) -> ReplicaKernel:
        return ReplicaKernel(start_level(shared, 1.0))

    @staticmethod
    def preprocess(data: Data) -> Data:
        """Assign all rows to a single replica."""
        data.check(data.output, data.replica)
        one = torch.zeros_like(data.replica)
        return Data(data.output, one, data.x, data.y, torch.zeros_like(data.samplings[:, :1]))

"""Training of BGPLVM and SCLVM on the whole bound: Adam first, then L-BFGS to the end.

The bound's slope is thousands of times steeper along the kernel's parameters, which all rows share,
than along a row's own position. L-BFGS from principal components follows it until lengthscales are
so long that the model is linear, and stays there; Adam's steps know no scale.
"""

from __future__ import annotations

import math

from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.optim.adam_lbfgs import AdamLBFGS


class GPLVMTrainer(AdamLBFGS):
    """Steps on a latent variable model and the rows it was built on.

        trainer = GPLVMTrainer(model)
        while not trainer.stalled:
            elbo = trainer.step()       # in nats

    Args:
        model: A `BGPLVM` or `SCLVM`; or a `DGPLVM`, which has no need of Adam.
        adam: Steps of Adam, an evaluation each, before those of L-BFGS.
    """

    def __init__(self, model: BGPLVM | DGPLVM, adam: int = 300) -> None:
        super().__init__(model, model.elbo, len(model.label), adam)

    def step(self) -> float:
        """One more step (see `AdamLBFGS.step`); L-BFGS goes on at once where Adam gives up."""
        value = super().step()
        return value if math.isfinite(value) else super().step()

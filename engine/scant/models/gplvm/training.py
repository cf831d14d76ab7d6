"""Training of BGPLVM and SCLVM on the full bound: Adam first, then L-BFGS until convergence.

The gradient is thousands of times larger for kernel parameters, shared by all rows, than for the
position of one row. L-BFGS from principal components increases the lengthscales until the model is
linear and stays there; Adam's steps do not depend on the scale of the gradient.
"""

from __future__ import annotations

import math

from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.optim.adam_lbfgs import AdamLBFGS


class GPLVMTrainer(AdamLBFGS):
    """Optimizer of a latent variable model on its training rows.

        trainer = GPLVMTrainer(model)
        while not trainer.stalled:
            elbo = trainer.step()       # in nats

    Args:
        model: A `BGPLVM` or `SCLVM`; or a `DGPLVM`, which needs no Adam steps.
        adam: Number of Adam steps before L-BFGS.
    """

    def __init__(self, model: BGPLVM | DGPLVM, adam: int = 300) -> None:
        super().__init__(model, model.elbo, len(model.label), adam)

    def step(self) -> float:
        """Take a step (see `AdamLBFGS.step`); L-BFGS continues at once if Adam fails."""
        value = super().step()
        return value if math.isfinite(value) else super().step()

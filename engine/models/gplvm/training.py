"""Training of BGPLVM and SCLVM on the whole bound: Adam first, then L-BFGS to the end.

The bound's slope is thousands of times steeper along the kernel's parameters, which all rows share,
than along a row's own position. L-BFGS from principal components follows it until lengthscales are
so long that the model is linear, and stays there; Adam's steps know no scale.
"""

from __future__ import annotations

from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.optim.adam_lbfgs import AdamLBFGS


class Training(AdamLBFGS):
    """A run of steps that can be kept and taken up again.

        training = Training(model)
        while not training.stalled:
            value = training.step()       # minus the bound of a row, in nats

    Args:
        model: A `BGPLVM` or `SCLVM`; or a `DGPLVM`, which has no need of Adam.
        adam: Steps of Adam, an evaluation each, before those of L-BFGS.
    """

    def __init__(self, model: BGPLVM | DGPLVM, adam: int = 300) -> None:
        self.model = model
        super().__init__(model.parameters(), model.objective, adam)

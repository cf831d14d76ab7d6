"""Training of GPz: L-BFGS on the log evidence 3.36."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.models.gpz.row_sums import LocalRows, Pattern, RowSums
from scant.optim.adam_lbfgs import AdamLBFGS


class GPzTrainer(AdamLBFGS):
    """L-BFGS on `LogEvidence` of a model and its (weighted) rows.

    Args:
        model: The model, trained in place.
        X: Inputs, NaN where missing.
        y: Targets.
        omega: Sample weights; ones by default.
        noise_variance: Variances or covariances of the inputs.
        place: Storage of the rows (see `LogEvidence`).
    """

    def __init__(
        self,
        model: GPz,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        omega: Float[Tensor, " n"] | None = None,
        noise_variance: Float[Tensor, "n *d_d"] | None = None,
        place: Callable[[list[Pattern], int], RowSums] = LocalRows,
    ) -> None:
        self.log_evidence = LogEvidence(model, X, y, omega, noise_variance, place)
        super().__init__(model, self.log_evidence, 1, adam=0)

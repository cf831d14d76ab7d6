"""Training of MOGPs-AR: Adam on minibatches of every output, sparse for the mixing matrix."""

from __future__ import annotations

import math
from typing import Any

import gpytorch
import torch
from jaxtyping import Float, Int
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.mogp_ar.baselines import build
from scant.models.mogp_ar.kernels import Columns, Kernel, RbfArd, Rows
from scant.optim.adam_lbfgs import cosine_decay
from scant.optim.ascent import maximize
from scant.optim.state import Resumable

RATE = 0.05  # initial learning rate of Adam
DENSE_DRAWS = 8  # draws per class for dense updates: a step misses one class in 3,000


class MOGPARTrainer(Resumable):
    """Optimizer of a model on its training rows.

    Args:
        model: `MOGPAR` or a baseline, trained in place.
        rows: Rows prepared by the kernel.
        output, label: Output of each row, and its class within the output.
        generator: A CPU generator for minibatches and sampled classes.
        batch: Rows per output in a step, without replacement; None uses all.
        sampled: |S_d|, the number of other classes sampled per row; 0 uses all.
        rate: Initial learning rate of Adam.
        horizon: Number of steps of the cosine decay of the rate to a hundredth; None keeps it.

    Raises:
        BadInput: The batch size is below one.
    """

    def __init__(
        self,
        model: Any,
        rows: Rows,
        output: Int[Tensor, " n"],
        label: Int[Tensor, " n"],
        generator: torch.Generator,
        batch: int | None = 50,
        sampled: int = 1,
        rate: float = RATE,
        horizon: int | None = None,
    ) -> None:
        if batch is not None and batch < 1:
            raise BadInput(f"A batch needs at least one row, got {batch}.")
        self.model, self.data, self.generator = model, rows, generator
        self.output, self.label = output, label
        self.batch, self.sampled, self.rate, self.horizon = batch, sampled, rate, horizon
        self.steps = 0
        self.notes: list[str] = []  # numerical warnings, each once
        outputs = output.cpu()
        count = torch.bincount(outputs)
        self.rows_of_output = list(outputs.argsort(stable=True).split(count.tolist()))
        self.n_total = count.to(output.device)
        embeddings = [m for m in model.modules() if isinstance(m, nn.Embedding)]
        for mixing in embeddings:  # sorting rows in SparseAdam costs a twentieth of a small problem
            mixing.sparse = not self._draws_all(count)
        sparse = [m.weight for m in embeddings if m.sparse and m.weight.requires_grad]
        sparse_ids = {id(weight) for weight in sparse}
        dense = [p for p in model.parameters() if p.requires_grad and id(p) not in sparse_ids]
        self.optimizers = [torch.optim.Adam(dense, lr=rate, fused=True)]
        if sparse:
            self.optimizers.append(torch.optim.SparseAdam(sparse, lr=rate))

    def _draws_all(self, count: Int[Tensor, " d"]) -> bool:
        """Return True if a step almost certainly uses the mixing rows of all classes."""
        used_rows = count if self.batch is None else count.clamp(max=self.batch)
        n_draws = used_rows * (1 + self.sampled)
        return not self.sampled or bool((n_draws >= DENSE_DRAWS * self.model.sizes.cpu()).all())

    def step(self) -> float:
        """Take one step and return the estimate of the bound before it, in nats.

        Return NaN without a step if a factorization fails.
        """
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        at = self.draw()
        with collect_numerical_warnings(self.notes):
            try:
                bound = self.model.elbo(
                    self.data[at],
                    self.output[at],
                    self.label[at],
                    self.n_total,
                    self.generator,
                    self.sampled,
                )
            except (NanError, NotPSDError):
                return math.nan
            value = bound.item()
            if not math.isfinite(value):
                return math.nan
            (-bound / len(self.output)).backward()
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.rate * cosine_decay(self.steps, self.horizon)
            optimizer.step()
        self.steps += 1
        return value

    def draw(self) -> Int[Tensor, " b"]:
        """Sample the rows of a step: `batch` rows of every output, or all of them."""
        if self.batch is None:
            return torch.arange(len(self.output), device=self.output.device)
        picks = [
            rows[torch.randperm(len(rows), generator=self.generator)[: self.batch]]
            for rows in self.rows_of_output
        ]
        return torch.cat(picks).to(self.output.device)


def fit(
    x: Float[Tensor, "n v"],
    output: Int[Tensor, " n"],
    label: Int[Tensor, " n"],
    name: str = "mogp-ar",
    kernel: Kernel | gpytorch.kernels.Kernel | None = None,
    n_latent: int = 5,
    inducing: int = 100,
    steps: int = 600,
    batch: int | None = 200,
    sampled: int = 0,
    rate: float = RATE,
    falls: bool = True,
    seed: int = 0,
    **options: Any,
) -> Any:
    """Build and train a model; predict with `model.predict(model.kernel.prepare(x), output)`.

    Args:
        x: Inputs of all rows.
        output, label: Output of each row, and its class within the output, from 0; the largest
            label determines the number of classes.
        name: One of `scant.models.mogp_ar.baselines.MODELS`.
        kernel: Any GPyTorch kernel with batch shape Q; default RBF-ARD with `n_latent` latent
            functions on standardized columns.
        n_latent: Number Q of kernels; single-output models use one kernel per output.
        inducing: Number M of inducing points.
        steps: Number of steps.
        batch: Rows of each output in a step.
        sampled: Number of classes per row in a step; all (0) cost little more and learn faster.
        rate: Initial learning rate of Adam.
        falls: True if the rate decays over the steps to a hundredth; False keeps it.
        seed: Seed of the generator.
        options: Arguments of `MOGPAR`: rank, covariance, constant.
    """
    generator = torch.Generator().manual_seed(seed)
    if kernel is None:
        kernel = RbfArd(x, n_latent if name in ("mogp-ar", "mg-m") else 1)
    if not isinstance(kernel, Kernel):
        kernel = Columns(kernel)
    rows = kernel.prepare(x)
    sizes = [int(label[output == d].max()) + 1 for d in range(int(output.max()) + 1)]
    model = build(name, kernel, rows, output, sizes, inducing, generator, **options)
    horizon = steps if falls else None
    trainer = MOGPARTrainer(
        model, rows, output, label, generator, batch, sampled, rate=rate, horizon=horizon
    )
    maximize(trainer, steps)
    return model

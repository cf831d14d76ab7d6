"""Training of MOGPs-AR step by step: Adam on batches of every output, sparse where classes mix."""

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
from scant.optim.state import Resumable

RATE = 0.05  # Adam's step to start from
OFTEN = 8  # draws for each class of an output: one in 3,000 classes is then left out of a step


class MOGPARTrainer(Resumable):
    """Optimizer steps on a model and its rows.

    Args:
        model: `MOGPAR` or a baseline, trained in place.
        rows: Prepared by the kernel.
        output, label: Each row's output, and its class within it.
        generator: A CPU generator that draws batches and classes.
        batch: Rows of each output in a step, without replacement; None takes all.
        sampled: |S_d|, classes drawn for each row besides its own; 0 takes all.
        rate: Adam's step to start from.
        horizon: Steps in which the rate falls to a hundredth along a cosine; None keeps it.

    Raises:
        BadInput: A batch below one.
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
        self.notes: list[str] = []  # of the numerics, each once
        members = output.cpu()
        count = torch.bincount(members)
        self.members = list(members.argsort(stable=True).split(count.tolist()))
        self.n_total = count.to(output.device)
        found = [m for m in model.modules() if isinstance(m, nn.Embedding)]
        for mixing in found:  # SparseAdam sorts rows for a twentieth of a small problem's time
            mixing.sparse = not self._draws_all(count)
        sparse = [m.weight for m in found if m.sparse and m.weight.requires_grad]
        known = {id(weight) for weight in sparse}
        dense = [p for p in model.parameters() if p.requires_grad and id(p) not in known]
        self.optimizers = [torch.optim.Adam(dense, lr=rate, fused=True)]
        if sparse:
            self.optimizers.append(torch.optim.SparseAdam(sparse, lr=rate))

    def _draws_all(self, count: Int[Tensor, " d"]) -> bool:
        """Whether a step takes the mixing matrix's rows of all classes, all but for certain."""
        taken = count if self.batch is None else count.clamp(max=self.batch)
        drawn = taken * (1 + self.sampled)
        return not self.sampled or bool((drawn >= OFTEN * self.model.sizes.cpu()).all())

    def step(self) -> float:
        """One step; the estimate of the bound before it, in nats.

        NaN where a matrix can no longer be factorized; no step is taken then.
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
        """Rows of a step: as many of every output, or all it has."""
        if self.batch is None:
            return torch.arange(len(self.output), device=self.output.device)
        picks = [
            of[torch.randperm(len(of), generator=self.generator)[: self.batch]]
            for of in self.members
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
    seed: int = 0,
    **options: Any,
) -> Any:
    """A model of the publication, trained; `model.predict(model.kernel.prepare(x), output)`.

    Args:
        x: Inputs of all outputs' rows.
        output, label: Each row's output, and its class within it, from 0; the largest label of an
            output says how many classes it has.
        name: One of `scant.models.mogp_ar.baselines.MODELS`.
        kernel: Any of GPyTorch, of batch shape Q; else RBF-ARD of `n_latent` latent functions on
            standardized columns.
        n_latent: Q; single-output models take one kernel for each output.
        inducing: M.
        steps: In which Adam's rate falls from `rate` to a hundredth of it.
        batch: Rows of each output in a step.
        sampled: Classes for each row in a step; all (0) cost little more than few, and teach more.
        options: Of `MOGPAR`: rank, covariance, constant.
    """
    generator = torch.Generator().manual_seed(seed)
    if kernel is None:
        kernel = RbfArd(x, n_latent if name in ("mogp-ar", "mg-m") else 1)
    if not isinstance(kernel, Kernel):
        kernel = Columns(kernel)
    rows = kernel.prepare(x)
    sizes = [int(label[output == d].max()) + 1 for d in range(int(output.max()) + 1)]
    model = build(name, kernel, rows, output, sizes, inducing, generator, **options)
    trainer = MOGPARTrainer(
        model, rows, output, label, generator, batch, sampled, rate=rate, horizon=steps
    )
    for _ in range(steps):
        trainer.step()
    return model

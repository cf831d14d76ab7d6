"""The baselines of MOGPs-AR (Ma 2023, section 3.3).

- G-A: each output alone, an independent GP for each class, augment and reduce.
- G-M: the same with the softmax itself, whose expectation is taken by Monte Carlo.
- MG-M: the linear model of coregionalisation with the softmax itself, all classes in every step.

Monte Carlo draws the latent functions, not those of the classes. GPyTorch's `SoftmaxLikelihood`
would draw from the global generator, and for one number of classes alone.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from gpytorch.likelihoods import LikelihoodList
from gpytorch.models import GP
from jaxtyping import Float, Int
from torch import Tensor, nn

from scant.errors import BadInput
from scant.kernels.constraints import LogPositive
from scant.likelihoods import softmax_average
from scant.likelihoods.augment_reduce import AugmentReduceLikelihood, grouped
from scant.models.hyperprior import log_hyperprior
from scant.models.mogp_ar.kernels import Kernel, Rows
from scant.models.mogp_ar.mixing import Coregionalised
from scant.models.mogp_ar.model import MOGPAR

MODELS = ("mogp-ar", "mg-m", "g-m", "g-a")
DRAWS = 10  # for a row's expectation in a step
DRAWS_OF_A_BOUND = 100


class MonteCarloSoftmax(AugmentReduceLikelihood):
    """The softmax itself; its expected log probability is taken by Monte Carlo."""

    def terms(
        self,
        mean: Float[Tensor, "b l"],
        variance: Float[Tensor, "b l"],
        output: Int[Tensor, " b"],
        label: Int[Tensor, " b"],
        generator: torch.Generator | None,
        sampled: int,
    ) -> Float[Tensor, " b"]:
        """E[log softmax] by draws of the latent functions; more, and always the same, for a bound.

        All classes take part, whatever the number to be sampled.
        """
        draws = DRAWS if generator else DRAWS_OF_A_BOUND
        generator = generator or torch.Generator().manual_seed(0)
        place, back, present = grouped(output, len(self.sizes))
        classes, real = self.classes_of(present)
        noise = torch.randn(draws, *mean.shape, generator=generator, dtype=mean.dtype)
        # Where a variance is zero its root has no gradient; a constant's needs none.
        u = mean + variance.clamp(min=1e-12).sqrt() * noise.to(mean.device)
        f = u[:, place] @ self.mixing(classes).mT
        log_p = f.masked_fill(~real.unsqueeze(1), -math.inf).log_softmax(-1)
        own = label[place].expand(draws, -1, -1).unsqueeze(-1)
        return log_p.gather(-1, own).squeeze(-1).mean(0).flatten()[back]


class MGM(MOGPAR):
    """The linear model of coregionalisation with the softmax itself, covariances kept."""

    Softmax = MonteCarloSoftmax


class GA(MOGPAR):
    """One output alone: f_c = s u_c + a_c0 with independent u_c of one kernel."""

    def start_mixing(self, functions: int, like: Tensor, generator: torch.Generator) -> None:
        self.register_parameter("log_height", nn.Parameter(like.new_zeros(())))
        self.register_constraint("log_height", LogPositive())
        constants = nn.Parameter(like.new_zeros(functions), requires_grad=self.constant)
        self.register_parameter("constants", constants)

    @property
    def height(self) -> Float[Tensor, ""]:
        """s, the functions' standard deviation."""
        return self.log_height.exp()

    @height.setter
    def height(self, value: Tensor | float) -> None:
        self.initialize(log_height=torch.as_tensor(value).to(self.log_height).log())

    def drawn_rows(self, classes: Int[Tensor, "*n"]) -> Float[Tensor, "*n l"]:
        """a_c: the height at the class's own function, and its constant."""
        own = torch.eye(len(self.constants), dtype=self.constants.dtype, device=classes.device)
        rows = own[classes] * self.log_height.exp()
        if not self.constant:
            return rows
        return torch.cat([rows, self.constants[classes].unsqueeze(-1)], -1)


class GM(GA):
    """One output alone, with the softmax itself."""

    Softmax = MonteCarloSoftmax


class Independent(Coregionalised, GP):  # type: ignore[misc]
    """A model for each output, with the interface of one.

    Args:
        models: Of outputs 0, 1, …; kernels that prepare rows alike.
    """

    def __init__(self, models: Sequence[MOGPAR]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.width = max(model.width for model in models)
        self.register_buffer("sizes", torch.cat([model.sizes for model in models]))

    def forward(self, x: Float[Tensor, "n v"]) -> list[MultitaskMultivariateNormal]:
        """Each output's functions at inputs as they are, as GPyTorch's `IndependentModelList`."""
        return [model(x) for model in self._members()]

    @property
    def likelihood(self) -> LikelihoodList:
        """Of the outputs: `likelihood(*model(x))`."""
        return LikelihoodList(*(model.likelihood for model in self._members()))

    @property
    def kernel(self) -> Any:
        """One that prepares rows for all."""
        return self.models[0].kernel

    @property
    def inducing_points(self) -> Float[Tensor, "d m e"]:
        """Of all outputs."""
        return torch.cat([model.inducing_points for model in self._members()])

    @torch.no_grad()
    def latent(self, rows: Rows) -> tuple[Float[Tensor, "l n"], Float[Tensor, "l n"]]:
        """As of Q = D kernels of as many ranks as classes; zero where an output has fewer."""
        parts = [
            [_padded(part, self.width, 0) for part in model.latent(rows)]
            for model in self._members()
        ]
        mean, variance = (torch.cat(part) for part in zip(*parts))
        return mean, variance

    def factors(self) -> Float[Tensor, "d c r"]:
        """A_q of each output's kernel, zero at the classes of other outputs."""
        whole = torch.block_diag(*(_padded(m.factors()[0], self.width, 1) for m in self._members()))
        return torch.stack(whole.split(self.width, 1))

    def solved(self) -> Float[Tensor, "d m r"]:
        """K_uu^-1 E[u] of each class's function."""
        return torch.cat([_padded(model.solved(), self.width, 2) for model in self._members()])

    def elbo(
        self,
        rows: Rows,
        output: Int[Tensor, " b"],
        label: Int[Tensor, " b"],
        n_total: Int[Tensor, " d"],
        generator: torch.Generator,
        sampled: int = 1,
    ) -> Float[Tensor, ""]:
        """The sum of the outputs' bounds and registered priors, in nats."""
        parts = [
            model.estimate(rows[at], zero, label[at], n_total[d : d + 1], generator, sampled)
            for d, model, at, zero in self._each(output)
        ]
        return torch.stack(parts).sum() + log_hyperprior(self)

    def bound(
        self, rows: Rows, output: Int[Tensor, " n"], label: Int[Tensor, " n"]
    ) -> Float[Tensor, ""]:
        """The sum of the outputs' bounds with all rows and classes, in nats."""
        parts = [
            model.bound(rows[at], zero, label[at]) for _, model, at, zero in self._each(output)
        ]
        return torch.stack(parts).sum()

    @torch.no_grad()
    def predict(
        self,
        rows: Rows,
        output: Int[Tensor, " n"],
        draws: int = softmax_average.DRAWS,
        seed: int = 0,
        temperature: float = 1.0,
    ) -> softmax_average.MOGPARPrediction:
        """Class probabilities of each row's output, with errors and entropies (see MOGPAR)."""
        parts = [
            (at, model.predict(rows[at], zero, draws, seed, temperature))
            for _, model, at, zero in self._each(output)
        ]
        like = self._members()[0].q_mean
        return softmax_average.scattered(parts, len(output), self.width, like)

    def probabilities(self, rows: Rows, output: Int[Tensor, " n"]) -> Float[Tensor, "n c"]:
        """Class probabilities of each row's output; 0 beyond the number of its classes."""
        return self.predict(rows, output).probability

    def _members(self) -> list[MOGPAR]:
        return [model for model in self.models if isinstance(model, MOGPAR)]

    def _each(self, output: Tensor) -> list[tuple[int, Any, Tensor, Tensor]]:
        """Each output that has rows: number, model, its rows, and zeros in place of its number."""
        found = []
        for d, model in enumerate(self._members()):
            at = (output == d).nonzero().squeeze(1)
            if len(at):
                found.append((d, model, at, torch.zeros_like(at)))
        return found


def build(
    name: str,
    kernel: Kernel,
    rows: Rows,
    output: Int[Tensor, " n"],
    n_classes: Sequence[int],
    inducing: int,
    generator: torch.Generator,
    **options: Any,
) -> Any:
    """A model by its name, at its start.

    Args:
        name: One of `MODELS`.
        kernel: Of Q latent functions; of one for `"g-m"` and `"g-a"`, copied for each output.
        rows: To learn from, prepared by the kernel.
        output: Each row's output.
        n_classes: C_d of each output.
        inducing: M.
        generator: A CPU generator.
        options: Of `MOGPAR`: rank, covariance, constant.

    Raises:
        BadInput: An unknown name; an output without rows or with fewer than two classes.
    """
    if name not in MODELS:
        raise BadInput(f"Model {name!r} is unknown; use one of {', '.join(MODELS)}.")
    if name in ("mogp-ar", "mg-m"):
        z = kernel.start(rows, inducing, generator)
        options = options if name == "mogp-ar" else options | {"covariance": "kept"}
        return (MOGPAR if name == "mogp-ar" else MGM)(kernel, z, n_classes, generator, **options)
    kind, models = (GA if name == "g-a" else GM), []
    options = options | {"covariance": "dropped"}
    for d, classes in enumerate(n_classes):
        own = (output == d).nonzero().squeeze(1)
        if not len(own):
            raise BadInput(f"Output {d} has no row; leave it out or give it one.")
        z = kernel.start(rows[own], inducing, generator)
        models.append(
            kind(copy.deepcopy(kernel), z, [classes], generator, **options | {"rank": classes})
        )
    return Independent(models)


def _padded(part: Tensor, width: int, dim: int) -> Tensor:
    """Zeros to the given width of a dimension."""
    shape = list(part.shape)
    shape[dim] = width - shape[dim]
    return torch.cat([part, part.new_zeros(shape)], dim)

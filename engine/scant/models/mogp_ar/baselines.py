"""The baselines of MOGPs-AR (Ma 2023, section 3.3).

- G-A: separate outputs with an independent GP per class, augment and reduce.
- G-M: the same with the softmax, whose expectation is estimated by Monte Carlo.
- MG-M: the linear model of coregionalization with the softmax, all classes in every step.

Monte Carlo samples the latent functions, not those of the classes. GPyTorch's `SoftmaxLikelihood`
uses the global generator and a single number of classes.
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
DRAWS = 10  # Monte Carlo draws per row in a training step
BOUND_DRAWS = 100  # Monte Carlo draws per row for `bound`


class MonteCarloSoftmax(AugmentReduceLikelihood):
    """Softmax likelihood with a Monte Carlo estimate of the expected log probability."""

    def terms(
        self,
        mean: Float[Tensor, "b l"],
        variance: Float[Tensor, "b l"],
        output: Int[Tensor, " b"],
        label: Int[Tensor, " b"],
        generator: torch.Generator | None,
        sampled: int,
    ) -> Float[Tensor, " b"]:
        """Monte Carlo estimate of E[log softmax] over all classes (`sampled` is ignored).

        Without a generator it uses more draws, with a fixed seed.
        """
        draws = DRAWS if generator else BOUND_DRAWS
        generator = generator or torch.Generator().manual_seed(0)
        row, position, present = grouped(output, len(self.sizes))
        classes, real = self.classes_of(present)
        noise = torch.randn(draws, *mean.shape, generator=generator, dtype=mean.dtype)
        # The gradient of the square root is infinite at zero (the variance of a constant).
        u = mean + variance.clamp(min=1e-12).sqrt() * noise.to(mean.device)
        f = u[:, row] @ self.mixing(classes).mT
        log_p = f.masked_fill(~real.unsqueeze(1), -math.inf).log_softmax(-1)
        observed = label[row].expand(draws, -1, -1).unsqueeze(-1)
        return log_p.gather(-1, observed).squeeze(-1).mean(0).flatten()[position]


class MGM(MOGPAR):
    """MG-M: linear model of coregionalization with the softmax, covariances kept."""

    Softmax = MonteCarloSoftmax


class GA(MOGPAR):
    """G-A for one output: f_c = s u_c + a_c0 with independent u_c that share a kernel."""

    def start_mixing(self, functions: int, like: Tensor, generator: torch.Generator) -> None:
        self.register_parameter("log_height", nn.Parameter(like.new_zeros(())))
        self.register_constraint("log_height", LogPositive())
        constants = nn.Parameter(like.new_zeros(functions), requires_grad=self.constant)
        self.register_parameter("constants", constants)

    @property
    def height(self) -> Float[Tensor, ""]:
        """Standard deviation s of the functions."""
        return self.log_height.exp()

    @height.setter
    def height(self, value: Tensor | float) -> None:
        self.initialize(log_height=torch.as_tensor(value).to(self.log_height).log())

    def mixing_rows(self, classes: Int[Tensor, "*n"]) -> Float[Tensor, "*n l"]:
        """Mixing rows a_c: s at the class's own function, and its constant."""
        eye = torch.eye(len(self.constants), dtype=self.constants.dtype, device=classes.device)
        rows = eye[classes] * self.log_height.exp()
        if not self.constant:
            return rows
        return torch.cat([rows, self.constants[classes].unsqueeze(-1)], -1)


class GM(GA):
    """G-M for one output: `GA` with the softmax by Monte Carlo."""

    Softmax = MonteCarloSoftmax


class Independent(Coregionalised, GP):  # type: ignore[misc]
    """Separate models per output, with the interface of `MOGPAR`.

    Args:
        models: Models of outputs 0, 1, …, whose kernels prepare rows in the same way.
    """

    def __init__(self, models: Sequence[MOGPAR]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.width = max(model.width for model in models)
        self.register_buffer("sizes", torch.cat([model.sizes for model in models]))

    def forward(self, x: Float[Tensor, "n v"]) -> list[MultitaskMultivariateNormal]:
        """Latent functions of each output at unprepared inputs, like `IndependentModelList`."""
        return [model(x) for model in self._output_models()]

    @property
    def likelihood(self) -> LikelihoodList:
        """Likelihoods of the outputs: `likelihood(*model(x))`."""
        return LikelihoodList(*(model.likelihood for model in self._output_models()))

    @property
    def kernel(self) -> Any:
        """Kernel of the first output, which prepares rows for all."""
        return self.models[0].kernel

    @property
    def inducing_points(self) -> Float[Tensor, "d m e"]:
        """Inducing points of all outputs."""
        return torch.cat([model.inducing_points for model in self._output_models()])

    @torch.no_grad()
    def latent(self, rows: Rows) -> tuple[Float[Tensor, "l n"], Float[Tensor, "l n"]]:
        """Moments as of Q = D kernels with one rank per class, zero beyond an output's classes."""
        parts = [
            [_padded(part, self.width, 0) for part in model.latent(rows)]
            for model in self._output_models()
        ]
        mean, variance = (torch.cat(part) for part in zip(*parts))
        return mean, variance

    def factors(self) -> Float[Tensor, "d c r"]:
        """A_q of each output's kernel, zero for classes of other outputs."""
        whole = torch.block_diag(
            *(_padded(m.factors()[0], self.width, 1) for m in self._output_models())
        )
        return torch.stack(whole.split(self.width, 1))

    def solved(self) -> Float[Tensor, "d m r"]:
        """K_uu^-1 E[u] of each class's function."""
        return torch.cat(
            [_padded(model.solved(), self.width, 2) for model in self._output_models()]
        )

    def elbo(
        self,
        rows: Rows,
        output: Int[Tensor, " b"],
        label: Int[Tensor, " b"],
        n_total: Int[Tensor, " d"],
        generator: torch.Generator,
        sampled: int = 1,
    ) -> Float[Tensor, ""]:
        """Sum of the outputs' bound estimates and registered log priors, in nats."""
        parts = [
            model.estimate(rows[at], zero, label[at], n_total[d : d + 1], generator, sampled)
            for d, model, at, zero in self._each(output)
        ]
        return torch.stack(parts).sum() + log_hyperprior(self)

    def bound(
        self, rows: Rows, output: Int[Tensor, " n"], label: Int[Tensor, " n"]
    ) -> Float[Tensor, ""]:
        """Sum of the outputs' bounds over all rows and classes, in nats."""
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
        """Class probabilities of each row's output, with errors and entropies (see `MOGPAR`)."""
        parts = [
            (at, model.predict(rows[at], zero, draws, seed, temperature))
            for _, model, at, zero in self._each(output)
        ]
        like = self._output_models()[0].q_mean
        return softmax_average.scatter_rows(parts, len(output), self.width, like)

    def probabilities(self, rows: Rows, output: Int[Tensor, " n"]) -> Float[Tensor, "n c"]:
        """Class probabilities of each row's output; 0 beyond the output's classes."""
        return self.predict(rows, output).probability

    def _output_models(self) -> list[MOGPAR]:
        return [model for model in self.models if isinstance(model, MOGPAR)]

    def _each(self, output: Tensor) -> list[tuple[int, Any, Tensor, Tensor]]:
        """For each output with rows: index, model, row indices, and zeros as output labels."""
        groups = []
        for d, model in enumerate(self._output_models()):
            at = (output == d).nonzero().squeeze(1)
            if len(at):
                groups.append((d, model, at, torch.zeros_like(at)))
        return groups


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
    """Build an initialized model by its name.

    Args:
        name: One of `MODELS`.
        kernel: Kernel of Q latent functions; of one for `"g-m"` and `"g-a"`, copied per output.
        rows: Training rows, prepared by the kernel.
        output: Output of each row.
        n_classes: C_d of each output.
        inducing: Number M of inducing points.
        generator: A CPU generator.
        options: Arguments of `MOGPAR`: rank, covariance, constant.

    Raises:
        BadInput: The name is unknown, or an output has no rows or fewer than two classes.
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
        members = (output == d).nonzero().squeeze(1)
        if not len(members):
            raise BadInput(f"Output {d} has no row; leave it out or give it one.")
        z = kernel.start(rows[members], inducing, generator)
        models.append(
            kind(copy.deepcopy(kernel), z, [classes], generator, **options | {"rank": classes})
        )
    return Independent(models)


def _padded(part: Tensor, width: int, dim: int) -> Tensor:
    """Pad a dimension with zeros to the given width."""
    shape = list(part.shape)
    shape[dim] = width - shape[dim]
    return torch.cat([part, part.new_zeros(shape)], dim)

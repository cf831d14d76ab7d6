"""Kernels of Laplace classifiers: squared exponential, optionally plus linear and constant terms.

    k(x, x') = s^2 exp(-|x - x'|^2 / 2 l^2) + v x.x' / d + c

With s = 0 the classifier is Bayesian logistic regression, which few labels in many dimensions can
determine.
"""

from __future__ import annotations

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

AMPLITUDE = 4.0  # initial s^2
SLOPE, CONSTANT = 1.0, 1.0  # initial v and c


class LinearAndRBF(Kernel):
    """Sum of a squared exponential, a linear and a constant kernel (see the module docstring).

    Attributes:
        curved: Squared exponential with its output scale.
        slope: v.
        constant: c.
    """

    has_lengthscale = False

    def __init__(self, d: int, ard: bool = False) -> None:
        super().__init__()
        self.curved = squared_exponential(d, ard)
        for name, start in (("slope", SLOPE), ("constant", CONSTANT)):
            raw = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64).log())
            self.register_parameter(f"raw_{name}", raw)
            self.register_constraint(f"raw_{name}", positive())

    @property
    def slope(self) -> Float[Tensor, ""]:
        result: Tensor = self.raw_slope_constraint.transform(self.raw_slope)
        return result

    @property
    def constant(self) -> Float[Tensor, ""]:
        result: Tensor = self.raw_constant_constraint.transform(self.raw_constant)
        return result

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: object
    ) -> Float[Tensor, "n *m"]:
        curved = dense(self.curved, x1, x2, diag)
        inner = (x1 * x2).sum(-1) if diag else x1 @ x2.transpose(-1, -2)
        result: Tensor = curved + self.slope / x1.shape[-1] * inner + self.constant
        return result


def squared_exponential(d: int, ard: bool) -> ScaleKernel:
    """Scaled squared exponential with one lengthscale or ARD, with log parameters."""
    base = RBFKernel(ard_num_dims=d if ard else None, lengthscale_constraint=positive())
    kernel = ScaleKernel(base.double(), outputscale_constraint=positive()).double()
    base.lengthscale = typical(d)
    kernel.outputscale = AMPLITUDE
    return kernel


def dense(kernel: ScaleKernel, a: Tensor, b: Tensor, diag: bool = False) -> Tensor:
    """Evaluate a scaled kernel without GPyTorch's lazy layer, with identical values."""
    result: Tensor = kernel.outputscale * kernel.base_kernel.forward(a, b, diag=diag)
    return result


def typical(d: int) -> float:
    """Typical lengthscale sqrt(d) for `d` standardized inputs."""
    return float(max(d, 1) ** 0.5)


def positive() -> Positive:
    """Positive constraint with the logarithm as the raw parameter."""
    return Positive(transform=torch.exp, inv_transform=torch.log)

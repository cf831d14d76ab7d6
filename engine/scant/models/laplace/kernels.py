"""The squared exponential kernel of classifiers, alone or with a linear and a constant part.

    k(x, x') = s^2 exp(-|x - x'|^2 / 2 l^2) + v x.x' / d + c

With s = 0 the classifier is Bayesian logistic regression: few labels in many components tell a
direction before they tell a shape.
"""

from __future__ import annotations

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

AMPLITUDE = 4.0  # s^2 at the start
SLOPE, CONSTANT = 1.0, 1.0  # v and c at the start


class LinearAndRBF(Kernel):
    """See the module.

    Attributes:
        curved: The squared exponential part, with its output scale.
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
    """With an output scale and one lengthscale, or one a feature; all positive by their logs."""
    inner = RBFKernel(ard_num_dims=d if ard else None, lengthscale_constraint=positive())
    kernel = ScaleKernel(inner.double(), outputscale_constraint=positive()).double()
    inner.lengthscale = typical(d)
    kernel.outputscale = AMPLITUDE
    return kernel


def dense(kernel: ScaleKernel, a: Tensor, b: Tensor, diag: bool = False) -> Tensor:
    """Without GPyTorch's lazy layer: the same numbers, and no second look at the rows."""
    result: Tensor = kernel.outputscale * kernel.base_kernel.forward(a, b, diag=diag)
    return result


def typical(d: int) -> float:
    """A lengthscale for `d` standardized inputs: distances grow with the root of their number."""
    return float(max(d, 1) ** 0.5)


def positive() -> Positive:
    """A constraint by which the optimizer sees logarithms."""
    return Positive(transform=torch.exp, inv_transform=torch.log)

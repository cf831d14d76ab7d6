"""Covariances of inducing inputs with explicit gradients, against GPyTorch's and autograd."""

from __future__ import annotations

import torch
from gpytorch.kernels import RBFKernel

from scant.kernels.rbf import ard_covariances


def drawn() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inducing inputs of three kernels, their lengthscales, and rows."""
    generator = torch.Generator().manual_seed(0)
    z, x = (torch.randn(*n, generator=generator, dtype=torch.float64) for n in ((3, 5, 4), (7, 4)))
    scale = torch.rand(3, 1, 4, generator=generator, dtype=torch.float64) + 0.5
    return z, scale, x


def test_equal_those_of_gpytorch() -> None:
    z, scale, x = drawn()
    kernel = RBFKernel(ard_num_dims=4, batch_shape=torch.Size([3])).double()
    kernel.lengthscale = scale
    K, cross = ard_covariances(z, scale, x)
    torch.testing.assert_close(K, kernel(z).to_dense(), atol=1e-12, rtol=0)
    torch.testing.assert_close(cross, kernel(z, x).to_dense(), atol=1e-12, rtol=0)


def test_gradients_equal_finite_differences() -> None:
    inputs = [part.requires_grad_() for part in drawn()]
    assert torch.autograd.gradcheck(ard_covariances, inputs)

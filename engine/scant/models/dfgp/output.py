"""The output neuron of DFGP: its kernel over the hidden values, and expectations under q(B).

In whitened features phi(b), so that f(b) = phi(b)' w + rest with w ~ N(0, I). With the
EQ kernel phi(b) = L^-1 k(Z, b), L L' = k(Z, Z) (Titsias and Lawrence 2010; Kandemir and Hamprecht
2015, 4.1). The linear kernel, whose GP has a Wishart process as the prior of its covariance
(Theorem 1), has as many features as there are neurons, and needs no inducing inputs.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from gpytorch import Module
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from scant.inference.expectations import (
    expected_kernel,
    expected_product_dot,
    expected_product_sum,
    log_kernel,
)
from scant.inference.kmeans import kmeans_centres
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.kernels.constraints import LogPositive

JITTER = 1e-6
START_WIDTH = 2.0  # lengthscales, in deviations of the hidden values
Output = Literal["rbf", "linear"]


class Expected(NamedTuple):
    """Sums over the rows are what the bound needs."""

    features: Float[Tensor, "n m"]  # E[phi(b_n)]
    products: Float[Tensor, "m m"]  # sum of E[phi(b_n) phi(b_n)']
    variance: Float[Tensor, ""]  # sum of E[k(b_n, b_n)]


class RBFOutput(Module):
    """EQ kernel with a lengthscale a neuron, or with one for all (Corollary 1 there).

    Args:
        mean: Hidden values to start from, among which the inducing inputs are k-means centres.
        inducing: P, their number.
        generator: Draws the rows from which k-means starts.
        ard: Whether each neuron has a lengthscale of its own, and so can be left out of account.
    """

    def __init__(
        self,
        mean: Float[Tensor, "n r"],
        inducing: int,
        generator: torch.Generator,
        ard: bool = True,
    ) -> None:
        super().__init__()
        self.inducing = nn.Parameter(kmeans_centres(mean, inducing, generator))
        # So wide that the output starts near a plane: neurons are regressions on y already.
        spread = START_WIDTH * mean.std(0).clamp(min=1e-3)
        width = (spread * mean.shape[1] ** 0.5).log()
        self.n_neurons = len(width)
        self.log_lengthscale = nn.Parameter(width if ard else width.mean(0, keepdim=True))
        self.log_variance = nn.Parameter(mean.new_tensor(START_WIDTH).log())
        self.register_constraint("log_lengthscale", LogPositive())
        self.register_constraint("log_variance", LogPositive())
        self.notes: list[str] = []

    @property
    def n_features(self) -> int:
        return len(self.inducing)

    @property
    def lengthscale(self) -> Float[Tensor, " _"]:
        """Of each neuron, or of all."""
        return self.log_lengthscale.exp()

    @lengthscale.setter
    def lengthscale(self, value: Tensor | float) -> None:
        self.initialize(log_lengthscale=torch.as_tensor(value).to(self.log_lengthscale).log())

    @property
    def outputscale(self) -> Float[Tensor, ""]:
        """The kernel's variance."""
        return self.log_variance.exp()

    @outputscale.setter
    def outputscale(self, value: Tensor | float) -> None:
        self.initialize(log_variance=torch.as_tensor(value).to(self.log_variance).log())

    @property
    def precision(self) -> Float[Tensor, " r"]:
        """Relevance of each neuron: 1 / lengthscale^2."""
        return (-2 * self.log_lengthscale).exp().expand(self.n_neurons)

    def whiten(self) -> Float[Tensor, "m m"]:
        """L^-1, with L the Cholesky factor of k(Z, Z)."""
        K = log_kernel(self.inducing, self.inducing, self.precision).exp()
        eye = torch.eye(len(K)).to(K)
        with collect_numerical_warnings(self.notes):
            lower = psd_safe_cholesky(K + JITTER * eye)
        inverse = torch.linalg.solve_triangular(lower, eye, upper=False)
        return inverse * (-0.5 * self.log_variance).exp()

    def expected(self, mean: Float[Tensor, "n r"], variance: Float[Tensor, "n r"]) -> Expected:
        """Under b_n ~ N(mean_n, diag(variance_n))."""
        args = mean, variance, self.inducing, self.precision
        white, height = self.whiten(), self.log_variance.exp()
        # The appendix's E[K_Zb] and E[K_ZB K_ZB']
        psi1, psi2 = height * expected_kernel(*args), height.square() * expected_product_sum(*args)
        return Expected(psi1 @ white.T, white @ psi2 @ white.T, height * len(mean))

    def first(
        self, mean: Float[Tensor, "n r"], variance: Float[Tensor, "n r"]
    ) -> Float[Tensor, "n m"]:
        """E[phi(b)] of each row."""
        height = self.log_variance.exp()
        psi1 = height * expected_kernel(mean, variance, self.inducing, self.precision)
        return psi1 @ self.whiten().T

    def square(
        self,
        mean: Float[Tensor, "n r"],
        variance: Float[Tensor, "n r"],
        matrix: Float[Tensor, "m m"],
    ) -> Float[Tensor, " n"]:
        """E[k(b, b) + phi(b)' matrix phi(b)] of each row."""
        white, height = self.whiten(), self.log_variance.exp()
        A = (white.T @ matrix @ white) * height.square()
        args = mean, variance, self.inducing, self.precision
        return height + expected_product_dot(*args, A)

    def features(self, b: Float[Tensor, "n r"]) -> tuple[Float[Tensor, "n m"], Float[Tensor, " n"]]:
        """phi(b) and k(b, b) where hidden values are known."""
        height = self.log_variance.exp()
        k = height * log_kernel(b, self.inducing, self.precision).exp()
        return k @ self.whiten().T, height.expand(len(b))


class LinearOutput(Module):
    """k(b, b') = sum_r weight_r b_r b'_r: DFGP-WP."""

    def __init__(self, mean: Float[Tensor, "n r"]) -> None:
        super().__init__()
        self.log_weight = nn.Parameter(mean.new_zeros(mean.shape[1]))
        self.register_constraint("log_weight", LogPositive())
        self.notes: list[str] = []

    @property
    def n_features(self) -> int:
        return len(self.log_weight)

    @property
    def precision(self) -> Float[Tensor, " r"]:
        """Relevance of each neuron: the variance of its weight."""
        return self.log_weight.exp()

    def expected(self, mean: Float[Tensor, "n r"], variance: Float[Tensor, "n r"]) -> Expected:
        """Under b_n ~ N(mean_n, diag(variance_n))."""
        features = mean * (0.5 * self.log_weight).exp()
        more = torch.diag(variance.sum(0) * self.log_weight.exp())
        products = features.T @ features + more
        return Expected(features, products, products.trace())

    def first(
        self, mean: Float[Tensor, "n r"], variance: Float[Tensor, "n r"]
    ) -> Float[Tensor, "n r"]:
        """E[phi(b)] of each row."""
        return mean * (0.5 * self.log_weight).exp()

    def square(
        self,
        mean: Float[Tensor, "n r"],
        variance: Float[Tensor, "n r"],
        matrix: Float[Tensor, "m m"],
    ) -> Float[Tensor, " n"]:
        """E[k(b, b) + phi(b)' matrix phi(b)] of each row."""
        matrix = matrix + torch.eye(len(matrix)).to(matrix)
        phi = mean * (0.5 * self.log_weight).exp()
        return ((phi @ matrix) * phi).sum(1) + variance @ (self.precision * matrix.diagonal())

    def features(self, b: Float[Tensor, "n r"]) -> tuple[Float[Tensor, "n m"], Float[Tensor, " n"]]:
        """phi(b) and k(b, b) where hidden values are known."""
        phi = b * (0.5 * self.log_weight).exp()
        return phi, phi.square().sum(1)

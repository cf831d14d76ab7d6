"""The output neuron of DFGP: kernels over the hidden values, and expectations under q(B).

In whitened features phi(b), f(b) = phi(b)' w + residual with w ~ N(0, I). With the EQ kernel,
phi(b) = L^-1 k(Z, b), L L' = k(Z, Z) (Titsias and Lawrence 2010; Kandemir and Hamprecht 2015, 4.1).
The linear kernel has one feature per neuron and needs no inducing inputs. Without weights, and with
one kernel for all hidden neurons, it gives a Wishart process prior (Theorem 1).
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
START_WIDTH = 2.0  # initial lengthscales, in standard deviations of the hidden values
Output = Literal["rbf", "linear"]


class Expected(NamedTuple):
    """Expectations of features under q(B), summed over rows where the bound needs only sums."""

    features: Float[Tensor, "n m"]  # E[phi(b_n)]
    products: Float[Tensor, "m m"]  # sum of E[phi(b_n) phi(b_n)']
    variance: Float[Tensor, ""]  # sum of E[k(b_n, b_n)]


class RBFOutput(Module):
    """Output with an EQ kernel: one lengthscale per neuron, or a shared one (Corollary 1).

    With a full metric J (section 4.1) the exponent is -(b - b')' J^-1 (b - b') / 2. R' R = J^-1
    with a lower triangular R; its diagonal has the inverse lengthscales. R b is Gaussian, and its
    kernel has a lengthscale of 1, so expectations stay exact.

    Args:
        mean: Initial hidden values, whose k-means centers are the initial inducing inputs.
        inducing: Number P of inducing inputs.
        generator: Generator for k-means.
        ard: True for a lengthscale per neuron, which can switch neurons off.
        scaled: True to learn the kernel's variance; False for 1, as in Corollary 1.
        metric: True for a full metric, which starts as the diagonal one; `ard` is then ignored.
    """

    def __init__(
        self,
        mean: Float[Tensor, "n r"],
        inducing: int,
        generator: torch.Generator,
        ard: bool = True,
        scaled: bool = True,
        metric: bool = False,
    ) -> None:
        super().__init__()
        self.inducing = nn.Parameter(kmeans_centres(mean, inducing, generator))
        # Wide, so that the output is nearly linear at first: neurons start as regressions on y.
        spread = START_WIDTH * mean.std(0).clamp(min=1e-3)
        width = (spread * mean.shape[1] ** 0.5).log()
        self.n_neurons = len(width)
        each = ard or metric
        self.log_lengthscale = nn.Parameter(width if each else width.mean(0, keepdim=True))
        # R = (I + tilt) diag(1 / lengthscale), of tilt the part below the diagonal
        count = self.n_neurons
        self.tilt = nn.Parameter(mean.new_zeros(count, count)) if metric else None
        variance = mean.new_tensor(START_WIDTH if scaled else 1.0)
        self.log_variance = nn.Parameter(variance.log(), requires_grad=scaled)
        self.register_constraint("log_lengthscale", LogPositive())
        self.register_constraint("log_variance", LogPositive())
        self.notes: list[str] = []

    @property
    def n_features(self) -> int:
        return len(self.inducing)

    @property
    def lengthscale(self) -> Float[Tensor, " _"]:
        """Lengthscale of each neuron, or the shared one."""
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
        """Relevance of each neuron: 1 / lengthscale^2, or the diagonal of a full J^-1."""
        if self.tilt is not None:
            return self._root().square().sum(0)
        return (-2 * self.log_lengthscale).exp().expand(self.n_neurons)

    def _root(self) -> Float[Tensor, "r r"]:
        """R of a full metric."""
        assert self.tilt is not None
        eye = torch.eye(self.n_neurons).to(self.tilt)
        return (self.tilt.tril(-1) + eye) * (-self.log_lengthscale).exp()

    def _arguments(
        self, mean: Float[Tensor, "n r"], variance: Float[Tensor, "n r"]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Moments of b, inducing inputs and precision; with a full metric those of R b."""
        if self.tilt is None:
            return mean, variance, self.inducing, self.precision
        root = self._root()
        covariance = (root * variance.unsqueeze(1)) @ root.T
        return mean @ root.T, covariance, self.inducing @ root.T, torch.ones_like(root[0])

    def _log_kernel(self, b: Float[Tensor, "n r"]) -> Float[Tensor, "n m"]:
        """ln of the kernel of unit variance between hidden values and inducing inputs."""
        b, _, inducing, precision = self._arguments(b, torch.zeros_like(b))
        return log_kernel(b, inducing, precision)

    def whiten(self) -> Float[Tensor, "m m"]:
        """L^-1, where L is the Cholesky factor of k(Z, Z)."""
        K = self._log_kernel(self.inducing).exp()
        eye = torch.eye(len(K)).to(K)
        with collect_numerical_warnings(self.notes):
            lower = psd_safe_cholesky(K + JITTER * eye)
        inverse = torch.linalg.solve_triangular(lower, eye, upper=False)
        return inverse * (-0.5 * self.log_variance).exp()

    def expected(self, mean: Float[Tensor, "n r"], variance: Float[Tensor, "n r"]) -> Expected:
        """Expected features under b_n ~ N(mean_n, diag(variance_n))."""
        args = self._arguments(mean, variance)
        L_inverse, outputscale = self.whiten(), self.log_variance.exp()
        # The appendix's E[K_Zb] and E[K_ZB K_ZB']
        psi1, psi2 = (
            outputscale * expected_kernel(*args),
            outputscale.square() * expected_product_sum(*args),
        )
        return Expected(psi1 @ L_inverse.T, L_inverse @ psi2 @ L_inverse.T, outputscale * len(mean))

    def first(
        self, mean: Float[Tensor, "n r"], variance: Float[Tensor, "n r"]
    ) -> Float[Tensor, "n m"]:
        """E[phi(b)] of each row."""
        outputscale = self.log_variance.exp()
        psi1 = outputscale * expected_kernel(*self._arguments(mean, variance))
        return psi1 @ self.whiten().T

    def square(
        self,
        mean: Float[Tensor, "n r"],
        variance: Float[Tensor, "n r"],
        matrix: Float[Tensor, "m m"],
    ) -> Float[Tensor, " n"]:
        """E[k(b, b) + phi(b)' matrix phi(b)] of each row."""
        L_inverse, outputscale = self.whiten(), self.log_variance.exp()
        A = (L_inverse.T @ matrix @ L_inverse) * outputscale.square()
        return outputscale + expected_product_dot(*self._arguments(mean, variance), A)

    def features(self, b: Float[Tensor, "n r"]) -> tuple[Float[Tensor, "n m"], Float[Tensor, " n"]]:
        """phi(b) and k(b, b) at given hidden values."""
        outputscale = self.log_variance.exp()
        k = outputscale * self._log_kernel(b).exp()
        return k @ self.whiten().T, outputscale.expand(len(b))


class LinearOutput(Module):
    """Output with the linear kernel k(b, b') = sum_r weight_r b_r b'_r (DFGP-WP).

    Args:
        mean: Initial hidden values, for their number and type.
        ard: True to learn the weights; False for k(b, b') = b' b, as in Theorem 1.
    """

    def __init__(self, mean: Float[Tensor, "n r"], ard: bool = True) -> None:
        super().__init__()
        self.log_weight = nn.Parameter(mean.new_zeros(mean.shape[1]), requires_grad=ard)
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
        """Expected features under b_n ~ N(mean_n, diag(variance_n))."""
        features = mean * (0.5 * self.log_weight).exp()
        variances = torch.diag(variance.sum(0) * self.log_weight.exp())
        products = features.T @ features + variances
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
        """phi(b) and k(b, b) at given hidden values."""
        phi = b * (0.5 * self.log_weight).exp()
        return phi, phi.square().sum(1)

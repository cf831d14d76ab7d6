"""The kernel of SCLVM: latent dimensions shared by all classes and private to each class.

Yousefi (2021), 3.23-3.24, over rows (x, c) of a latent position and a class:

    k((x, c), (x', c')) = k_s(x_s, x'_s) + [c = c'] k_p(x_p, x'_p)

with EQ-ARD kernels. The psi statistics under Gaussian positions with diagonal covariances are
3.27-3.29 and B.6-B.8. Without private dimensions it is an EQ kernel that ignores the classes.

`EQ` and `ClassPrivateKernel` are GPyTorch kernels. Models call `covariance` and the psi statistics,
which take positions and classes separately and return plain tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.expectations import (
    expected_kernel,
    expected_product_dot,
    expected_product_sum,
    log_kernel,
)
from scant.inference.psi import eq_matrices
from scant.kernels.constraints import LogPositive

FLAT = 16.0  # bound on |ln lengthscale|: beyond it functions are constant in double precision
NOTHING = 40.0  # bound on |ln variance|, against overflow during optimization


class EQ(Kernel):
    """variance exp(-sum_d (x_d - x'_d)^2 / (2 lengthscale_d^2))."""

    def __init__(self, n_dims: int, variance: float = 1.0) -> None:
        super().__init__(ard_num_dims=n_dims)
        # Distances under the standard normal prior grow with the number of dimensions.
        log_lengthscale = (
            0.5 * torch.full((n_dims,), float(max(n_dims, 1)), dtype=torch.float64).log()
        )
        log_variance = torch.tensor(variance, dtype=torch.float64).log()
        for name, value in (("log_lengthscale", log_lengthscale), ("log_variance", log_variance)):
            self.register_parameter(name, nn.Parameter(value))
            self.register_constraint(name, LogPositive())

    @property
    def lengthscale(self) -> Float[Tensor, "1 q"]:
        return self.log_lengthscale.clamp(-FLAT, FLAT).exp().unsqueeze(0)

    @lengthscale.setter
    def lengthscale(self, value: Tensor | float) -> None:
        self.initialize(log_lengthscale=torch.as_tensor(value).to(self.log_lengthscale).log())

    @property
    def precision(self) -> Float[Tensor, " q"]:
        return (-2 * self.log_lengthscale.clamp(-FLAT, FLAT)).exp()

    @property
    def variance(self) -> Float[Tensor, ""]:
        return self.log_variance.clamp(-NOTHING, NOTHING).exp()

    @variance.setter
    def variance(self, value: Tensor | float) -> None:
        self.initialize(log_variance=torch.as_tensor(value).to(self.log_variance).log())

    def forward(
        self, x1: Float[Tensor, "n q"], x2: Float[Tensor, "m q"], diag: bool = False, **_: Any
    ) -> Float[Tensor, "n m"] | Float[Tensor, " n"]:
        """Covariances of all pairs of rows, or row by row (`diag`)."""
        if diag:
            return self.variance * (-0.5 * self.precision * (x1 - x2).square()).sum(-1).exp()
        return self.variance * log_kernel(x1, x2, self.precision).exp()


class ClassPrivateKernel(Kernel):
    """Sum of a shared and a class-private EQ kernel (3.23-3.24); the last column is the class.

    Args:
        shared: Number of shared latent dimensions, the first columns of a position.
        private: Number of private latent dimensions, the columns after those.
        n_classes: Number of classes, labeled 0 ... n_classes - 1.

    Raises:
        BadInput: There is no dimension, or a number is negative.
    """

    def __init__(self, shared: int, private: int, n_classes: int) -> None:
        super().__init__()
        if min(shared, private) < 0 or shared + private < 1 or n_classes < 1:
            raise BadInput(
                f"A latent space of {shared} shared and {private} private dimensions for"
                f" {n_classes} classes is none; use one dimension and one class at least."
            )
        self.n_classes = n_classes
        self.split = (shared, private)
        half = 0.5 if shared and private else 1.0
        self.shared = EQ(shared, half) if shared else None
        self.private = EQ(private, half) if private else None

    def forward(
        self, x1: Float[Tensor, "n p"], x2: Float[Tensor, "m p"], diag: bool = False, **_: Any
    ) -> Float[Tensor, "n m"] | Float[Tensor, " n"]:
        """Covariances of all pairs of rows (3.23), or row by row (`diag`)."""
        (a, a_class), (b, b_class) = ((x[:, :-1], x[:, -1].round().long()) for x in (x1, x2))
        if not diag:
            return self.covariance(a, a_class, b, b_class)
        (a_s, a_p), (b_s, b_p) = a.split(self.split, 1), b.split(self.split, 1)
        total = a.new_zeros(len(a))
        if self.shared is not None:
            total = total + self.shared.forward(a_s, b_s, diag=True)
        if self.private is not None:
            total = total + self.private.forward(a_p, b_p, diag=True) * (a_class == b_class)
        return total

    def covariance(
        self,
        a: Float[Tensor, "n q"],
        a_class: Int[Tensor, " n"],
        b: Float[Tensor, "m q"],
        b_class: Int[Tensor, " m"],
    ) -> Float[Tensor, "n m"]:
        """Covariances of all pairs of rows (3.23)."""
        shared, private = self.parts(a, a_class, b, b_class)
        return shared + private  # (3.23)

    def parts(
        self,
        a: Float[Tensor, "n q"],
        a_class: Int[Tensor, " n"],
        b: Float[Tensor, "m q"],
        b_class: Int[Tensor, " m"],
    ) -> tuple[Float[Tensor, "n m"], Float[Tensor, "n m"]]:
        """Shared and private terms of the covariance; zero for a space without dimensions."""
        zero = a.new_zeros(len(a), len(b))
        (a_s, a_p), (b_s, b_p) = a.split(self.split, 1), b.split(self.split, 1)
        same = a_class.unsqueeze(1) == b_class
        shared = zero if self.shared is None else self.shared.forward(a_s, b_s)
        private = zero if self.private is None else self.private.forward(a_p, b_p) * same  # (3.24)
        return shared, private

    def psi0(self) -> Float[Tensor, ""]:
        """Prior variance of a row, k_s + k_p: a term of 3.27."""
        both = [part.variance for part in (self.shared, self.private) if part is not None]
        return sum(both[1:], start=both[0])  # (B.6), of one row

    def relevance(self) -> Float[Tensor, " q"]:
        """1 / lengthscale^2 of each dimension; near zero for dimensions that are not used."""
        both = [part.precision for part in (self.shared, self.private) if part is not None]
        return torch.cat(both)

    def psi1(
        self,
        mean: Float[Tensor, "n q"],
        variance: Float[Tensor, "n q"],
        label: Int[Tensor, " n"],
        Z: Float[Tensor, "m q"],
        Z_class: Int[Tensor, " m"],
    ) -> Float[Tensor, "n m"]:
        """E[k((x, c), z)] (3.28)."""
        shared, private = self._psi1_parts(mean, variance, label, Z, Z_class)
        return shared + private

    def _psi1_parts(
        self, mean: Tensor, variance: Tensor, label: Tensor, Z: Tensor, Z_class: Tensor
    ) -> tuple[Tensor, Tensor]:
        m, v, z = (t.split(self.split, 1) for t in (mean, variance, Z))  # both parts by B.7
        shared = private = mean.new_zeros(len(mean), len(Z))
        if self.shared is not None:
            part = self.shared
            shared = part.variance * expected_kernel(m[0], v[0], z[0], part.precision)
        if self.private is not None:
            part, same = self.private, label.unsqueeze(1) == Z_class
            private = part.variance * expected_kernel(m[1], v[1], z[1], part.precision) * same
        return shared, private

    def matrices(
        self,
        mean: Float[Tensor, "n q"],
        variance: Float[Tensor, "n q"],
        label: Int[Tensor, " n"],
        Z: Float[Tensor, "m q"],
        Z_class: Int[Tensor, " m"],
        weights: Float[Tensor, "n w"],
        jitter: float = 0.0,
    ) -> tuple[Float[Tensor, "m m"], Float[Tensor, "n m"], Float[Tensor, "w m m"]]:
        """K_zz among the centers, `psi1` and `psi2`, computed together.

        The diagonal of K_zz is multiplied by 1 + `jitter`.
        """
        both = self.shared is not None and self.private is not None
        m, v, z = (t.split(self.split, 1) if both else (t, t) for t in (mean, variance, Z))
        parts = []
        if self.shared is not None:
            parameters = self.shared.precision, self.shared.log_variance
            parts.append(eq_matrices(m[0], v[0], z[0], *parameters, weights, jitter))
        if self.private is not None:
            parameters, n, c = (
                (self.private.precision, self.private.log_variance),
                len(mean),
                len(Z),
            )
            k, one, two = (mean.new_zeros(*s) for s in ((c, c), (n, c), (weights.shape[1], c, c)))
            for rows, centres in self._classes(label, Z_class, every=True):
                at = centres.unsqueeze(1), centres
                arguments = m[1][rows], v[1][rows], z[1][centres]
                blocks = eq_matrices(*arguments, *parameters, weights[rows], jitter)
                k[at], one[rows.unsqueeze(1), centres], two[:, *at] = blocks
            parts.append((k, one, two))
        if len(parts) == 1:
            return parts[0]
        (k, one, two), (k_p, one_p, two_p) = parts
        # Last two terms of 3.29
        across = (weights.T.unsqueeze(1) * one.T) @ one_p
        return k + k_p, one + one_p, two + two_p + across + across.mT

    def psi1_slope(
        self,
        mean: Float[Tensor, "n q"],
        variance: Float[Tensor, "n q"],
        label: Int[Tensor, " n"],
        Z: Float[Tensor, "m q"],
        Z_class: Int[Tensor, " m"],
    ) -> Float[Tensor, "n q m"]:
        """Derivatives of psi1 with respect to the means."""
        values = self._psi1_parts(mean, variance, label, Z, Z_class)
        steep = self.relevance() / (1 + self.relevance() * variance)
        slope = steep.unsqueeze(2) * (Z.T - mean.unsqueeze(2))
        parts = [v.unsqueeze(1) * s for v, s in zip(values, slope.split(self.split, 1))]
        return torch.cat(parts, 1)

    def psi2(
        self,
        mean: Float[Tensor, "n q"],
        variance: Float[Tensor, "n q"],
        label: Int[Tensor, " n"],
        Z: Float[Tensor, "m q"],
        Z_class: Int[Tensor, " m"],
        weights: Float[Tensor, "n w"],
    ) -> Float[Tensor, "w m m"]:
        """sum_n weight_nw E[k((x_n, c_n), z) k((x_n, c_n), z')] for each column w (3.29).

        The two spaces are independent under q(X), so their cross terms are products of psi1. The
        private term is computed class by class, with the inducing inputs of that class.
        """
        m, v, z = (t.split(self.split, 1) for t in (mean, variance, Z))
        total = mean.new_zeros(weights.shape[1], len(Z), len(Z))  # each space by B.8
        if self.shared is not None:
            part = self.shared
            sums = expected_product_sum(m[0], v[0], z[0], part.precision, weights)
            total = total + part.variance.square() * sums
        if self.private is None:
            return total
        part, psi2_p = self.private, torch.zeros_like(total)
        for rows, centres in self._classes(label, Z_class):
            psi2_p[:, centres.unsqueeze(1), centres] = expected_product_sum(
                m[1][rows], v[1][rows], z[1][centres], part.precision, weights[rows]
            )
        total = total + part.variance.square() * psi2_p
        if self.shared is None:
            return total
        shared, private = self._psi1_parts(mean, variance, label, Z, Z_class)
        # Last two terms of 3.29
        across = (weights.T.unsqueeze(1) * shared.T) @ private
        return total + across + across.mT

    def psi2_dot(
        self,
        mean: Float[Tensor, "n q"],
        variance: Float[Tensor, "n q"],
        label: Int[Tensor, " n"],
        Z: Float[Tensor, "m q"],
        Z_class: Int[Tensor, " m"],
        matrix: Float[Tensor, "m m"],
    ) -> Float[Tensor, " n"]:
        """sum_zz' M_zz' E[k((x, c), z) k((x, c), z')] of each row, for a symmetric matrix M."""
        m, v, z = (t.split(self.split, 1) for t in (mean, variance, Z))
        total = mean.new_zeros(len(mean))
        if self.shared is not None:
            part = self.shared
            dots = expected_product_dot(m[0], v[0], z[0], part.precision, matrix)
            total = total + part.variance.square() * dots
        if self.private is None:
            return total
        part, dot_p = self.private, torch.zeros_like(total)
        for rows, centres in self._classes(label, Z_class):
            block = matrix[centres.unsqueeze(1), centres]
            dot_p[rows] = expected_product_dot(
                m[1][rows], v[1][rows], z[1][centres], part.precision, block
            )
        total = total + part.variance.square() * dot_p
        if self.shared is None:
            return total
        shared, private = self._psi1_parts(mean, variance, label, Z, Z_class)
        return total + 2 * ((shared @ matrix) * private).sum(1)

    def _classes(
        self, label: Tensor, Z_class: Tensor, every: bool = False
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and inducing inputs of each class that has both (`every`: that has the latter)."""
        for c in range(self.n_classes):
            rows, centres = ((t == c).nonzero().squeeze(1) for t in (label, Z_class))
            if len(centres) and (every or len(rows)):
                yield rows, centres

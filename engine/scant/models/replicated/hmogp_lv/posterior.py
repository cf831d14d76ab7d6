"""q(U) of HMOGP-LV: optimal full Gaussian, or Kronecker covariance as published."""

from __future__ import annotations

import torch
from gpytorch import Module
from jaxtyping import Float
from torch import Tensor, nn

from scant.models.replicated.hmogp_lv.bound import Statistics, Weights, normal_equations

TOLERANCE = 1e-10  # relative tolerance of conjugate gradients
SWEEPS = 200  # maximum fixed-point iterations for the covariances


class Dense(Module):
    """Optimal Gaussian q(V) in closed form (Titsias 2009), with a full covariance."""

    mean: Tensor
    root: Tensor

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        m = outputs * inputs
        self.register_buffer("mean", torch.zeros(outputs, inputs, dtype=torch.float64))
        self.register_buffer("root", torch.eye(m, dtype=torch.float64))

    @torch.no_grad()
    def condition(self, s: Statistics) -> None:
        """Set q(U) to its optimum for these statistics."""
        B, c = normal_equations(s)
        lower = torch.linalg.cholesky(B)
        self.mean.copy_(torch.cholesky_solve(c.unsqueeze(1), lower).view_as(self.mean))
        # S = B^-1 = root root', with root = lower^-T
        self.root.copy_(
            torch.linalg.solve_triangular(lower, torch.eye(len(B)).to(B), upper=False).T
        )

    def weights(self, psi: Float[Tensor, "d h"], P: Float[Tensor, "d h h"]) -> Weights:
        h, x = self.mean.shape
        S = (self.root @ self.root.T).view(h, x, h, x) + torch.einsum(
            "ij,kl->ijkl", self.mean, self.mean
        )
        W = P.reshape(-1, h * h) @ S.transpose(1, 2).reshape(h * h, x * x)
        return Weights(psi @ self.mean, _less_trace(W.view(-1, x, x), P))

    def fit(self, s: Statistics) -> tuple[Float[Tensor, "d x"], Float[Tensor, " d"]]:
        """w_d and the sum of a' W_d a of each output, for F (`bound.expected_log_likelihood`)."""
        q = self.weights(s.psi, s.P)
        return q.w, (q.W * s.A).sum((1, 2))

    def kl_divergence(self) -> Float[Tensor, ""]:
        log_det = 2 * self.root.diagonal().abs().log().sum()
        squares = self.mean.square().sum() + self.root.square().sum()
        return 0.5 * (squares - self.root.shape[0] - log_det)


class Kronecker(Module):
    """q(V) with covariance S_H o S_X (section 5.2.3), without matrices of M_X M_H rows."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(outputs, inputs, dtype=torch.float64))
        # Lower triangular roots of the covariances, with logarithms on the diagonal.
        self.root_outputs = nn.Parameter(torch.zeros(outputs, outputs, dtype=torch.float64))
        self.root_inputs = nn.Parameter(torch.zeros(inputs, inputs, dtype=torch.float64))

    def covariances(self) -> tuple[Float[Tensor, "h h"], Float[Tensor, "x x"]]:
        """S_H and S_X."""
        roots = (_root(self.root_outputs), _root(self.root_inputs))
        return roots[0] @ roots[0].T, roots[1] @ roots[1].T

    def weights(self, psi: Float[Tensor, "d h"], P: Float[Tensor, "d h h"]) -> Weights:
        S_H, S_X = self.covariances()
        W = self.mean.T @ P @ self.mean + (P * S_H).sum((1, 2))[:, None, None] * S_X
        return Weights(psi @ self.mean, _less_trace(W, P))

    def fit(self, s: Statistics) -> tuple[Float[Tensor, "d x"], Float[Tensor, " d"]]:
        """As of `Dense`, row by row: without a matrix of M_X rows for each output."""
        S_H, trace = self.covariances()[0], s.P.diagonal(dim1=1, dim2=2).sum(1)
        means = s.a @ self.mean.T
        a_W_a = (
            (s.P * (means.mT @ means)).sum((1, 2))
            + (s.P * S_H).sum((1, 2)) * (s.a @ _root(self.root_inputs)).square().sum((1, 2))
            - trace * s.a.square().sum((1, 2))
        )
        return s.psi @ self.mean, a_W_a

    def kl_divergence(self) -> Float[Tensor, ""]:
        """KL(q(U) || p(U)) (5.28), in nats."""
        h, x = self.mean.shape
        S_H, S_X = self.covariances()
        log_det = 2 * (
            x * self.root_outputs.diagonal().sum() + h * self.root_inputs.diagonal().sum()
        )
        squares = self.mean.square().sum() + S_H.trace() * S_X.trace()
        return 0.5 * (squares - h * x - log_det)  # (5.28), whitened

    @torch.no_grad()
    def condition(self, s: Statistics) -> None:
        """Optimize the mean by conjugate gradients, the covariances by fixed-point iteration."""
        for _ in range(SWEEPS):
            before = self.root_inputs.clone()
            self._covariance_step(s, 1.0)
            if torch.allclose(before, self.root_inputs, rtol=0, atol=1e-10):
                break
        self._solve(s)

    @torch.no_grad()
    def natural_step(self, s: Statistics, rate: float) -> None:
        """Natural gradient step for S_H, S_X and then the mean.

        The natural gradient of the mean is S_H G S_X for the gradient G. The step is limited to the
        maximum along that direction, since it could overshoot with a too wide covariance.
        """
        self._covariance_step(s, rate)
        S_H, S_X = self.covariances()
        gradient = (s.precision.unsqueeze(1) * s.psi).T @ s.b - _curvature(s, self.mean)
        direction = S_H @ gradient @ S_X
        curvature = (direction * _curvature(s, direction)).sum()
        if curvature > 0:
            self.mean.add_(
                direction, alpha=rate * min(1.0, float((gradient * direction).sum() / curvature))
            )

    def _covariance_step(self, s: Statistics, rate: float) -> None:
        """Move the inverse of each covariance towards its optimum given the other one."""
        h, x = self.mean.shape
        S_H, S_X = self.covariances()
        traces = s.precision * (s.A * S_X).sum((1, 2))
        optimum = (S_X.trace() * torch.eye(h).to(S_X) + torch.einsum("d,dij->ij", traces, s.P)) / x
        S_H = self._towards(self.root_outputs, S_H, optimum, rate)
        traces = s.precision * (s.P * S_H).sum((1, 2))
        A = traces.sum() * s.A[0] if s.same_inputs() else torch.einsum("d,dij->ij", traces, s.A)
        self._towards(self.root_inputs, S_X, (S_H.trace() * torch.eye(x).to(A) + A) / h, rate)

    @staticmethod
    def _towards(
        root: nn.Parameter, covariance: Tensor, optimum: Tensor, rate: float
    ) -> Float[Tensor, "m m"]:
        if rate < 1:
            optimum = (1 - rate) * torch.linalg.inv(covariance) + rate * optimum
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(0.5 * (optimum + optimum.T)))
        lower = torch.linalg.cholesky(covariance)
        root.copy_(lower.tril(-1) + lower.diagonal().log().diag())
        return covariance

    def _solve(self, s: Statistics) -> None:
        """Solve (I + sum_d P_d o A_d / noise_d) mean = c by preconditioned conjugate gradients."""
        S_H, S_X = self.covariances()
        c = (s.precision.unsqueeze(1) * s.psi).T @ s.b
        residual = c - _curvature(s, self.mean)
        preconditioned = S_H @ residual @ S_X
        direction, size = preconditioned, (residual * preconditioned).sum()
        for _ in range(2 * c.numel()):
            if residual.norm() <= TOLERANCE * c.norm():
                break
            curvature = _curvature(s, direction)
            step = size / (direction * curvature).sum()
            self.mean.add_(step * direction)
            residual = residual - step * curvature
            preconditioned = S_H @ residual @ S_X
            previous, size = size, (residual * preconditioned).sum()
            direction = preconditioned + size / previous * direction


def _curvature(s: Statistics, V: Float[Tensor, "h x"]) -> Float[Tensor, "h x"]:
    """(I + sum_d P_d o A_d / noise_d) V."""
    if s.same_inputs():
        return V + torch.einsum("d,dij->ij", s.precision, s.P) @ V @ s.A[0]
    return V + torch.einsum("d,dij->ij", s.precision, s.P @ V @ s.A)


def _root(raw: Float[Tensor, "m m"]) -> Float[Tensor, "m m"]:
    return raw.tril(-1) + raw.diagonal().exp().diag()


def _less_trace(W: Float[Tensor, "d x x"], P: Float[Tensor, "d h h"]) -> Float[Tensor, "d x x"]:
    trace = P.diagonal(dim1=1, dim2=2).sum(1)
    return W - trace[:, None, None] * torch.eye(W.shape[-1]).to(W)

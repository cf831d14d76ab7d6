"""The hidden layer of DFGP: one sparse GP per neuron (Kandemir and Hamprecht 2015, 4.1).

Neuron r is a GP over one view, with an EQ kernel of unit variance and a random subset of the
training rows as inducing inputs. In eq. 4 all neurons have one kernel; here each may learn its own.
The inducing outputs are whitened, a_r = L_r v_r with the Cholesky factor L_r of their covariance;
q(v_r) is Gaussian, or a point mass as in the publication.
"""

from __future__ import annotations

from typing import cast

import torch
from gpytorch import Module
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.kernels.constraints import LogPositive
from scant.kernels.rbf import eq

JITTER = 1e-6
START_STD = 0.3  # initial standard deviation of q(v_r)
START_WIDTH = 1.0  # initial lengthscales, in standard deviations of the view's rows


class ViewStack(nn.Module):
    """Standardization of the columns of each view, stacked into one tensor.

    Args:
        views: Rows of each view, in their own units.

    Raises:
        BadInput: No view, views of different length, or values that are not finite.
    """

    centre: Float[Tensor, "v d"]
    scale: Float[Tensor, "v d"]

    def __init__(self, views: list[Tensor]) -> None:
        super().__init__()
        self.sizes = [view.shape[1] for view in views]
        _check(views)
        stacked = _stacked(views)
        scale = stacked.std(1)
        self.register_buffer("centre", stacked.mean(1))
        self.register_buffer("scale", torch.where(scale > 1e-9, scale, torch.ones_like(scale)))

    def __call__(self, views: list[Tensor]) -> Float[Tensor, "v n d"]:
        """Standardized views, padded with zero columns to equal width."""
        _check(views)
        if [view.shape[1] for view in views] != self.sizes:
            raise BadInput(
                f"Rows must have views of {self.sizes} columns as those learned from,"
                f" got {[view.shape[1] for view in views]}."
            )
        stacked = _stacked(views).to(self.centre)
        return (stacked - self.centre.unsqueeze(1)) / self.scale.unsqueeze(1)


def _check(views: list[Tensor]) -> None:
    if not views:
        raise BadInput("There is no view: name at least one.")
    if len({len(view) for view in views}) > 1:
        raise BadInput(f"All views must have the same rows, got {[len(view) for view in views]}.")
    for i, view in enumerate(views):
        if view.shape[1] < 1:
            raise BadInput(f"View {i + 1} has no column.")
        if not bool(torch.isfinite(view).all()):
            raise BadInput(f"View {i + 1} has values that are missing or not finite.")


def _stacked(views: list[Tensor]) -> Float[Tensor, "v n d"]:
    width = max(view.shape[1] for view in views)
    padded = [nn.functional.pad(view.double(), (0, width - view.shape[1])) for view in views]
    return torch.stack(padded)


class HiddenLayer(Module):
    """Batch of sparse GPs, one per hidden neuron (see the module docstring).

    Args:
        x: Standardized views of the training rows.
        sizes: Number of columns of each view.
        view: Index of the view of each neuron.
        inducing: Number M of inducing inputs per neuron.
        spike: True for a point mass q(v).
        ard: True for a lengthscale per column.
        move: True to learn the inducing inputs.
        generator: Generator for the subsets of rows.
        width: Initial lengthscales; 1 is about the distance between rows of a view. Longer ones
            leave less variance between inducing inputs, which acts as noise on the output.
        kernel: Kernel over standardized columns (shared, or a batch with one per neuron) in place
            of EQ; `ard` and `width` are then ignored. With GPyTorch's RBF kernel, a step of a model
            with 500 rows takes 1.2 times as long.
        share: True for one kernel for all neurons of a view (eq. 4); without effect on `kernel`.
    """

    view: Int[Tensor, " r"]
    inducing: Float[Tensor, "r m d"]

    def __init__(
        self,
        x: Float[Tensor, "v n d"],
        sizes: list[int],
        view: Int[Tensor, " r"],
        inducing: int,
        spike: bool,
        ard: bool,
        move: bool,
        generator: torch.Generator,
        width: float = START_WIDTH,
        kernel: Kernel | None = None,
        share: bool = False,
    ) -> None:
        super().__init__()
        self.register_buffer("view", view)
        self.share = share
        self.one_each = view.tolist() == list(range(len(sizes)))
        m, n = min(inducing, x.shape[1]), x.shape[1]
        rows = [torch.randperm(n, generator=generator)[:m] for _ in view]
        subsets = torch.stack([x[v, r.to(x.device)] for v, r in zip(view, rows)])
        if move:
            self.inducing = nn.Parameter(subsets)
        else:
            self.register_buffer("inducing", subsets)
        # Neurons take the views in turn, so the first ones have one view each.
        own = view[: len(sizes)] if share else view
        start = (width * torch.tensor(sizes).to(x)[own].sqrt()).log()
        self.kernel = None if kernel is None else kernel.to(x)
        if kernel is None:
            columns = x.shape[2] if ard else 1
            self.log_lengthscale = nn.Parameter(start[:, None].repeat(1, columns))
            self.register_constraint("log_lengthscale", LogPositive())
        self.mean = nn.Parameter(x.new_zeros(len(view), m))
        self.log_std = self.tilt = None
        if not spike:
            self.log_std = nn.Parameter(torch.full_like(self.mean, START_STD).log())
            self.register_constraint("log_std", LogPositive())
            self.tilt = nn.Parameter(x.new_zeros(len(view), m, m))
        self.notes: list[str] = []

    @property
    def lengthscale(self) -> Float[Tensor, "r _"]:
        """Lengthscales per neuron, and per column of its view with ARD."""
        if self.kernel is not None:
            lengthscale: Tensor = self.kernel.lengthscale
            return lengthscale.flatten(0, -2)
        return self._log_lengthscales.exp()

    @lengthscale.setter
    def lengthscale(self, value: Tensor | float) -> None:
        self.initialize(log_lengthscale=torch.as_tensor(value).to(self.log_lengthscale).log())

    @property
    def _log_lengthscales(self) -> Float[Tensor, "r _"]:
        return self.log_lengthscale[self.view] if self.share else self.log_lengthscale

    def root(self) -> Float[Tensor, "r m m"] | None:
        """Lower triangular factors of the covariances of q(v); None for a point mass."""
        if self.log_std is None or self.tilt is None:
            return None
        return self.tilt.tril(-1) + torch.diag_embed(self.log_std.exp())

    def projected(self, x: Float[Tensor, "v n d"]) -> Float[Tensor, "r m n"]:
        """P_r = L_r^-1 k(Z_r, x), so that E[b_r(x)] = P_r' E[v_r]."""
        z = self.inducing
        if self.kernel is not None:
            K, cross = self.kernel(z).to_dense(), self.kernel(z, x[self.view]).to_dense()
        else:
            precision = (-2 * self._log_lengthscales).exp().unsqueeze(1)
            K = eq(z * precision.sqrt(), z * precision.sqrt())
            cross = self._kernel(x, precision)
        with collect_numerical_warnings(self.notes):
            lower = psd_safe_cholesky(K + JITTER * torch.eye(z.shape[1]).to(z))
        eye = torch.eye(z.shape[1]).to(z).expand_as(lower)
        return torch.linalg.solve_triangular(lower, eye, upper=False) @ cross

    def _kernel(self, x: Tensor, precision: Tensor) -> Float[Tensor, "r m n"]:
        """k(Z_r, x), with all exponents as one matrix product whose right factor is constant."""
        z = self.inducing
        constant = (z.square() * precision).sum(-1, keepdim=True)
        left = torch.cat([precision.expand_as(z), -2 * precision * z, constant], dim=2)
        right = torch.cat([x * x, x, torch.ones_like(x[..., :1])], dim=2)
        if len(x) == 1:
            product = (left.flatten(0, 1) @ right[0].T).unflatten(0, z.shape[:2])
        else:
            product = left @ (right if self.one_each else right[self.view]).mT
        return (-0.5 * product).exp()

    def moments(
        self, x: Float[Tensor, "v n d"]
    ) -> tuple[Float[Tensor, "n r"], Float[Tensor, "n r"]]:
        """Mean and variance of the neurons at each row under q."""
        P = self.projected(x)
        mean = (self.mean.unsqueeze(1) @ P).squeeze(1)
        prior_variance = 1 if self.kernel is None else self.kernel(x[self.view], diag=True)
        variance = (prior_variance + JITTER - (P * P).sum(1)).clamp(min=JITTER)
        root = self.root()
        if root is not None:
            variance = variance + (root.mT @ P).square().sum(1)
        return mean.T, variance.T

    def divergence(self) -> Float[Tensor, ""]:
        """Sum of KL(q(a_r) || p(a_r)); for a point mass without its entropy, as published."""
        squares = 0.5 * self.mean.square().sum()
        root = self.root()
        if root is None:
            return squares
        log_std = cast(Tensor, self.log_std)
        return squares + (0.5 * root.square().sum() - log_std.sum() - 0.5 * log_std.numel())

    @torch.no_grad()
    def start(self, x: Float[Tensor, "v n d"], y: Float[Tensor, " n"], noise: float = 0.5) -> None:
        """Initialize each neuron's mean by regularized least squares on y."""
        P = self.projected(x)
        gram = P @ P.mT + noise * torch.eye(P.shape[1]).to(P)
        self.mean.copy_(torch.linalg.solve(gram, P @ y))

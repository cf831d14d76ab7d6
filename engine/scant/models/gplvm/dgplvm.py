"""DGPLVM: a GP latent variable model with a prior that separates the classes.

Urtasun and Darrell (2007); Yousefi (2021), B.9-B.12. Positions X are point estimates, f is
integrated out, and ln p(X) = -1 / (scale J) with the criterion of discriminant analysis
J = tr(S_w^-1 S_b), the scatter between classes relative to that within. B.10-B.11 print the two
matrices with their names swapped, which would reward mixing; here they are as in Urtasun and
Darrell. The cost is cubic in the rows. The model has no posterior over classes: classify its
positions with another model. `model(x)` is GPyTorch's posterior at latent positions.

    model = DGPLVM.build(Y, label, 5, scale=1e-3)
    trainer = GPLVMTrainer(model, adam=0)                    # scant.models.gplvm.training
    model.infer(Y_new)                                       # latent positions of new rows
    model.decode(model.latent()[0])                          # mean and variance of outputs
"""

from __future__ import annotations

import copy
import math

import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int
from linear_operator.operators import RootLinearOperator
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.kernels.shared_private import EQ
from scant.models.gplvm.bgplvm import check, principal
from scant.models.gplvm.collapsed_bound import TargetModel, Targets
from scant.models.gplvm.latent_inference import Gradients, maximize
from scant.models.hyperprior import log_hyperprior

MAX_ROWS = 1000
ROWS = 256  # starts optimized per block
FREE = 1e300  # variance that does not limit a step
SPARE_START = 0.1  # initial std of dimensions beyond the outputs' principal components


class DGPLVM(TargetModel):
    """Discriminative GPLVM; construct it with `build`.

    Args:
        targets: Standardized outputs, without missing values.
        label: Class of each row.
        position: Initial positions X.
        scale: sigma^2 of B.12; smaller values separate the classes more.
        noise: Initial noise variance, on the standardized outputs' scale.
        kernel: GPyTorch kernel over positions; default EQ-ARD.
    """

    label: Tensor
    scale: Tensor

    def __init__(
        self,
        targets: Targets,
        label: Int[Tensor, " n"],
        position: Float[Tensor, "n q"],
        scale: float,
        noise: float,
        kernel: Kernel | None = None,
    ) -> None:
        super().__init__(targets)
        self.register_buffer("label", label)
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float64))
        self.register_parameter("position", nn.Parameter(position.clone()))
        self.kernel = EQ(position.shape[1]) if kernel is None else kernel
        self.register_log("log_noise", torch.tensor(noise, dtype=torch.float64).log())
        self.notes: list[str] = []

    @classmethod
    def build(
        cls,
        Y: Float[Tensor, "n d"],
        label: Int[Tensor, " n"],
        n_latent: int,
        scale: float = 1e-3,
        kernel: Kernel | None = None,
    ) -> DGPLVM:
        """Build a model initialized with the principal components of the outputs.

        Raises:
            BadInput: Too many rows, missing values, one class, or a scale that is not positive.
        """
        check(Y, {"latent dimension": n_latent})
        if len(Y) > MAX_ROWS:
            raise BadInput(
                f"DGPLVM takes at most {MAX_ROWS} rows, for its cost is cubic in them, got"
                f" {len(Y)}; take fewer."
            )
        if not bool(torch.isfinite(Y).all()):
            raise BadInput("DGPLVM takes no missing values; fill them in, or use SCLVM.")
        if len(label.unique()) < 2:
            raise BadInput("DGPLVM needs rows of two classes at least, got one class.")
        if not scale > 0:
            raise BadInput(f"The scale of the prior must be positive, got {scale}.")
        targets = Targets.from_outputs(Y.double())
        position, noise = principal(targets.y, n_latent, targets.squares)
        # If the outputs have fewer components, a dimension of zeros has no within-class
        # scatter to invert (B.9).
        spare = position.square().sum(0) == 0
        noisy = torch.Generator().manual_seed(0)
        start = torch.randn(position.shape, generator=noisy, dtype=torch.float64)
        position = torch.where(spare, SPARE_START * start.to(position), position)
        return cls(targets, label.clone(), position, scale, noise, kernel)

    def forward(self, x: Float[Tensor, "k q"]) -> MultitaskMultivariateNormal:
        """Posterior of all output functions at latent positions (GPML 2.25-2.26)."""
        lower = self._factor()
        cross = self.kernel(x, self.position).to_dense()
        whitened_cross = torch.linalg.solve_triangular(lower, cross.T, upper=False)
        whitened_y = torch.linalg.solve_triangular(lower, self.targets.y, upper=False)
        return self.outputs(
            whitened_cross.T @ whitened_y @ self.targets.rotation.T,
            [self.kernel(x) - RootLinearOperator(whitened_cross.T)],
        )

    def _factor(self) -> Float[Tensor, "n n"]:
        """Cholesky factor of K + noise I."""
        K = self.kernel(self.position).to_dense()
        with collect_numerical_warnings(self.notes):
            return psd_safe_cholesky(K + self.noise * torch.eye(len(K)).to(K))

    def log_likelihood(self) -> Float[Tensor, ""]:
        """ln p(Y | X) in nats, with Y in its own unit."""
        targets, lower = self.targets, self._factor()
        whitened = torch.linalg.solve_triangular(lower, targets.y, upper=False)
        per_output = 2 * lower.diagonal().log().sum() + len(lower) * math.log(2 * math.pi)
        per_output = per_output + 2 * len(lower) * targets.scale.log()
        return -0.5 * (targets.columns.sum() * per_output + whitened.square().sum())

    def log_prior(self) -> Float[Tensor, ""]:
        """ln p(X) (B.12) without its constant."""
        return -1 / (self.scale * discrimination(self.position, self.label))  # (B.12)

    def elbo(self) -> Float[Tensor, ""]:
        """ln p(Y | X) p(X), the log posterior; NaN if a factorization or inverse fails."""
        try:
            return self.log_likelihood() + self.log_prior() + log_hyperprior(self)
        except (NanError, NotPSDError, torch.linalg.LinAlgError):
            return self.log_noise * torch.nan

    def latent(self) -> tuple[Float[Tensor, "n q"], Float[Tensor, "n q"]]:
        """Positions X and their standard deviations, which are zero."""
        return self.position.detach().clone(), torch.zeros_like(self.position.detach())

    def relevance(self) -> Float[Tensor, " q"]:
        """1 / lengthscale^2 of each dimension."""
        kernel = self.kernel
        precision: Tensor = (
            kernel.precision if isinstance(kernel, EQ) else kernel.lengthscale[0].pow(-2)
        )
        return precision.detach()

    @torch.no_grad()
    def covariance(self, rows: Int[Tensor, " k"] | None = None) -> Float[Tensor, "k k"]:
        """Kernel matrix of rows at their positions.

        Args:
            rows: Row indices; default all (n^2 elements).
        """
        x = self.position if rows is None else self.position[rows]
        return self.kernel(x).to_dense()

    @torch.no_grad()
    def decode(self, x: Float[Tensor, "k q"]) -> tuple[Float[Tensor, "k d"], Float[Tensor, "k d"]]:
        """Mean and variance (with noise) of the outputs at latent positions.

        The GP's prediction given X (Rasmussen and Williams 2006, 2.25-2.26), regardless of class.

        Args:
            x: Positions.
        """
        targets, lower = self.targets, self._factor()
        cross = self.kernel(x, self.position).to_dense()
        y = cross @ torch.cholesky_solve(targets.y, lower) @ targets.rotation.T  # GPML 2.25
        whitened = torch.linalg.solve_triangular(lower, cross.T, upper=False)
        # GPML 2.26
        row_variance = (self.kernel(x, diag=True) - whitened.square().sum(0)).clamp(
            min=0
        ) + self.noise
        variance = row_variance.unsqueeze(1) * targets.scale.square()
        return y * targets.scale + targets.centre, variance.expand_as(y)

    @torch.no_grad()
    def infer(
        self, Y: Float[Tensor, "k d"], restarts: int = 2, steps: int = 50
    ) -> Float[Tensor, "k q"]:
        """Maximum likelihood positions of new rows, starting from their nearest training rows.

        Args:
            Y: Outputs.
            restarts: Number of nearest training rows to start from.
            steps: Maximum number of steps; converged rows stop earlier.

        Raises:
            BadInput: The number of outputs differs from training, or values are missing.
        """
        targets, density = self.targets, _RowDensity(self, self._factor())
        y, observed = targets.standardize(Y.double())
        if not bool(observed.all()):
            raise BadInput("DGPLVM takes no missing values; fill them in, or use SCLVM.")
        restarts = max(1, min(restarts, len(self.position)))
        nearest = torch.cdist(y @ targets.rotation, targets.y).topk(restarts, largest=False).indices
        start = self.position[nearest.flatten()]
        y = y.repeat_interleave(restarts, 0)
        parts = zip(y.split(ROWS), start.split(ROWS))
        optima = [maximize(density, a, x, torch.full_like(x, FREE), steps) for a, x in parts]
        x, value = (torch.cat([part[k] for part in optima]) for k in (0, 2))
        best = value.view(-1, restarts).argmax(1)
        return x[torch.arange(len(best), device=y.device) * restarts + best]


class _RowDensity:
    """ln p(y* | x*) of new rows as a `RowObjective`; variances of positions are ignored."""

    def __init__(self, model: DGPLVM, lower: Float[Tensor, "n n"]) -> None:
        self.targets, self.noise = model.targets, model.noise.detach()
        self.kernel = copy.deepcopy(model.kernel).requires_grad_(False)
        self.position = model.position.detach()
        eye = torch.eye(len(lower)).to(lower)
        self.whiten = torch.linalg.solve_triangular(lower, eye, upper=False).T.contiguous()
        self.weights = self.whiten @ (self.whiten.T @ self.targets.y)

    def fixed(self, y: Float[Tensor, "k d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, "k r"]]:
        """Squared residual outside the principal components, and the components, of outputs."""
        z = y @ self.targets.rotation
        return y.square().sum(1) - z.square().sum(1), z

    def slopes(self, fixed: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor) -> Gradients:
        """ln p(y* | x*) without its constant, gradient and curvature at the means."""
        x = mean.detach().requires_grad_()
        with torch.enable_grad():
            cross = self.kernel(x, self.position).to_dense()
            explained = (cross @ self.whiten).square().sum(1)
            v = (self.kernel(x, diag=True) - explained).clamp(min=0) + self.noise
            error = (fixed[1] - cross @ self.weights).square().sum(1) + fixed[0]
            value = -0.5 * (len(self.targets.centre) * v.log() + error / v)
            J = self._slope(x, cross)
            (gradient,) = torch.autograd.grad(value.sum(), x)
        curvature = J @ J.mT / v.detach()[:, None, None] + torch.eye(mean.shape[1]).to(mean)
        return Gradients(value.detach(), gradient, torch.zeros_like(mean), curvature)

    def _slope(
        self, x: Float[Tensor, "k q"], cross: Float[Tensor, "k n"]
    ) -> Float[Tensor, "k q r"]:
        """Derivatives of the components' means by the positions; closed form for EQ."""
        if isinstance(self.kernel, EQ):
            log_slope = self.kernel.precision * (self.position - x.detach().unsqueeze(1))
            return (log_slope * cross.detach().unsqueeze(2)).mT @ self.weights
        basis = torch.eye(self.weights.shape[1]).to(cross).unsqueeze(1)
        (slope,) = torch.autograd.grad(
            cross @ self.weights, x, basis.expand(-1, len(x), -1), True, is_grads_batched=True
        )
        return slope.permute(1, 2, 0)


def discrimination(X: Float[Tensor, "n q"], label: Int[Tensor, " n"]) -> Float[Tensor, ""]:
    """J = tr(S_w^-1 S_b) (B.9), with classes weighted by their shares of the rows.

    J is invariant under invertible linear maps of the positions.
    """
    classes, index = label.unique(return_inverse=True)
    one_hot = torch.nn.functional.one_hot(index, len(classes)).to(X)
    share = one_hot.mean(0)
    means = (one_hot.T @ X) / one_hot.sum(0).unsqueeze(1)
    within_means, between_means = X - means[index], means - X.mean(0)
    within = within_means.T @ within_means / len(X)  # S_w, printed as B.11
    between = (share.unsqueeze(1) * between_means).T @ between_means  # S_b, printed as B.10
    return torch.linalg.solve(within, between).trace()  # (B.9)

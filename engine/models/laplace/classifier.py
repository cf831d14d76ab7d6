"""Binary Gaussian process classification by Laplace's approximation, refitted as labels arrive.

    p(y = 1 | x) = link(f(x)),    f ~ GP(0, k)

The posterior of f at the rows is approximated by a Gaussian at its mode: Yousefi (2021), section
2.2.4.1 and B.13-B.18; Rasmussen and Williams (2006, GPML), algorithms 3.1, 3.2 and 5.1. Labels
arrive one at a time, so Newton's method starts from the previous mode (`observe`). Numbers beside
lines are GPML's; B.16 of Yousefi is GPML's 3.18.

    model = LaplaceGPC.build(x, y)
    model.fit()
    model.probability(x_new)
    model = model.observe(x_more, y_more)
    model.fit(steps=5)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import RBFKernel, ScaleKernel
from jaxtyping import Float, Int
from scant.errors import BadInput
from scant.models.laplace.links import LINKS, Link, probability
from scant.optim.lbfgs import LBFGS
from torch import Tensor, nn

NEWTON_STEPS = 100
TOLERANCE = 1e-10  # nats by which the last Newton step raised the posterior of f
HALVINGS = 12
CHUNK = 4096  # rows predicted at once


class Mode(NamedTuple):
    """The mode of the posterior of f, and its curvature."""

    a: Float[Tensor, " n"]  # K^-1 f
    f: Float[Tensor, " n"]
    W_sqrt: Float[Tensor, " n"]  # W = -d2 ln p(y | f) / df2
    L: Float[Tensor, "n n"]  # Cholesky factor of I + W^1/2 K W^1/2
    log_evidence: Float[Tensor, ""]


def _psi(a: Tensor, f: Tensor, y: Tensor, link: Link) -> Tensor:
    """ln p(y | f) p(f | X), but for a constant."""
    return link(f, y).log_p.sum() - 0.5 * a @ f  # GPML 3.12


def _factor(K: Tensor, W_sqrt: Tensor) -> Tensor:
    B = W_sqrt[:, None] * K * W_sqrt
    B.diagonal().add_(1)  # GPML 3.26: B = I + W^1/2 K W^1/2
    return torch.linalg.cholesky(B)


@torch.no_grad()
def mode(
    K: Float[Tensor, "n n"], y: Float[Tensor, " n"], link: Link, a: Float[Tensor, " n"]
) -> Mode:
    """Newton's method from f = K a (algorithm 3.1); a step that would lower psi is halved.

    B = I + W^1/2 K W^1/2 has no eigenvalue below one, so its factor needs no jitter.

    Args:
        K: Prior covariance of the rows.
        y: Labels, -1 and 1.
        link: What turns f into a probability.
        a: Start; replaced by zero where psi is higher there.
    """
    f = K @ a
    psi = _psi(a, f, y, link)
    psi_zero = _psi(torch.zeros_like(a), torch.zeros_like(a), y, link)
    if not psi >= psi_zero:
        a, f, psi = torch.zeros_like(a), torch.zeros_like(a), psi_zero
    for _ in range(NEWTON_STEPS):
        here = link(f, y)
        W_sqrt = here.curvature.sqrt()
        b = here.curvature * f + here.slope  # b = W f + grad ln p(y | f)
        solved = torch.cholesky_solve((W_sqrt * (K @ b))[:, None], _factor(K, W_sqrt)).squeeze(1)
        da = b - W_sqrt * solved - a  # GPML 3.18 by 3.27: a = b - W^1/2 B^-1 W^1/2 K b
        df = K @ da
        for _ in range(HALVINGS):
            psi_new = _psi(a + da, f + df, y, link)
            if psi_new >= psi - TOLERANCE:  # at the mode, rounding hides the gain of the last step
                break
            da, df = da / 2, df / 2
        gain = psi_new - psi
        if not gain >= -TOLERANCE:
            break
        a, f, psi = a + da, f + df, psi_new
        if gain <= TOLERANCE:
            break
    here = link(f, y)
    W_sqrt = here.curvature.sqrt()
    L = _factor(K, W_sqrt)
    # GPML 3.17: K^-1 f = grad ln p(y | f) at the mode; (3.32): the log evidence
    return Mode(here.slope, f, W_sqrt, L, psi - L.diagonal().log().sum())


class Evidence(torch.autograd.Function):
    """ln q(y | K) (3.32) and its exact gradient by K, through the mode too (algorithm 5.1)."""

    @staticmethod
    def forward(ctx: Any, K: Tensor, y: Tensor, link: Link, found: Mode) -> Tensor:
        ctx.save_for_backward(K, y, found.f, found.W_sqrt, found.L)
        ctx.link = link
        return found.log_evidence.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None, None]:
        K, y, f, W_sqrt, L = ctx.saved_tensors
        here = ctx.link(f, y)
        B_inv = torch.cholesky_inverse(L)
        R = W_sqrt[:, None] * B_inv * W_sqrt  # (K + W^-1)^-1
        # diag((K^-1 + W)^-1) = (1 - B^-1) / W; where W is zero, so is the third derivative.
        variance = (1 - B_inv.diagonal()) / W_sqrt.square().clamp(min=1e-30)
        s2 = 0.5 * variance * here.third  # GPML 5.23
        s3 = s2 - R @ (K @ s2)  # GPML 5.24, transposed: (I + W K)^-1 s2
        outer = torch.outer(s3, here.slope)
        by_K = 0.5 * (torch.outer(here.slope, here.slope) - R + outer + outer.T)  # GPML 5.22 + 5.21
        return grads[0] * by_K, None, None, None


class Prior(NamedTuple):
    """A weak prior on the hyperparameters: log-normal, each by itself.

    A few rows can often be told apart without an error, and then the evidence alone would have the
    amplitude of f grow without end, until nothing can be factorized.
    """

    amplitude: float = 3.0  # of f, the median
    amplitude_spread: float = 1.5  # deviation of ln amplitude^2
    lengthscale_spread: float = 1.0  # deviation of ln lengthscale; the median is sqrt(d)

    def penalty(self, kernel: ScaleKernel, d: int) -> Float[Tensor, ""]:
        """Minus its logarithm, up to a constant, for inputs of `d` features."""
        scale = (kernel.outputscale / self.amplitude**2).log() / self.amplitude_spread
        length = (kernel.base_kernel.lengthscale / _typical(d)).log() / self.lengthscale_spread
        found: Tensor = 0.5 * (scale.square() + length.square().sum())
        return found


class LaplaceGPC(nn.Module):
    """See the module; made by `build`. float64; inputs are best standardized.

    Attributes:
        prior: On the hyperparameters; None: none.
        kernel: Squared exponential with an output scale and one lengthscale, or one a feature.
        x, y: Rows and labels (-1, 1) learned from.
        a: K^-1 f of the last mode found, from which the next search begins.
    """

    x: Tensor
    y: Tensor
    a: Tensor

    def __init__(
        self, x: Tensor, y: Tensor, link: str, ard: bool, prior: Prior | None = None
    ) -> None:
        super().__init__()
        self.link_name, self.ard, self.prior = link, ard, prior
        inner = RBFKernel(ard_num_dims=x.shape[1] if ard else None, lengthscale_constraint=_log())
        self.kernel = ScaleKernel(inner, outputscale_constraint=_log()).to(x)
        inner.lengthscale = _typical(x.shape[1])
        self.kernel.outputscale = 4.0
        self.register_buffer("x", x)
        self.register_buffer("y", y)
        self.register_buffer("a", torch.zeros_like(y))

    @classmethod
    def build(
        cls,
        x: Float[Tensor, "n d"],
        y: Int[Tensor, " n"],
        link: str = "logistic",
        ard: bool = False,
        prior: Prior | None = None,
    ) -> LaplaceGPC:
        """A model of labeled rows.

        Args:
            x: Inputs, standardized, none missing.
            y: Labels 0 and 1. All of one class is allowed: who begins to label has no other.
            link: "logistic" or "probit".
            ard: Whether each feature has its own lengthscale.
            prior: On the hyperparameters; None: the evidence alone decides.

        Raises:
            BadInput: An unknown link, no rows, labels or inputs that are not such.
        """
        if link not in LINKS:
            raise BadInput(f"The link must be one of {', '.join(LINKS)}, got {link!r}.")
        _check(x, y)
        return cls(x.double(), 2.0 * y.double() - 1, link, ard, prior)

    @property
    def link(self) -> Link:
        """What turns f into a probability."""
        return LINKS[self.link_name]

    def covariance(
        self, a: Float[Tensor, "n d"], b: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """Prior covariance of f between rows."""
        inner = self.kernel.base_kernel
        return self.kernel.outputscale * inner.forward(a, a if b is None else b)

    def log_evidence(self) -> Float[Tensor, ""]:
        """Laplace's approximation of ln p(y | x), nats; differentiable in the hyperparameters."""
        K = self.covariance(self.x)
        found = mode(K.detach(), self.y, self.link, self.a)
        if bool(torch.isfinite(found.log_evidence)):
            self.a = found.a
        return Evidence.apply(K, self.y, self.link, found)  # type: ignore[no-any-return]

    def objective(self) -> Float[Tensor, ""]:
        """Minus the log evidence, and minus the log prior where there is one."""
        value = -self.log_evidence()
        if self.prior is not None:
            value = value + self.prior.penalty(self.kernel, self.x.shape[1])
        return value

    def fit(self, steps: int = 100, tolerance: float = 1e-5) -> Float[Tensor, ""]:
        """Raise the evidence by L-BFGS until a step gains less than `tolerance`; its value (nats).

        With labels of one class only nothing is learned: the evidence would have the prior sure.
        """
        if len(self.y.unique()) > 1:
            optimizer = LBFGS(self.parameters(), self.objective)
            last = torch.inf
            for _ in range(steps):
                value = optimizer.step()
                if optimizer.stalled or not last - value > tolerance:
                    break
                last = value
        with torch.no_grad():
            return self.log_evidence()

    def observe(self, x: Float[Tensor, "k d"], y: Int[Tensor, " k"]) -> LaplaceGPC:
        """A model with more rows, which begins where this one stands.

        Args:
            x: More inputs.
            y: Their labels, 0 and 1.

        Raises:
            BadInput: As `build`.
        """
        return self.again(torch.cat([self.x, x.to(self.x)]), torch.cat([(self.y > 0).to(y), y]))

    def again(self, x: Float[Tensor, "n d"], y: Int[Tensor, " n"]) -> LaplaceGPC:
        """A model of other rows, which begins where this one stands.

        Args:
            x: Inputs; the first may be those of this model.
            y: Their labels, 0 and 1.

        Raises:
            BadInput: As `build`.
        """
        other = LaplaceGPC.build(x, y, self.link_name, self.ard, self.prior)
        other.kernel.load_state_dict(self.kernel.state_dict())
        known = min(len(self.a), len(x))
        other.a[:known] = self.a[:known]
        return other

    @torch.no_grad()
    def latent(self, x: Float[Tensor, "k d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Mean and variance of f at new rows."""
        found = mode(self.covariance(self.x), self.y, self.link, self.a)
        means, variances = [], []
        for part in x.to(self.x).split(CHUNK):
            cross = self.covariance(self.x, part)
            v = torch.linalg.solve_triangular(found.L, found.W_sqrt[:, None] * cross, upper=False)
            means.append(cross.T @ found.a)  # GPML 3.21
            # GPML 3.24, by line 6 of algorithm 3.2
            variances.append((self.kernel.outputscale - v.square().sum(0)).clamp(min=0))
        return torch.cat(means), torch.cat(variances)

    @torch.no_grad()
    def probability(self, x: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        """p(y = 1 | x), averaged over f and not taken at its mean."""
        return probability(self.link_name, *self.latent(x))


def _typical(d: int) -> float:
    """A lengthscale for `d` standardized inputs: distances grow with the root of their number."""
    return float(max(d, 1) ** 0.5)


def _log() -> Positive:
    return Positive(transform=torch.exp, inv_transform=torch.log)


def _check(x: Tensor, y: Tensor) -> None:
    if x.ndim != 2 or len(x) != len(y) or not len(x):
        raise BadInput(
            f"There must be one label a row, and one row at least; got {len(x)} rows and"
            f" {len(y)} labels."
        )
    if not bool(torch.isfinite(x).all()):
        raise BadInput("Every input must be a finite number; fill in or leave out what is missing.")
    if not bool(((y == 0) | (y == 1)).all()):
        raise BadInput(f"Labels must be 0 or 1, got {sorted(set(y.tolist()))[:5]}.")

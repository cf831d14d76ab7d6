"""Binary Gaussian-process classification by Laplace's approximation, made to be asked again.

    p(y = 1 | x) = link(f(x)),    f ~ GP(0, k)

The posterior of f at the rows is taken to be Gaussian about its mode: Yousefi (2021), section
2.2.4.1 and B.13-B.18; Rasmussen and Williams (2006), algorithms 3.1, 3.2 and 5.1. Who labels has
rows join one by one, so that each search for the mode begins where the last one ended (`observe`).

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
    """Where the posterior of f is highest, and how sharply."""

    a: Float[Tensor, " n"]  # K^-1 f
    f: Float[Tensor, " n"]
    root: Float[Tensor, " n"]  # of the curvature W = -d2 ln p(y | f) / df2
    L: Float[Tensor, "n n"]  # Cholesky factor of I + W^1/2 K W^1/2
    log_evidence: Float[Tensor, ""]


def _height(a: Tensor, f: Tensor, y: Tensor, link: Link) -> Tensor:
    return link(f, y).log_p.sum() - 0.5 * a @ f


def _factor(K: Tensor, root: Tensor) -> Tensor:
    B = root[:, None] * K * root
    B.diagonal().add_(1)
    return torch.linalg.cholesky(B)


@torch.no_grad()
def mode(
    K: Float[Tensor, "n n"], y: Float[Tensor, " n"], link: Link, a: Float[Tensor, " n"]
) -> Mode:
    """Newton's iterations from f = K a; a step that would lose height is halved.

    B = I + W^1/2 K W^1/2 has no eigenvalue below one, so that its factor needs no jitter.

    Args:
        K: Prior covariance of the rows.
        y: Labels, -1 and 1.
        link: What turns f into a probability.
        a: Where to begin; forgotten where zero is higher.
    """
    f = K @ a
    height = _height(a, f, y, link)
    at_zero = _height(torch.zeros_like(a), torch.zeros_like(a), y, link)
    if not height >= at_zero:
        a, f, height = torch.zeros_like(a), torch.zeros_like(a), at_zero
    for _ in range(NEWTON_STEPS):
        here = link(f, y)
        root = here.curvature.sqrt()
        b = here.curvature * f + here.slope
        solved = torch.cholesky_solve((root * (K @ b))[:, None], _factor(K, root)).squeeze(1)
        step = b - root * solved - a
        move = K @ step
        for _ in range(HALVINGS):
            raised = _height(a + step, f + move, y, link)
            if raised >= height - TOLERANCE:  # at the top, rounding hides the last step's gain
                break
            step, move = step / 2, move / 2
        gain = raised - height
        if not gain >= -TOLERANCE:
            break
        a, f, height = a + step, f + move, raised
        if gain <= TOLERANCE:
            break
    here = link(f, y)
    root = here.curvature.sqrt()
    L = _factor(K, root)
    return Mode(here.slope, f, root, L, height - L.diagonal().log().sum())


class Evidence(torch.autograd.Function):
    """ln q(y | K) and its exact gradient, the mode's own motion included (algorithm 5.1)."""

    @staticmethod
    def forward(ctx: Any, K: Tensor, y: Tensor, link: Link, found: Mode) -> Tensor:
        ctx.save_for_backward(K, y, found.f, found.root, found.L)
        ctx.link = link
        return found.log_evidence.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None, None]:
        K, y, f, root, L = ctx.saved_tensors
        here = ctx.link(f, y)
        inverse = torch.cholesky_inverse(L)
        R = root[:, None] * inverse * root
        # Posterior variances (1 - B^-1) / W; where W is nothing, so is the third derivative.
        variance = (1 - inverse.diagonal()) / root.square().clamp(min=1e-30)
        pull = 0.5 * variance * here.third
        moved = pull - R @ (K @ pull)
        outer = torch.outer(moved, here.slope)
        by_K = 0.5 * (torch.outer(here.slope, here.slope) - R + outer + outer.T)
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
            v = torch.linalg.solve_triangular(found.L, found.root[:, None] * cross, upper=False)
            means.append(cross.T @ found.a)
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

"""Binary Gaussian process classification by Laplace's approximation, refitted as labels arrive.

    p(y = 1 | x) = link(f(x)),    f ~ GP(0, k)

The posterior of f at the rows is approximated by a Gaussian at its mode: Yousefi (2021), section
2.2.4.1 and B.13-B.18; Rasmussen and Williams (2006, GPML), algorithms 3.1, 3.2 and 5.1. Labels
arrive one at a time, so Newton's method starts from the previous mode (`observe`). Numbers beside
lines are GPML's; B.16 of Yousefi is GPML's 3.18.

    model = LaplaceGPC.build(x, y)
    model.fit()
    model(x_new)                        # the latent function, a MultivariateNormal
    model.likelihood(model(x_new))      # the label, a Bernoulli; its mean is `probability`
    model = model.observe(x_more, y_more)
    model.fit(steps=5)
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.models import GP
from jaxtyping import Float, Int
from linear_operator.operators import MatmulLinearOperator
from torch import Tensor

from scant.errors import BadInput
from scant.models.hyperprior import log_hyperprior
from scant.models.laplace.kernels import LinearAndRBF, dense, squared_exponential, typical
from scant.models.laplace.links import LIKELIHOODS, LINKS, Link, LinkDerivatives, probability
from scant.optim.lbfgs import LBFGS

NEWTON_STEPS = 100
TOLERANCE = 1e-10  # nats; at the mode, rounding hides what a step of Newton gains
AT_MODE = 1e-16  # nats: the Newton decrement that ends the search; the root of it is f's error
CONTRACTION = 0.25  # of the decrement by a step; a factor that gives less is too old
HALVINGS = 12
CHUNK = 4096  # rows predicted at once


class Mode(NamedTuple):
    """The mode of the posterior of f, and its curvature."""

    a: Float[Tensor, " n"]  # K^-1 f
    f: Float[Tensor, " n"]
    W_sqrt: Float[Tensor, " n"]  # W = -d2 ln p(y | f) / df2
    L: Float[Tensor, "n n"]  # Cholesky factor of I + W^1/2 K W^1/2
    log_evidence: Float[Tensor, ""]


class Curvature(NamedTuple):
    """What a step of Newton needs of a place where B was factorized."""

    W_sqrt: Float[Tensor, " n"]
    L: Float[Tensor, "n n"]

    @classmethod
    def at(cls, K: Tensor, W: Tensor) -> Curvature:
        W_sqrt = W.sqrt()
        B = (W_sqrt[:, None] * K).mul_(W_sqrt)
        B.diagonal().add_(1)  # GPML 3.26: B = I + W^1/2 K W^1/2
        return cls(W_sqrt, torch.linalg.cholesky(B))

    def step(self, K: Tensor, slope: Tensor) -> Tensor:
        """Of a, where psi has this slope by f: a = b - W^1/2 B^-1 W^1/2 K b (GPML 3.18 by 3.27)."""
        right = (self.W_sqrt * (K @ slope))[:, None]
        solved = torch.cholesky_solve(right, self.L).squeeze(1)
        return slope - self.W_sqrt * solved


@torch.no_grad()
def mode(
    K: Float[Tensor, "n n"],
    y: Float[Tensor, " n"],
    link: Link,
    a: Float[Tensor, " n"],
    near: Mode | None = None,
) -> Mode:
    """Newton's method from f = K a (algorithm 3.1); a step that would lower psi is halved.

    A factorization costs n^3 / 3, a step with one at hand 8 n^2. So B's factor serves until its
    steps shrink the Newton decrement too little, and that of another mode, under a kernel that
    was a little different, predicts where this one is. The search ends by the decrement. In a fit
    of 500 rows and 20 lengthscales B is factorized 3.2 times an evaluation where algorithm 3.1
    needs 7.3, and the fit takes 0.69 of the time.

    B = I + W^1/2 K W^1/2 has no eigenvalue below one, so its factor needs no jitter.

    Args:
        K: Prior covariance of the rows.
        y: Labels, -1 and 1.
        link: What turns f into a probability.
        a: Start; replaced by zero where psi is higher there.
        near: A mode of the same rows under another kernel.
    """

    def at(a: Tensor, f: Tensor) -> tuple[LinkDerivatives, Tensor]:
        here = link(f, y)
        return here, here.log_p.sum() - 0.5 * a @ f  # GPML 3.12: ln p(y | f) p(f | X) + constant

    zero = torch.zeros_like(a)
    f = K @ a
    (here, psi), nowhere = at(a, f), at(zero, zero)
    if not psi >= nowhere[1]:
        (here, psi), a, f, near = nowhere, zero, zero, None
    known = None if near is None else Curvature(near.W_sqrt, near.L)
    last = torch.inf
    for _ in range(NEWTON_STEPS):
        slope = here.slope - a  # of psi, by f
        fresh = known is None
        known = known or Curvature.at(K, here.curvature)
        da = known.step(K, slope)
        df = K @ da
        decrement = float(slope @ df)  # about twice what the step gains
        if not fresh and not 0 <= decrement <= CONTRACTION * last:
            known, last = None, torch.inf
            continue
        for _ in range(HALVINGS):
            there, psi_new = at(a + da, f + df)
            if psi_new >= psi - TOLERANCE:
                break
            da, df = da / 2, df / 2
        if not psi_new >= psi - TOLERANCE:
            if fresh:
                break
            known, last = None, torch.inf
            continue
        a, f, here, psi = a + da, f + df, there, psi_new
        if decrement <= (TOLERANCE if fresh else AT_MODE):  # a true step squares what is left
            break
        last = decrement
    end = Curvature.at(K, here.curvature)
    # GPML 3.17: K^-1 f = grad ln p(y | f) at the mode; (3.32): the log evidence
    return Mode(here.slope, f, *end, psi - end.L.diagonal().log().sum())


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
        # diag((K^-1 + W)^-1) = (1 - B^-1) / W; where W is zero, so is the third derivative.
        variance = (1 - B_inv.diagonal()) / W_sqrt.square().clamp(min=1e-30)
        R = B_inv.mul_(W_sqrt[:, None]).mul_(W_sqrt)  # (K + W^-1)^-1
        s2 = 0.5 * variance * here.third  # GPML 5.23
        s3 = s2 - R @ (K @ s2)  # GPML 5.24, transposed: (I + W K)^-1 s2
        half = s3 + 0.5 * here.slope
        left, right = torch.stack([half, here.slope], 1), torch.stack([here.slope, half])
        # GPML 5.22 + 5.21: (slope slope' - R) / 2 + (s3 slope' + slope s3') / 2
        by_K = R.addmm_(left, right, beta=-0.5, alpha=0.5)
        return by_K.mul_(grads[0]), None, None, None


class Prior(NamedTuple):
    """A weak prior on the hyperparameters: log-normal, each by itself.

    A few rows can often be told apart without an error, and then the evidence alone would have the
    amplitude of f grow without end, until nothing can be factorized.
    """

    amplitude: float = 3.0  # of f, the median
    amplitude_spread: float = 1.5  # deviation of ln amplitude^2
    lengthscale_spread: float = 1.0  # deviation of ln lengthscale; the median is sqrt(d)
    weight: float = 10.0  # variance of a weight of the linear part, the median; v is d times it
    weight_spread: float = 0.7  # deviation of its logarithm
    constant: float = 200.0  # variance of the constant, the median; the spread is that of amplitude

    def log_prob(self, kernel: ScaleKernel | LinearAndRBF, d: int) -> Float[Tensor, ""]:
        """Its logarithm, up to a constant, for inputs of `d` features.

        Those of the linear part are nearly flat: labels that were asked for are few of the rare
        class, and a weaker slope would take too few rows for it.
        """
        if isinstance(kernel, LinearAndRBF):
            weight = (kernel.slope / (d * self.weight)).log() / self.weight_spread
            constant = (kernel.constant / self.constant).log() / self.amplitude_spread
            away = torch.stack([weight, constant])
            return self.log_prob(kernel.curved, d) - 0.5 * away.square().sum()
        scale = (kernel.outputscale / self.amplitude**2).log() / self.amplitude_spread
        length = (kernel.base_kernel.lengthscale / typical(d)).log() / self.lengthscale_spread
        found: Tensor = -0.5 * (scale.square() + length.square().sum())
        return found


class LaplaceGPC(GP):
    """See the module; made by `build`. float64; inputs are best standardized.

    Attributes:
        prior: On the hyperparameters; None: none.
        kernel: Squared exponential with an output scale and one lengthscale, or one a feature, or
            any kernel of GPyTorch.
        likelihood: Of labels 0 and 1.
        x, y: Rows and labels (-1, 1) learned from.
        a: K^-1 f of the last mode found, from which the next search begins.
    """

    x: Tensor
    y: Tensor
    a: Tensor

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        link: str,
        ard: bool,
        prior: Prior | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        super().__init__()
        self.link_name, self.ard, self.prior = link, ard, prior
        self.kernel = squared_exponential(x.shape[1], ard) if kernel is None else deepcopy(kernel)
        self.kernel.to(x)
        self.likelihood = LIKELIHOODS[link]()
        self.register_buffer("x", x)
        self.register_buffer("y", y)
        self.register_buffer("a", torch.zeros_like(y))
        self._near: Mode | None = None  # while the kernel is learned

    @classmethod
    def build(
        cls,
        x: Float[Tensor, "n d"],
        y: Int[Tensor, " n"],
        link: str = "logistic",
        ard: bool = False,
        prior: Prior | None = None,
        kernel: Kernel | None = None,
        *,
        linear: bool = False,
    ) -> LaplaceGPC:
        """A model of labeled rows.

        Args:
            x: Inputs, standardized, none missing.
            y: Labels 0 and 1. All of one class is allowed: who begins to label has no other.
            link: "logistic" or "probit".
            ard: Whether each feature has its own lengthscale.
            prior: On the hyperparameters; None: the evidence alone decides.
            kernel: In place of the squared exponential; copied. It decides about lengthscales.
            linear: Add a linear and a constant part to the squared exponential.

        Raises:
            BadInput: An unknown link, no rows, labels or inputs that are not such; a prior with a
                kernel that has no output scale and lengthscale.
        """
        if link not in LINKS:
            raise BadInput(f"The link must be one of {', '.join(LINKS)}, got {link!r}.")
        _check(x, y)
        if linear and kernel is None:
            kernel = LinearAndRBF(x.shape[1], ard)
        if prior is not None and kernel is not None and not _scaled(kernel):
            raise BadInput(
                "The prior is on an output scale and lengthscales; give a ScaleKernel of a kernel "
                "with lengthscales, or no prior."
            )
        return cls(x.double(), 2.0 * y.double() - 1, link, ard, prior, kernel)

    @property
    def link(self) -> Link:
        """What turns f into a probability."""
        return LINKS[self.link_name]

    def covariance(
        self, a: Float[Tensor, "n d"], b: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """Prior covariance of f between rows."""
        other = a if b is None else b
        if isinstance(self.kernel, ScaleKernel) and type(self.kernel.base_kernel) is RBFKernel:
            return dense(self.kernel, a, other)
        if isinstance(self.kernel, LinearAndRBF):
            return self.kernel.forward(a, other)
        K: Tensor = self.kernel(a, other).to_dense()
        return K

    def variance(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Prior variance of f at rows."""
        found: Tensor = self.kernel(x, diag=True)
        return found

    def log_evidence(self) -> Float[Tensor, ""]:
        """Laplace's approximation of ln p(y | x), nats; differentiable in the hyperparameters."""
        K = self.covariance(self.x)
        found = mode(K.detach(), self.y, self.link, self.a, self._near)
        if bool(torch.isfinite(found.log_evidence)):
            self.a, self._near = found.a, found
        return Evidence.apply(K, self.y, self.link, found)  # type: ignore[no-any-return]

    def log_prior(self) -> Float[Tensor, ""]:
        """Of the hyperparameters, up to a constant; zero where there is none."""
        if self.prior is None:
            return self.y.new_zeros(())
        return self.prior.log_prob(self.kernel, self.x.shape[1])

    def elbo(self) -> Float[Tensor, ""]:
        """`log_evidence`, `log_prior` and registered priors, nats: what training raises."""
        return self.log_evidence() + self.log_prior() + log_hyperprior(self)

    def fit(self, steps: int = 100, tolerance: float = 1e-5) -> Float[Tensor, ""]:
        """The evidence (nats) after L-BFGS has raised it, until a step gains less than `tolerance`.

        With a prior it is the sum of both that rises. With labels of one class only nothing is
        learned: the evidence would have the prior sure.
        """
        if len(self.y.unique()) > 1:
            optimizer = LBFGS(self.parameters(), lambda: -self.elbo())
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
        other = LaplaceGPC.build(x, y, self.link_name, self.ard, self.prior, self.kernel)
        known = min(len(self.a), len(x))
        other.a[:known] = self.a[:known]
        return other

    @torch.no_grad()
    def forward(self, x: Float[Tensor, "k d"]) -> MultivariateNormal:
        """The latent function at new rows, as a Gaussian of GPyTorch; its covariance is lazy."""
        found, x = self._mode(), x.to(self.x)
        cross, v = self._seen(found, x)
        prior = self.kernel(x)
        return MultivariateNormal(cross.T @ found.a, prior + MatmulLinearOperator(-v.T, v))

    @torch.no_grad()
    def latent(self, x: Float[Tensor, "k d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Mean and variance of f at new rows, however many: no covariance is held."""
        found = self._mode()
        means, variances = [], []
        for part in x.to(self.x).split(CHUNK):
            cross, v = self._seen(found, part)
            means.append(cross.T @ found.a)  # GPML 3.21
            # GPML 3.24, by line 6 of algorithm 3.2
            variances.append((self.variance(part) - v.square().sum(0)).clamp(min=0))
        return torch.cat(means), torch.cat(variances)

    def _mode(self) -> Mode:
        return mode(self.covariance(self.x), self.y, self.link, self.a)

    def _seen(self, found: Mode, x: Tensor) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
        """Prior covariance with the rows learned from, and what they take from that of `x`."""
        cross = self.covariance(self.x, x)
        v = torch.linalg.solve_triangular(found.L, found.W_sqrt[:, None] * cross, upper=False)
        return cross, v

    @torch.no_grad()
    def probability(self, x: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        """p(y = 1 | x), averaged over f and not taken at its mean."""
        return probability(self.link_name, *self.latent(x))


def _scaled(kernel: Kernel) -> bool:
    scaled = isinstance(kernel, ScaleKernel) and kernel.base_kernel.has_lengthscale
    return scaled or isinstance(kernel, LinearAndRBF)


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

"""DFGP: the deep feed-forward GP, hidden sparse GPs into an output GP.

Kandemir and Hamprecht (2015). Hidden neurons b_r ~ GP(0, k_r(x, x')), an output f ~ GP(0, k(b, b'))
(eqs. 4-6) and a likelihood: Gaussian, or Bernoulli with a probit link for two classes. Each neuron
may see its own view of a row: multiple kernel learning. A linear output kernel makes it DFGP-WP
(Theorem 1).

    generator = torch.Generator().manual_seed(seed)
    model = DFGP.build([view, other_view], y, "bernoulli", generator=generator)
    trainer = DFGPTrainer(model)                # scant.models.dfgp.training
    elbo = trainer.step()                         # as often as wanted
    model.probability([new_view, other_new_view])

Three bounds. Rows enter the expectations of section 4.1 one at a time, so that q(a_r) may be
Gaussian at the price of one small product of matrices:

- `"published"`: q(a_r) a spike at its mean, whose entropy is left out, as printed. No bound on the
  evidence: the best inducing outputs count as if they were known.
- `"closed"`: the same with a Gaussian q(a_r): a bound on the evidence, in closed form.
- `"stochastic"`: hidden values sampled (Salimbeni and Deisenroth 2017), for batches of rows. Also
  for censored times.

The printed L_c of the appendix has t_n and indicators where the integral over y has none; it is

    sum_n ln Phi(t_n F_n / sqrt(1 + 1/beta)) - beta/2 var(f_n)  - KL(q(u)||p(u)) - KL(q(a)||p(a))

with classes t_n of -1 and 1, F_n = E[f_n] and moments under q. q(u) is optimal in closed form, but
for E[u] of classes. The printed L_r lacks N/2 ln(2 pi) and -1/2 ln|K| of the hidden layer; with
a_r = L_r v_r as here, the latter is not wanted. On a CPU the same seed gives the same run, bit by
bit.
"""

from __future__ import annotations

from typing import Literal, cast

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.models import GP
from jaxtyping import Bool, Float
from linear_operator.operators import DiagLinearOperator
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor, nn

from scant.errors import BadInput
from scant.kernels.constraints import LogPositive
from scant.likelihoods.gaussian import CensoredGaussianLikelihood
from scant.likelihoods.probit import ProbitLikelihood
from scant.models.dfgp.bounds import class_bound, optimal, target_bound, weight_divergence
from scant.models.dfgp.hidden import START_WIDTH, HiddenLayer, ViewStack
from scant.models.dfgp.likelihoods import Likelihood, check, expected_likelihood
from scant.models.dfgp.output import Expected, LinearOutput, Output, RBFOutput
from scant.models.hyperprior import log_hyperprior

Bound = Literal["published", "closed", "stochastic"]
LEAST_NOISE = 1e-6  # of the target's variance
START_NOISE = 0.5  # of a standardized target
START_CLASS_NOISE = 4.0  # large, since L_c else starts where the best is to learn nothing
SINGLE_VIEW_NEURONS = 3


class DFGP(GP):
    """See the module; `build` makes one.

    Args:
        views: Centres and scales of the views' columns.
        hidden: The hidden layer.
        x: Standardized views of the rows learned from.
        y: Their targets, or their classes, 0 and 1.
        censored: Rows whose target is only known to lie above y.
        likelihood, bound: See the module.
        output: Kernel of the output neuron.
        inducing: P, inducing inputs of the output neuron.
        generator: A CPU generator.
        output_ard: Whether the RBF output kernel has a lengthscale of every neuron.
    """

    x: Float[Tensor, "v n d"]
    y: Float[Tensor, " n"]  # standardized, or -1 and 1
    censored: Bool[Tensor, " n"]
    centre: Float[Tensor, ""]
    scale: Float[Tensor, ""]

    def __init__(
        self,
        views: ViewStack,
        hidden: HiddenLayer,
        x: Float[Tensor, "v n d"],
        y: Float[Tensor, " n"],
        censored: Bool[Tensor, " n"],
        likelihood: Likelihood,
        bound: Bound,
        output: Output,
        inducing: int,
        generator: torch.Generator,
        output_ard: bool = True,
    ) -> None:
        super().__init__()
        self.views, self.hidden_layer = views, hidden
        self.kind, self._likelihood = bound, likelihood
        classes = likelihood == "bernoulli"
        centre, scale = (y.new_tensor(0.5), y.new_tensor(0.5)) if classes else (y.mean(), y.std())
        for name, value in {"x": x, "centre": centre, "scale": scale, "censored": censored}.items():
            self.register_buffer(name, value)
        self.register_buffer("y", (y - centre) / scale)
        hidden.start(x, self.y)
        with torch.no_grad():
            mean, _ = hidden.moments(x)
        wide = output == "rbf"
        self.output = (
            RBFOutput(mean, inducing, generator, output_ard) if wide else LinearOutput(mean)
        )
        noise = START_CLASS_NOISE if classes and bound != "stochastic" else START_NOISE
        self.log_noise = nn.Parameter(y.new_tensor(noise).log())
        self.register_constraint("log_noise", LogPositive())
        self.mean: nn.Parameter | None = None
        self.root: nn.Parameter | None = None
        if classes or bound == "stochastic":
            self._start()

    def _start(self) -> None:
        """E[w] and, where it is sampled, the factor of cov(w), by least squares to the targets."""
        with torch.no_grad():
            scale = (self.log_noise.exp() / START_NOISE).sqrt()
            noise = torch.full_like(scale, START_NOISE)
            mean, covariance = optimal(self._expected(), self.y * scale, noise)
        self.mean = nn.Parameter(mean)
        if self.kind == "stochastic":
            # Row by row, as it comes back from a checkpoint: sums then agree to the last bit.
            self.root = nn.Parameter(torch.linalg.cholesky(covariance).contiguous())
            if self._likelihood == "bernoulli":
                self.log_noise.requires_grad_(False)

    @classmethod
    def build(
        cls,
        views: list[Tensor],
        y: Float[Tensor, " n"],
        likelihood: Likelihood = "gaussian",
        output: Output = "rbf",
        inducing: int = 10,
        generator: torch.Generator | None = None,
        *,
        neurons: int = 0,
        bound: Bound = "published",
        ard: bool = True,
        output_ard: bool = True,
        move: bool = False,
        width: float = START_WIDTH,
        censored: Bool[Tensor, " n"] | None = None,
        kernel: Kernel | None = None,
    ) -> DFGP:
        """A model that starts as the publication's: every neuron a regression of its own on y.

        Args:
            views: Rows `"n d"` of each view, of different widths.
            y: Targets; classes as 0 and 1.
            likelihood: `"gaussian"`, or `"bernoulli"` for two classes.
            output: `"rbf"`, or `"linear"` for DFGP-WP.
            inducing: Inducing inputs of every neuron.
            generator: A CPU generator; seeded with 0 without.
            neurons: In the hidden layer; they take the views in turn. 0: one a view, or three of
                a single one.
            bound: See the module.
            ard: Whether each column has a lengthscale of its own.
            output_ard: Whether each neuron has one in the RBF kernel of the output; where none
                has, as in Corollary 1, no neuron is left out for one that says much the same.
            move: Whether the inducing inputs of hidden neurons are learned; as published they are
                not, so that neurons differ.
            width: Lengthscales that hidden neurons start from (see `HiddenLayer`).
            censored: Rows whose target is only known to be above y (a time of survival); with the
                stochastic bound.
            kernel: Any of GPyTorch's, of the hidden neurons, in place of the EQ kernel (see
                `HiddenLayer`). That of the output has expectations in closed form.

        Raises:
            BadInput: Views without columns or rows, values that are not finite, a target that does
                not vary, a single class, a number below one, or censored rows in a closed bound.
        """
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        y = y.double()
        learned = ViewStack(views)
        x = learned(views)
        censored = torch.zeros_like(y, dtype=torch.bool) if censored is None else censored
        check(x.shape[1], y, likelihood)
        count = neurons or (len(views) if len(views) > 1 else SINGLE_VIEW_NEURONS)
        if min(count, inducing) < 1:
            raise BadInput(f"At least one neuron and inducing input, got {count} and {inducing}.")
        if bool(censored.any()) and (bound != "stochastic" or likelihood != "gaussian"):
            raise BadInput("Censored rows need a Gaussian likelihood and the stochastic bound.")
        view = torch.arange(count).to(x.device) % len(views)
        spike = bound == "published"
        given = x, learned.sizes, view, inducing, spike, ard, move, generator, width, kernel
        hidden = HiddenLayer(*given)
        rest = likelihood, bound, output, min(inducing, len(y)), generator, output_ard
        return cls(learned, hidden, x, y, censored, *rest)

    @property
    def noise(self) -> Float[Tensor, ""]:
        """1/beta, of the standardized target; of classes, what is added to the probit's own 1."""
        if self.kind == "stochastic" and self._likelihood == "bernoulli":
            return torch.zeros_like(self.log_noise)
        return self.log_noise.exp() + LEAST_NOISE

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        self.initialize(log_noise=(torch.as_tensor(value).to(self.log_noise) - LEAST_NOISE).log())

    @property
    def likelihood(self) -> CensoredGaussianLikelihood | ProbitLikelihood:
        """GPyTorch's likelihood of targets, in their unit, or of classes 0 and 1, with `noise`."""
        if self._likelihood == "bernoulli":
            return ProbitLikelihood(self.noise)
        return CensoredGaussianLikelihood(self.noise * self.scale.square())

    @property
    def notes(self) -> list[str]:
        """What was said of matrices that needed more jitter."""
        return self.hidden_layer.notes + self.output.notes

    def _expected(self) -> Expected:
        return self.output.expected(*self.hidden_layer.moments(self.x))

    def weights(self) -> tuple[Float[Tensor, " m"], Float[Tensor, "m m"]]:
        """Mean and covariance of q(w), w = L^-1 u."""
        if self.root is not None and self.mean is not None:
            root = self.root.tril()
            return self.mean, root @ root.T
        mean, covariance = optimal(self._expected(), self.y, self.noise)
        return (mean if self.mean is None else self.mean), covariance

    def bound(self) -> Float[Tensor, ""]:
        """L_r or L_c of all rows, in nats of the targets as given.

        Of a model of the stochastic bound, an estimate of it with fixed random numbers.
        """
        if self.kind == "stochastic":
            return self.stochastic_bound(torch.Generator().manual_seed(0))
        e = self._expected()
        if self.mean is not None:
            value = class_bound(e, self.y, self.mean, self.noise)
        else:
            value = target_bound(e, self.y, self.noise) - len(self.y) * self.scale.log()
        return value - self.hidden_layer.divergence()

    def stochastic_bound(
        self, generator: torch.Generator, batch: int | None = None
    ) -> Float[Tensor, ""]:
        """An unbiased estimate of E_q[ln p(y|f)] - KL(q(u)||p(u)) - KL(q(a)||p(a)), in nats.

        Args:
            generator: A CPU generator that draws rows and hidden values.
            batch: Rows of the estimate, without replacement; None takes all.

        Raises:
            BadInput: The model was built for a closed bound.
        """
        if self.kind != "stochastic":
            raise BadInput(f"This model was built for the {self.kind} bound.")
        n = len(self.y)
        rows = None
        if batch is not None and batch < n:
            rows = torch.randperm(n, generator=generator)[:batch].to(self.y.device)
        x, y = (self.x, self.y) if rows is None else (self.x[:, rows], self.y[rows])
        late = self.censored if rows is None else self.censored[rows]
        mean, variance = self.hidden_layer.moments(x)
        drawn = torch.randn(mean.shape, generator=generator, dtype=mean.dtype).to(mean)
        phi, height = self.output.features(mean + variance.sqrt() * drawn)
        w, root = cast(Tensor, self.mean), cast(Tensor, self.root).tril()
        f = phi @ w
        spread = height - phi.square().sum(1) + (phi @ root).square().sum(1)
        args = y, late, f, spread.clamp(min=0), self.noise
        total = expected_likelihood(self._likelihood, *args).sum() * (n / len(y))
        if self._likelihood == "gaussian":
            total = total - (~self.censored).sum() * self.scale.log()
        return total - weight_divergence(w, root) - self.hidden_layer.divergence()

    def elbo(
        self, generator: torch.Generator | None = None, batch: int | None = None
    ) -> Float[Tensor, ""]:
        """`bound`, or a draw of the stochastic one, and registered priors.

        NaN where kernel matrices have no factor.
        """
        try:
            if self.kind == "stochastic" and generator is not None:
                bound = self.stochastic_bound(generator, batch)
            else:
                bound = self.bound()
            return bound + log_hyperprior(self)
        except (NanError, NotPSDError, torch.linalg.LinAlgError):
            return self.log_noise * torch.nan

    @torch.no_grad()
    def hidden(self, views: list[Tensor]) -> tuple[Float[Tensor, "n r"], Float[Tensor, "n r"]]:
        """Mean and variance of the hidden neurons at other rows."""
        return self.hidden_layer.moments(self.views(views))

    def forward(self, *views: Float[Tensor, "n _"]) -> MultivariateNormal:
        """Mean and variance of f at other rows, a tensor each view, in the unit of the target.

        q(f) is not Gaussian; what rows have in common is not in it. `likelihood(model(*views))` has
        the moments of `predict`.
        """
        mean, variance = self._moments(list(views))
        if self._likelihood == "gaussian":
            mean, variance = mean * self.scale + self.centre, variance * self.scale.square()
        return MultivariateNormal(mean, DiagLinearOperator(variance))

    @torch.no_grad()
    def latent(self, views: list[Tensor]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Mean and variance of f at other rows, on the standardized target's scale."""
        return self._moments(views)

    def _moments(self, views: list[Tensor]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        w, covariance = self.weights()
        seen = self.hidden_layer.moments(self.views(views))
        mean = self.output.first(*seen) @ w
        eye = torch.eye(len(w)).to(w)
        square = self.output.square(*seen, covariance + torch.outer(w, w) - eye)
        return mean, (square - mean.square()).clamp(min=0)

    def predict(self, views: list[Tensor]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Mean and variance of y, noise included, at other rows; of classes, those of 0 and 1."""
        if self._likelihood == "bernoulli":
            p = self.probability(views)
            return p, p * (1 - p)
        mean, variance = self.latent(views)
        noise = self.noise.detach()
        return mean * self.scale + self.centre, (variance + noise) * self.scale.square()

    def probability(self, views: list[Tensor]) -> Float[Tensor, " n"]:
        """Of class 1, with f taken as Gaussian with its mean and variance."""
        if self._likelihood != "bernoulli":
            raise BadInput("Only a model of two classes has probabilities of a class.")
        mean, variance = self.latent(views)
        return torch.special.ndtr(mean / (1 + self.noise.detach() + variance).sqrt())

    @torch.no_grad()
    def relevance(self) -> Float[Tensor, " r"]:
        """Of each neuron: its variance over the rows, in squared lengthscales of the output.

        With the linear kernel, the variance that it gives the output.
        """
        mean, _ = self.hidden_layer.moments(self.x)
        return mean.var(0) * self.output.precision

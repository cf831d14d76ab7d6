"""DFGP: the deep feed-forward GP, hidden sparse GPs into an output GP.

Kandemir and Hamprecht (2015). Hidden neurons b_r ~ GP(0, k_r(x, x')), an output f ~ GP(0, k(b, b'))
(eqs. 4-6) and a likelihood: Gaussian, or Bernoulli with a probit link for two classes. Each neuron
may use its own view of the inputs (multiple kernel learning). A linear output kernel gives DFGP-WP
(Theorem 1). The publication's kernels are fewer parameters than the defaults: `ard=False`,
`output_ard=False`, `output_scale=False`, `share_kernel=True`.

    generator = torch.Generator().manual_seed(seed)
    model = DFGP.build([view, other_view], y, "bernoulli", generator=generator)
    trainer = DFGPTrainer(model)                # scant.models.dfgp.training
    elbo = trainer.step()                         # repeat
    model.probability([new_view, other_new_view])

There are three bounds. Rows enter the expectations of section 4.1 one at a time, so a Gaussian
q(a_r) costs only one small matrix product:

- `"published"`: q(a_r) is a point mass without its entropy, as printed. It does not bound the
  evidence, since inducing outputs are optimized as parameters.
- `"closed"`: Gaussian q(a_r), a closed-form bound on the evidence.
- `"stochastic"`: hidden values are sampled (Salimbeni and Deisenroth 2017), for minibatches and
  censored targets.

The printed L_c of the appendix has t_n and indicators that the integral over y does not have; it is

    sum_n ln Phi(t_n F_n / sqrt(1 + 1/beta)) - beta/2 var(f_n)  - KL(q(u)||p(u)) - KL(q(a)||p(a))

with classes t_n in {-1, 1}, F_n = E[f_n] and moments under q. q(u) is optimal in closed form,
except E[u] for classes. The printed L_r lacks N/2 ln(2 pi) and -1/2 ln|K| of the hidden layer; the
latter cancels with a_r = L_r v_r. On a CPU, equal seeds give bitwise equal runs.
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
MIN_NOISE = 1e-6  # in variances of the target
START_NOISE = 0.5  # for a standardized target
START_CLASS_NOISE = 4.0  # smaller values start L_c near the optimum that ignores the inputs
SINGLE_VIEW_NEURONS = 3


class DFGP(GP):
    """Deep feed-forward GP for regression or two classes; construct it with `build`.

    Args:
        views: Standardization of the views' columns.
        hidden: The hidden layer.
        x: Standardized views of the training rows.
        y: Targets, or classes 0 and 1.
        censored: True for rows whose target is a lower bound.
        likelihood, bound: See the module docstring.
        output: Kernel of the output neuron.
        inducing: Number P of inducing inputs of the output neuron.
        generator: A CPU generator.
        output_ard, output_scale, output_metric: See `build`.
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
        output_scale: bool = True,
        output_metric: bool = False,
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
        self.output = (
            RBFOutput(mean, inducing, generator, output_ard, output_scale, output_metric)
            if output == "rbf"
            else LinearOutput(mean, output_ard)
        )
        noise = START_CLASS_NOISE if classes and bound != "stochastic" else START_NOISE
        self.log_noise = nn.Parameter(y.new_tensor(noise).log())
        self.register_constraint("log_noise", LogPositive())
        self.mean: nn.Parameter | None = None
        self.root: nn.Parameter | None = None
        if classes or bound == "stochastic":
            self._start()

    def _start(self) -> None:
        """Initialize E[w] and, for the stochastic bound, the factor of cov(w) by least squares."""
        with torch.no_grad():
            scale = (self.log_noise.exp() / START_NOISE).sqrt()
            noise = torch.full_like(scale, START_NOISE)
            mean, covariance = optimal(self._expected(), self.y * scale, noise)
        self.mean = nn.Parameter(mean)
        if self.kind == "stochastic":
            # Row-major like a restored checkpoint, so that sums agree to the last bit.
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
        output_scale: bool = True,
        output_metric: bool = False,
        share_kernel: bool = False,
        move: bool = False,
        width: float = START_WIDTH,
        censored: Bool[Tensor, " n"] | None = None,
        kernel: Kernel | None = None,
    ) -> DFGP:
        """Build a model whose neurons start as separate regressions on y, as published.

        Args:
            views: Rows `"n d"` of each view; widths may differ.
            y: Targets; classes as 0 and 1.
            likelihood: `"gaussian"`, or `"bernoulli"` for two classes.
            output: `"rbf"`, or `"linear"` for DFGP-WP.
            inducing: Number of inducing inputs of every neuron.
            generator: A CPU generator; by default one with seed 0.
            neurons: Number of hidden neurons, assigned to the views in turn. 0 uses one per view,
                or three for a single view.
            bound: See the module docstring.
            ard: True for a lengthscale per column.
            output_ard: True for a lengthscale per neuron in the RBF output kernel, or a weight per
                neuron in the linear one; False (Corollary 1, Theorem 1) keeps redundant neurons
                from being switched off.
            output_scale: True to learn the variance of the RBF output kernel; False for 1
                (Corollary 1).
            output_metric: True for an RBF output kernel with a full metric J over the neurons
                (section 4.1), which also learns combinations of neurons; `output_ard` is then
                ignored.
            share_kernel: True for one hidden kernel for all neurons of a view (eq. 4).
            move: True to learn the hidden neurons' inducing inputs; fixed as published, they make
                neurons differ.
            width: Initial lengthscales of hidden neurons (see `HiddenLayer`).
            censored: True for rows whose target is a lower bound, such as a survival time; needs
                the stochastic bound.
            kernel: Any GPyTorch kernel for the hidden neurons in place of EQ (see `HiddenLayer`).
                The output kernel must have closed-form expectations.

        Raises:
            BadInput: Views without columns or rows, values that are not finite, a constant target,
                a single class, a number below one, or censored rows with a closed bound.
        """
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        y = y.double()
        standardization = ViewStack(views)
        x = standardization(views)
        censored = torch.zeros_like(y, dtype=torch.bool) if censored is None else censored
        check(x.shape[1], y, likelihood)
        count = neurons or (len(views) if len(views) > 1 else SINGLE_VIEW_NEURONS)
        if min(count, inducing) < 1:
            raise BadInput(f"At least one neuron and inducing input, got {count} and {inducing}.")
        if bool(censored.any()) and (bound != "stochastic" or likelihood != "gaussian"):
            raise BadInput("Censored rows need a Gaussian likelihood and the stochastic bound.")
        view = torch.arange(count).to(x.device) % len(views)
        spike = bound == "published"
        hidden_arguments = (
            x,
            standardization.sizes,
            view,
            inducing,
            spike,
            ard,
            move,
            generator,
            width,
            kernel,
            share_kernel,
        )
        hidden = HiddenLayer(*hidden_arguments)
        arguments = likelihood, bound, output, min(inducing, len(y)), generator
        options = output_ard, output_scale, output_metric
        return cls(standardization, hidden, x, y, censored, *arguments, *options)

    @property
    def noise(self) -> Float[Tensor, ""]:
        """Noise variance 1/beta on the standardized target's scale, or added to the probit's 1."""
        if self.kind == "stochastic" and self._likelihood == "bernoulli":
            return torch.zeros_like(self.log_noise)
        return self.log_noise.exp() + MIN_NOISE

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        self.initialize(log_noise=(torch.as_tensor(value).to(self.log_noise) - MIN_NOISE).log())

    @property
    def likelihood(self) -> CensoredGaussianLikelihood | ProbitLikelihood:
        """Likelihood of targets in their unit, or of classes 0 and 1, with the current `noise`."""
        if self._likelihood == "bernoulli":
            return ProbitLikelihood(self.noise)
        return CensoredGaussianLikelihood(self.noise * self.scale.square())

    @property
    def notes(self) -> list[str]:
        """Warnings about matrices that needed additional jitter."""
        return self.hidden_layer.notes + self.output.notes

    def _expected(self) -> Expected:
        return self.output.expected(*self.hidden_layer.moments(self.x))

    def weights(self) -> tuple[Float[Tensor, " m"], Float[Tensor, "m m"]]:
        """Mean and covariance of q(w), where w = L^-1 u."""
        if self.root is not None and self.mean is not None:
            root = self.root.tril()
            return self.mean, root @ root.T
        mean, covariance = optimal(self._expected(), self.y, self.noise)
        return (mean if self.mean is None else self.mean), covariance

    def bound(self) -> Float[Tensor, ""]:
        """L_r or L_c of all rows in nats, with targets in their own unit.

        For the stochastic bound, an estimate with a fixed seed.
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
        """Unbiased estimate of E_q[ln p(y|f)] - KL(q(u)||p(u)) - KL(q(a)||p(a)), in nats.

        Args:
            generator: A CPU generator for the rows and the hidden values.
            batch: Number of rows of the minibatch; None uses all.

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
        censored = self.censored if rows is None else self.censored[rows]
        mean, variance = self.hidden_layer.moments(x)
        epsilon = torch.randn(mean.shape, generator=generator, dtype=mean.dtype).to(mean)
        phi, prior_variance = self.output.features(mean + variance.sqrt() * epsilon)
        w, root = cast(Tensor, self.mean), cast(Tensor, self.root).tril()
        f = phi @ w
        f_variance = prior_variance - phi.square().sum(1) + (phi @ root).square().sum(1)
        args = y, censored, f, f_variance.clamp(min=0), self.noise
        total = expected_likelihood(self._likelihood, *args).sum() * (n / len(y))
        if self._likelihood == "gaussian":
            total = total - (~self.censored).sum() * self.scale.log()
        return total - weight_divergence(w, root) - self.hidden_layer.divergence()

    def elbo(
        self, generator: torch.Generator | None = None, batch: int | None = None
    ) -> Float[Tensor, ""]:
        """`bound` (or a draw of the stochastic bound) plus the log density of registered priors.

        NaN if the factorization of a kernel matrix fails.
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
        """Mean and variance of the hidden neurons at new rows."""
        return self.hidden_layer.moments(self.views(views))

    def forward(self, *views: Float[Tensor, "n _"]) -> MultivariateNormal:
        """Mean and variance of f at new rows (one tensor per view), in the unit of the target.

        q(f) is not Gaussian, and covariances between rows are omitted. `likelihood(model(*views))`
        has the moments of `predict`.
        """
        mean, variance = self._moments(list(views))
        if self._likelihood == "gaussian":
            mean, variance = mean * self.scale + self.centre, variance * self.scale.square()
        return MultivariateNormal(mean, DiagLinearOperator(variance))

    @torch.no_grad()
    def latent(self, views: list[Tensor]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Mean and variance of f at new rows, on the standardized target's scale."""
        return self._moments(views)

    def _moments(self, views: list[Tensor]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        w, covariance = self.weights()
        hidden = self.hidden_layer.moments(self.views(views))
        mean = self.output.first(*hidden) @ w
        eye = torch.eye(len(w)).to(w)
        square = self.output.square(*hidden, covariance + torch.outer(w, w) - eye)
        return mean, (square - mean.square()).clamp(min=0)

    def predict(self, views: list[Tensor]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Mean and variance of y, with noise, at new rows; for classes those of the 0/1 label."""
        if self._likelihood == "bernoulli":
            p = self.probability(views)
            return p, p * (1 - p)
        mean, variance = self.latent(views)
        noise = self.noise.detach()
        return mean * self.scale + self.centre, (variance + noise) * self.scale.square()

    def probability(self, views: list[Tensor]) -> Float[Tensor, " n"]:
        """Probability of class 1, with q(f) approximated by a Gaussian."""
        if self._likelihood != "bernoulli":
            raise BadInput("Only a model of two classes has probabilities of a class.")
        mean, variance = self.latent(views)
        return torch.special.ndtr(mean / (1 + self.noise.detach() + variance).sqrt())

    @torch.no_grad()
    def relevance(self) -> Float[Tensor, " r"]:
        """Variance of each neuron over the rows, in squared lengthscales of the output kernel.

        With the linear kernel, its contribution to the variance of the output.
        """
        mean, _ = self.hidden_layer.moments(self.x)
        return mean.var(0) * self.output.precision

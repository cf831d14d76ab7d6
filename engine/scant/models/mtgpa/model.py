"""MTGPA: multi-task Gaussian processes for data aggregated over supports of every size.

Yousefi (2021), chapter 5 and appendix C; Yousefi et al. (2019). Task d observes, through a
likelihood of its own, functions averaged over its supports (boxes, points, weighted sets):

    y_d(v) ~ p_d(y | f_d(v)),    f_d a linear mixture of latent functions (`prior`),

with inducing variables of the latent functions, so that all tasks have one sparse posterior
(5.10-5.11); q(u) is a product over latent functions. With Gaussian likelihoods and few rows,
`exact` computes the exact posterior.

How a study drives it:

    generator = torch.Generator().manual_seed(seed)
    model = MTGPA.build(data, ["gaussian", "poisson"], dimensions=2, generator=generator)
    trainer = MTGPATrainer(model, data, generator)    # scant.models.mtgpa.training
    elbo = trainer.step()                            # as often as wanted
    model.predict(supports, task=0)                  # at any time; draws nothing
    model.state_dict(); trainer.state_dict()         # with both loaded, a run resumes bit by bit

On a CPU the same seed gives the same run, bit by bit. y of Gaussian tasks is expected standardized
roughly (start values and the least noise assume a scale near one); inputs may have any unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int
from linear_operator import to_linear_operator
from linear_operator.operators import KroneckerProductLinearOperator
from torch import Tensor, nn

from scant.models.hyperprior import log_hyperprior
from scant.models.mtgpa.coefficients import Coefficients
from scant.models.mtgpa.initialization import check, inducing_points, spacing
from scant.models.mtgpa.likelihoods import Moments, likelihood
from scant.models.mtgpa.prior import Coregionalisation, Data, mass
from scant.models.mtgpa.rates import log_rate, points, points_each
from scant.models.mtgpa.tasks import TaskGP
from scant.models.mtgpa.variational import Latent


class MTGPA(TaskGP):
    """Sparse variational multi-task GP over supports; see the module for how it is driven.

    Args:
        likelihoods: Of each task, by names of `LIKELIHOODS`.
        inducing: Supports (mostly points) of the inducing variables of every latent function.
        dimensions: d of the space that the supports lie in.
        ranks: R_q for each of the Q kernels.
        shape: Of the kernels, as in `IntervalKernel`.
        learn_inducing: Learn where the inducing points lie; the publication fixes them.
        natural: Hold q(u) in natural parameters, for natural gradients.
        kernels: Q kernels in place of these, as in `Coregionalisation`.
        summed: The rate of counts is the sum over a support's points of weights times exp(f), not
            exp of the average of f as in the publication (see `rates`).
        covariates: How many columns behind those of a support enter linearly (see `Prior`).

    Raises:
        BadInput: No task, or an unknown likelihood or kernel.
    """

    prior: Coregionalisation
    latents: Sequence[Latent]

    def __init__(
        self,
        likelihoods: Sequence[str],
        inducing: Float[Tensor, "m c"],
        dimensions: int,
        ranks: Sequence[int] = (1,),
        shape: str = "eq",
        learn_inducing: bool = False,
        natural: bool = False,
        kernels: Sequence[Kernel] | None = None,
        summed: bool = False,
        covariates: int = 0,
        alike: int = 1,
    ) -> None:
        own = [likelihood(name) for name in likelihoods]
        functions = sum(lik.functions for lik in own)
        super().__init__(
            own, Coregionalisation(dimensions, functions, ranks, shape, kernels, covariates, alike)
        )
        self.coefficients = Coefficients(functions, covariates) if covariates else None
        self.latents = nn.ModuleList(  # type: ignore[assignment]
            Latent(kernel, inducing, rank, natural, learn_inducing)
            for kernel, rank in zip(self.prior.kernels, ranks)
        )
        self.natural, self.summed = natural, summed
        self.to(inducing.dtype)

    @classmethod
    def build(
        cls,
        data: Data,
        likelihoods: Sequence[str],
        dimensions: int,
        generator: torch.Generator,
        inducing: int | Float[Tensor, "m c"] = 100,
        place: str = "kmeans",
        ranks: Sequence[int] = (1,),
        shape: str = "eq",
        lengthscale: float | Sequence[float] | None = None,
        fixed_lengthscale: bool = False,
        noise: float = 0.1,
        offsets: bool = True,
        learn_inducing: bool = False,
        natural: bool = False,
        kernels: Sequence[Kernel] | None = None,
        summed: bool = False,
        covariates: int = 0,
        alike: int = 1,
    ) -> MTGPA:
        """A model with start values from the data.

        Args:
            data: All observations; task numbers count from 0.
            generator: A CPU generator; the same seed gives the same start, bit by bit.
            inducing: How many inducing points, or the points (or supports) themselves.
            place: `"kmeans"` over the centres of the supports, or `"even"` spacing.
            lengthscale: To start from, in the units of the inputs, one or one a dimension; by
                default twice the spacing of the inducing points.
            fixed_lengthscale: Keep it.
            noise: Variance of a Gaussian task's noise to start from, as a share of that of its y.
                Where observations are nearly exact, a low start finds shorter lengthscales.
            offsets: Give each function a constant of its own, learned. Without, the functions have
                zero mean, as in the publication.

        All else as for the class.

        Raises:
            BadInput: A task without data, a value that its likelihood excludes, one that is not
                finite, or an argument that is unknown.
        """
        check(data, len(likelihoods))
        if isinstance(inducing, int):
            places = data.supports[:, : data.supports.shape[1] - covariates]
            inducing = inducing_points(places, dimensions, inducing, place, generator)
        model = cls(
            likelihoods,
            inducing,
            dimensions,
            ranks,
            shape,
            learn_inducing,
            natural,
            kernels,
            summed,
            covariates,
            alike,
        )
        model.to(data.supports.device)
        if lengthscale is None:
            start = 2 * spacing(inducing, dimensions)
        else:
            start = torch.as_tensor(lengthscale).to(inducing).expand(dimensions)
        model.start(data, start, noise, generator, offsets)
        model.prior.learn_lengthscales(not fixed_lengthscale)
        return model

    def variational_parameters(self) -> list[nn.Parameter]:
        """Those of q(u)."""
        return [p for latent in self.latents for p in latent.variational_parameters()]

    def hyperparameters(self) -> list[nn.Parameter]:
        """All others that are learned, those of coefficients among them."""
        own = {id(p) for p in self.variational_parameters()}
        return [p for p in self.parameters() if p.requires_grad and id(p) not in own]

    def kl_divergence(self) -> Float[Tensor, ""]:
        """KL(q(u) || p(u)) over all latent functions, and that of coefficients, in nats."""
        total = torch.cat([latent.kl_divergence() for latent in self.latents]).sum()
        return (
            total if self.coefficients is None else total + self.coefficients.kl_divergence().sum()
        )

    def latent_moments(
        self, supports: Float[Tensor, "n c"]
    ) -> tuple[Float[Tensor, "l n"], Float[Tensor, "l n"]]:
        """Means and variances of all latent functions, averaged over the supports."""
        places, _ = self.prior.split(supports)
        moments = [latent.moments(places) for latent in self.latents]
        return torch.cat([m for m, _ in moments]), torch.cat([v for _, v in moments])

    def forward(self, supports: Float[Tensor, "n c"], task: int = 0) -> MultivariateNormal:
        """q of a task's functions at supports, with covariances between these, lazily.

        Averages over them, of counts too; `moments` is of log rates where these are sums.

        A `MultitaskMultivariateNormal` where the task has two functions, a mean and a log variance.
        """
        own = self.functions[task]
        mean = self._mix(supports, *self.latent_moments(supports), task).mean
        supports, z = self.prior.split(supports)
        terms, first = [], 0
        for latent in self.latents:
            rows = self.prior.mixing[first : first + latent.rank, own]
            first += latent.rank
            K = latent(supports).lazy_covariance_matrix  # of all its functions
            for r, a in enumerate(rows):
                each = K[r] if K.dim() > 2 else K
                if len(own) == 1:
                    terms.append(each * a.square())
                else:
                    B = to_linear_operator(torch.outer(a, a))
                    terms.append(KroneckerProductLinearOperator(each, B))
        if self.coefficients is not None and z is not None:
            for place, C in enumerate(self.coefficients.covariances()[own]):
                each = to_linear_operator(z @ C @ z.T)
                only = torch.zeros(len(own), len(own)).to(z)
                only[place, place] = 1
                alone = len(own) == 1
                terms.append(
                    each
                    if alone
                    else KroneckerProductLinearOperator(each, to_linear_operator(only))
                )
        total = sum(terms[1:], start=terms[0])
        if len(own) == 1:
            return MultivariateNormal(mean[0], total)
        return MultitaskMultivariateNormal(mean.T, total)

    def moments(self, supports: Float[Tensor, "n c"], task: int) -> Moments:
        """q of a task's functions at supports (5.11); of log rates where these are sums."""
        if self._sums(task, supports):
            return self._log_rate(supports, task)
        return self._mix(supports, *self.latent_moments(supports), task)

    def _sums(self, task: int, supports: Tensor) -> bool:
        """Whether the rates of a task at these supports are sums: at points nothing is summed."""
        if not (self.summed and self.likelihoods[task].counts):
            return False
        return points_each(self.prior.split(supports)[0], self.prior.dimensions) > 1

    def _log_rate(self, supports: Tensor, task: int) -> Moments:
        (own,) = self.functions[task]
        at = points(self.prior.split(supports)[0], self.prior.dimensions)
        means, blocks = zip(*(latent.blocks(at.lower) for latent in self.latents))
        a = self.prior.mixing[:, own]
        mean = torch.tensordot(a, torch.cat(means), 1) + self.prior.offset[own]
        covariance = torch.tensordot(a.square(), torch.cat(blocks), 1)
        weight = mean.new_ones(mean.shape) if at.weight is None else at.weight
        return self._with_linear(supports, log_rate(weight, mean, covariance), slice(own, own + 1))

    def _mix(self, supports: Tensor, mean: Tensor, variance: Tensor, task: int) -> Moments:
        own = slice(self.functions[task][0], self.functions[task][-1] + 1)
        a = self.prior.mixing[:, own]
        places, _ = self.prior.split(supports)
        offset = torch.outer(self.prior.offset[own], mass(places, self.prior.dimensions))
        # (5.11), mixed by 5.9
        pairs = (a.unsqueeze(2) * a.unsqueeze(1)).flatten(1)
        q = Moments(a.T @ mean + offset, (pairs.T @ variance).unflatten(0, (a.shape[1], -1)))
        return self._with_linear(supports, q, own)

    def _with_linear(self, supports: Tensor, q: Moments, own: slice) -> Moments:
        """The linear means added; over a support they are constant, so to log rates as well."""
        _, z = self.prior.split(supports)
        if self.coefficients is None or z is None:
            return q
        mean, variance = (m[own] for m in self.coefficients.moments(z))
        return Moments(q.mean + mean, q.covariance + torch.diag_embed(variance.T).permute(1, 2, 0))

    def expected_log_likelihood(self, data: Data) -> Float[Tensor, " n"]:
        """E_q[ln p(y | f)] of each row, in nats."""
        total = torch.zeros_like(data.y)
        for rows, values in self._expected(data):
            total = total.index_copy(0, rows, values)
        return total

    def _expected(self, data: Data) -> Iterator[tuple[Int[Tensor, " t"], Float[Tensor, " t"]]]:
        """Rows of each task that has some, and `expected_log_likelihood` of these."""
        tasks = range(len(self.likelihoods))
        together = not any(self._sums(d, data.supports) for d in tasks)
        if together:
            mean, variance = self.latent_moments(data.supports)
        for d, lik in enumerate(self.likelihoods):
            rows = (data.task == d).nonzero().squeeze(1)
            if len(rows):
                own = data.at(rows)
                if together:
                    seen = mean.index_select(1, rows), variance.index_select(1, rows)
                    q = self._mix(own.supports, *seen, d)
                else:
                    q = self.moments(own.supports, d)
                yield rows, lik.expected_log_prob(own.y, q, own.exposures(), own.known)

    def elbo(self, data: Data, weight: Float[Tensor, " n"] | None = None) -> Float[Tensor, ""]:
        """The bound 5.10 and registered priors, in nats, summed over the rows, not divided by them.

        Where rates of counts are sums it is close to a bound, but none in all rigor (`rates`).

        Args:
            data: All rows, or a minibatch.
            weight: Of each row: how many rows it stands for (ones by default).
        """
        with self._held():
            parts, kl = list(self._expected(data)), self.kl_divergence()
        sums = [(v if weight is None else weight[rows] * v).sum() for rows, v in parts]
        return sum(sums, start=log_hyperprior(self) - kl)  # (5.10)

    def _points_each(self, supports: Tensor) -> int:
        if self.summed and any(lik.counts for lik in self.likelihoods):
            return points_each(self.prior.split(supports)[0], self.prior.dimensions)
        return super()._points_each(supports)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Inside, every K_uu is factorized once; parameters stay as they are."""
        with ExitStack() as stack:
            for latent in self.latents:
                stack.enter_context(latent.held())
            yield

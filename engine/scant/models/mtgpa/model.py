"""MTGPA: multi-task Gaussian processes for data aggregated over supports of every size.

Yousefi (2021), chapter 5 and appendix C; Yousefi et al. (2019). Task d has its own likelihood of
functions averaged over its supports (boxes, points, weighted sets):

    y_d(v) ~ p_d(y | f_d(v)),    f_d a linear mixture of latent functions (`prior`),

with inducing variables of the latent functions, shared by all tasks (5.10-5.11); q(u) factorizes
over latent functions. With Gaussian likelihoods and few rows, `exact` computes the exact posterior.

    generator = torch.Generator().manual_seed(seed)
    model = MTGPA.build(data, ["gaussian", "poisson"], dimensions=2, generator=generator)
    trainer = MTGPATrainer(model, data, generator)    # scant.models.mtgpa.training
    elbo = trainer.step()                            # repeat
    model.predict(supports, task=0)                  # at any time, without random numbers
    model.state_dict(); trainer.state_dict()         # load both for a bitwise resume

On a CPU, equal seeds give bitwise equal runs. y of Gaussian tasks should be roughly standardized
(initial values and the minimum noise assume a scale near one); inputs may have any unit.
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
from scant.models.mtgpa.likelihoods import (
    CATEGORICAL,
    Categorical,
    Likelihood,
    Moments,
    likelihood,
)
from scant.models.mtgpa.prior import Coregionalization, Data, mass
from scant.models.mtgpa.rates import log_rate, points, points_each
from scant.models.mtgpa.tasks import TaskGP
from scant.models.mtgpa.variational import Latent


class MTGPA(TaskGP):
    """Sparse variational multi-task GP over supports; construct it with `build`.

    Args:
        likelihoods: Each task's likelihood, or its name in `LIKELIHOODS`.
        inducing: Supports (usually points) of the inducing variables of every latent function.
        dimensions: Dimension d of the input space.
        ranks: R_q for each of the Q kernels.
        shape: Kernel, as in `IntervalKernel`.
        learn_inducing: True to learn the inducing points; the publication fixes them.
        natural: True to store q(u) in natural parameters, for natural gradients.
        kernels: Q kernels, as in `Coregionalization`; replaces `shape`.
        summed: True if the rate of counts sums weights times exp(f) over a support's points;
            False for exp of the average of f, as in the publication (see `rates`).
        covariates: Number of columns after those of a support that enter linearly (see `Prior`).
        n_isotropic: Number of leading dimensions that share a lengthscale.

    Raises:
        BadInput: There is no task, or a likelihood or kernel is unknown.
    """

    prior: Coregionalization
    latents: Sequence[Latent]

    def __init__(
        self,
        likelihoods: Sequence[str | Likelihood],
        inducing: Float[Tensor, "m c"],
        dimensions: int,
        ranks: Sequence[int] = (1,),
        shape: str = "eq",
        learn_inducing: bool = False,
        natural: bool = False,
        kernels: Sequence[Kernel] | None = None,
        summed: bool = False,
        covariates: int = 0,
        n_isotropic: int = 1,
    ) -> None:
        built = [likelihood(name) for name in likelihoods]
        functions = sum(lik.functions for lik in built)
        super().__init__(
            built,
            Coregionalization(
                dimensions, functions, ranks, shape, kernels, covariates, n_isotropic
            ),
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
        likelihoods: Sequence[str | Likelihood],
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
        n_isotropic: int = 1,
    ) -> MTGPA:
        """Build a model initialized from the data.

        The other arguments are those of the class.

        Args:
            data: All observations; tasks are numbered from 0.
            likelihoods: As of the class, or `"categorical"`, with the classes from 0 to the largest
                value of the task.
            generator: A CPU generator; equal seeds give bitwise equal results.
            inducing: Number of inducing points, or the points (or supports) themselves.
            place: `"kmeans"` over the supports' centroids, `"even"` or `"inside"`.
            lengthscale: Initial lengthscale in the units of the inputs, one or one per dimension;
                by default twice the spacing of the inducing points.
            fixed_lengthscale: True to keep the initial lengthscale.
            noise: Initial noise variance of Gaussian tasks, as a share of the variance of y. For
                nearly exact observations a small value finds shorter lengthscales.
            offsets: True for a learned constant per function; False for zero means, as in the
                publication.

        Raises:
            BadInput: A task has no data, a value is not finite or not possible under its
                likelihood, or an argument is unknown.
        """
        check(data, len(likelihoods))
        if isinstance(inducing, int):
            boxes = data.supports[:, : data.supports.shape[1] - covariates]
            inducing = inducing_points(boxes, dimensions, inducing, place, generator)
        built = [
            Categorical.from_values(data.of_task(d).y, d) if name == CATEGORICAL else name
            for d, name in enumerate(likelihoods)
        ]
        model = cls(
            built,
            inducing,
            dimensions,
            ranks,
            shape,
            learn_inducing,
            natural,
            kernels,
            summed,
            covariates,
            n_isotropic,
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
        """Parameters of q(u)."""
        return [p for latent in self.latents for p in latent.variational_parameters()]

    def hyperparameters(self) -> list[nn.Parameter]:
        """All other learned parameters, including those of the coefficients."""
        own = {id(p) for p in self.variational_parameters()}
        return [p for p in self.parameters() if p.requires_grad and id(p) not in own]

    def kl_divergence(self) -> Float[Tensor, ""]:
        """KL(q(u) || p(u)) of all latent functions plus that of the coefficients, in nats."""
        total = torch.cat([latent.kl_divergence() for latent in self.latents]).sum()
        return (
            total if self.coefficients is None else total + self.coefficients.kl_divergence().sum()
        )

    def latent_moments(
        self, supports: Float[Tensor, "n c"]
    ) -> tuple[Float[Tensor, "l n"], Float[Tensor, "l n"]]:
        """Means and variances of all latent functions averaged over the supports."""
        boxes, _ = self.prior.split(supports)
        moments = [latent.moments(boxes) for latent in self.latents]
        return torch.cat([m for m, _ in moments]), torch.cat([v for _, v in moments])

    def forward(self, supports: Float[Tensor, "n c"], task: int = 0) -> MultivariateNormal:
        """Posterior q of a task's functions averaged over supports, with lazy covariances.

        Counts have averages of f, too; `moments` gives log rates if these are sums. A task with
        several functions gives a `MultitaskMultivariateNormal`.
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
                term = K[r] if K.dim() > 2 else K
                if len(own) == 1:
                    terms.append(term * a.square())
                else:
                    B = to_linear_operator(torch.outer(a, a))
                    terms.append(KroneckerProductLinearOperator(term, B))
        if self.coefficients is not None and z is not None:
            for position, C in enumerate(self.coefficients.covariances()[own]):
                term = to_linear_operator(z @ C @ z.T)
                selector = torch.zeros(len(own), len(own)).to(z)
                selector[position, position] = 1
                single = len(own) == 1
                terms.append(
                    term
                    if single
                    else KroneckerProductLinearOperator(term, to_linear_operator(selector))
                )
        total = sum(terms[1:], start=terms[0])
        if len(own) == 1:
            return MultivariateNormal(mean[0], total)
        return MultitaskMultivariateNormal(mean.T, total)

    def moments(self, supports: Float[Tensor, "n c"], task: int) -> Moments:
        """Posterior of a task's functions at supports (5.11), or of log rates if these are sums."""
        if self._sums(task, supports):
            return self._log_rate(supports, task)
        return self._mix(supports, *self.latent_moments(supports), task)

    def _sums(self, task: int, supports: Tensor) -> bool:
        """Return True if the task's rates at these supports are sums over several points."""
        if not (self.summed and self.likelihoods[task].counts):
            return False
        return points_each(self.prior.split(supports)[0], self.prior.dimensions) > 1

    def _log_rate(self, supports: Tensor, task: int) -> Moments:
        (own,) = self.functions[task]
        boxes = points(self.prior.split(supports)[0], self.prior.dimensions)
        means, blocks = zip(*(latent.blocks(boxes.lower) for latent in self.latents))
        a = self.prior.mixing[:, own]
        mean = torch.tensordot(a, torch.cat(means), 1) + self.prior.offset[own]
        covariance = torch.tensordot(a.square(), torch.cat(blocks), 1)
        weight = mean.new_ones(mean.shape) if boxes.weight is None else boxes.weight
        return self._with_linear(supports, log_rate(weight, mean, covariance), slice(own, own + 1))

    def _mix(self, supports: Tensor, mean: Tensor, variance: Tensor, task: int) -> Moments:
        own = slice(self.functions[task][0], self.functions[task][-1] + 1)
        a = self.prior.mixing[:, own]
        boxes, _ = self.prior.split(supports)
        offset = torch.outer(self.prior.offset[own], mass(boxes, self.prior.dimensions))
        # (5.11), mixed by 5.9
        pairs = (a.unsqueeze(2) * a.unsqueeze(1)).flatten(1)
        q = Moments(a.T @ mean + offset, (pairs.T @ variance).unflatten(0, (a.shape[1], -1)))
        return self._with_linear(supports, q, own)

    def _with_linear(self, supports: Tensor, q: Moments, own: slice) -> Moments:
        """Add the linear means, which are constant over a support (also for log rates)."""
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
        """Row indices and `expected_log_likelihood` for each task with rows."""
        tasks = range(len(self.likelihoods))
        together = not any(self._sums(d, data.supports) for d in tasks)
        if together:
            mean, variance = self.latent_moments(data.supports)
        for d, lik in enumerate(self.likelihoods):
            rows = (data.task == d).nonzero().squeeze(1)
            if len(rows):
                own = data.at(rows)
                if together:
                    latent = mean.index_select(1, rows), variance.index_select(1, rows)
                    q = self._mix(own.supports, *latent, d)
                else:
                    q = self.moments(own.supports, d)
                yield rows, lik.expected_log_prob(own.y, q, own.exposures(), own.known)

    def elbo(self, data: Data, weight: Float[Tensor, " n"] | None = None) -> Float[Tensor, ""]:
        """Bound 5.10 plus registered log priors, in nats, summed over the rows.

        If rates of counts are sums it is only approximately a bound (see `rates`).

        Args:
            data: All rows, or a minibatch.
            weight: Weight of each row of a minibatch; ones by default.
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
        """Context in which every K_uu is factorized once; parameters must not change."""
        with ExitStack() as stack:
            for latent in self.latents:
                stack.enter_context(latent.held())
            yield

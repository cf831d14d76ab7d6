"""HMOGP-LV: hierarchical multi-output GPs with latent variables, for outputs seen in replicas.

Ma (2023), chapter 5 and appendix C, on Dai, Alvarez and Lawrence (2017). Replica r of output d is

    y_d^r(x) = f_d^r(x) + noise,   cov(f_d^r(x), f_d'^r'(x')) = k_H(h_d, h_d') k_X((x, r), (x', r'))

with k_X the hierarchical kernel of a shared curve g and of each replica about it (5.12-5.14), k_H
over latent positions h_d of the outputs (`hmogp_lv_latent`), and inducing variables U on a grid of
M_H inducing outputs and M_X inducing inputs. Replicas of the same sampling (`replica_data`) are the
same r. The bound is `hmogp_lv_bound`, q(U) `hmogp_lv_posterior`. Departures: k_H has unit height
(k_X has a variance), and where M_X M_H is small q(U) is the best Gaussian of all.

How a study drives it:

    generator = torch.Generator().manual_seed(seed)
    model = HMOGPLV.build(data, generator=generator)     # x and y of `data` standardized
    trainer = HMOGPLVTrainer(model, data, generator)     # hmogp_lv.training
    elbo = trainer.step()                                # as often as wanted
    model.predict(output, replica, x)                    # replica -1: one that was never seen
    model.condition(other)                               # q(U) anew, without training

Or as GPyTorch has it, of rows (output, replica, x): `model.likelihood(model(rows), rows)`.

On a CPU the same seed gives the same run, bit by bit.
"""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.models import GP
from jaxtyping import Float, Int
from linear_operator.operators import DiagLinearOperator
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.kmeans import kmeans_centres
from scant.kernels.constraints import LogPositive
from scant.kernels.hierarchical import ReplicaKernel
from scant.likelihoods.gaussian import given_noise
from scant.models.hyperprior import log_hyperprior
from scant.models.replicated.data import LEAST_NOISE, NEW, Data, ReplicatedPrediction
from scant.models.replicated.hmogp_lv.bound import Statistics, collapsed, expected_log_likelihood
from scant.models.replicated.hmogp_lv.initialization import (
    inducing_inputs,
    latent_positions,
    start_level,
)
from scant.models.replicated.hmogp_lv.latent import JITTER, LatentOutputs
from scant.models.replicated.hmogp_lv.layout import ReplicaBatch
from scant.models.replicated.hmogp_lv.posterior import Dense, Kronecker

DENSE = 1000  # M_X M_H up to which the best q(U) of all is had in closed form
CHUNK = 4096  # rows predicted at once


class HMOGPLV(GP):
    """See the module for the model and for how it is driven.

    Args:
        samplings: Of each replica of each output, as in `Data`.
        latent: Means of q(H) to start from.
        inducing_outputs: Z_H.
        inducing_inputs: Z_X, rows (x, sampling).
        kernel: k_X, hierarchical; a single level makes it blind to replicas (`lvmogp`).
        noise: Variance to start from.
        noise_each: A noise for each output (5.31-5.38), or one for all (5.20-5.28).
        dense: Take q(U) to be the best Gaussian of all, in closed form, where M_X M_H is small;
            else its covariance is a Kronecker product, as published.
    """

    samplings: Tensor
    inducing_sampling: Tensor

    def __init__(
        self,
        samplings: Int[Tensor, "d r"],
        latent: Float[Tensor, "d q"],
        inducing_outputs: Float[Tensor, "h q"],
        inducing_inputs: Float[Tensor, "m 2"],
        kernel: ReplicaKernel,
        noise: float = 0.1,
        noise_each: bool = False,
        dense: bool = True,
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.latents = LatentOutputs(latent, inducing_outputs)
        self.register_buffer("samplings", samplings)
        self.register_buffer("inducing_sampling", inducing_inputs[:, 1].clone())
        self.inducing_x = nn.Parameter(inducing_inputs[:, 0].clone())
        start = torch.full((len(latent) if noise_each else 1,), noise - LEAST_NOISE).to(latent)
        self.log_noise = nn.Parameter(start.log())
        self.register_constraint("log_noise", LogPositive())
        family = Dense if dense else Kronecker
        self.posterior: Any = family(len(inducing_outputs), len(inducing_inputs))
        self.layout: ReplicaBatch | None = None  # of the data built on
        self.notes: list[str] = []
        self.double()

    @classmethod
    def build(
        cls,
        data: Data,
        generator: torch.Generator,
        n_latent_dims: int = 2,
        n_inducing_outputs: int = 4,
        n_inducing_inputs: int = 36,
        kernel_shared: str | Kernel = "matern32",
        kernel_replica: str | Kernel = "matern32",
        noise: str = "shared",
        dense: bool | None = None,
    ) -> HMOGPLV:
        """A model with start values from the data, x and y of each output standardized.

        Args:
            data: What is to be learned from; outputs may lack rows.
            generator: A CPU generator; the same seed gives the same start, bit by bit.
            n_latent_dims: Q_H.
            n_inducing_outputs: M_H; with too few for how outputs differ, bands are too narrow.
            n_inducing_inputs: M_X, no more than distinct inputs; with one or two for each sampling
                the replicas' own curves are lost, and g alone is left.
            kernel_shared: Of g: one of `scant.kernels.hierarchical.SHAPES`, or any of GPyTorch's.
            kernel_replica: Of the replicas about it, likewise.
            noise: "shared" by all outputs, or of "each output".
            dense: See the class; by default where M_X M_H is at most `DENSE`.

        Raises:
            BadInput: An argument that is unknown or below one.
        """
        counts = {"latent dimension": n_latent_dims, "inducing output": n_inducing_outputs}
        for name, count in counts.items():
            if count < 1:
                raise BadInput(f"There must be at least one {name}, got {count}.")
        if noise not in ("shared", "each output"):
            raise BadInput(f"Noise {noise!r} is unknown; use 'shared' or 'each output'.")
        layout = ReplicaBatch.of(cls.seen(data))
        latent = latent_positions(layout, n_latent_dims, generator)
        places = inducing_inputs(layout.inputs, n_inducing_inputs)
        if dense is None:
            dense = len(places) * n_inducing_outputs <= DENSE
        model = cls(
            data.samplings,
            latent,
            kmeans_centres(latent, n_inducing_outputs, generator),
            places,
            cls.start_kernel(kernel_shared, kernel_replica),
            noise_each=noise == "each output",
            dense=dense,
        ).to(data.x.device)
        model.layout = layout
        without = set(layout.inputs[:, 1].tolist()) - set(places[:, 1].tolist())
        if without:
            model.notes.append(
                f"{len(without)} samplings have no inducing input, so that the model knows them"
                f" from the shared curve alone; {len(places) + len(without)} would do."
            )
        model.condition()
        return model

    @staticmethod
    def start_kernel(shared: str | Kernel, replica: str | Kernel) -> ReplicaKernel:
        """k_X at its start values."""
        return ReplicaKernel(start_level(shared, 0.7), start_level(replica, 0.3))

    @staticmethod
    def seen(data: Data) -> Data:
        """The rows as the model sees them."""
        return data

    @property
    def noise(self) -> Float[Tensor, " d"]:
        """Variance of each output's observations."""
        return (self.log_noise.exp() + LEAST_NOISE).expand(len(self.samplings))

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        above = torch.as_tensor(value).to(self.log_noise) - LEAST_NOISE
        self.initialize(log_noise=above.log().expand_as(self.log_noise))

    @property
    def likelihood(self) -> GaussianLikelihood:
        """GPyTorch's, with the noise of the output that a row says: `likelihood(f, rows)`."""
        return given_noise(self.noise, column=0)

    def inducing_inputs(self) -> Float[Tensor, "m 2"]:
        return torch.stack([self.inducing_x, self.inducing_sampling], dim=1)

    def covariance(
        self, a: Float[Tensor, "n 2"], b: Float[Tensor, "m 2"], levels: int = 2
    ) -> Float[Tensor, "n m"]:
        """k_X of rows (x, sampling), or its first level alone: that of g."""
        kernel, columns = self._of_levels(levels)
        return kernel(a[:, :columns], b[:, :columns]).to_dense()

    def variance(self, a: Float[Tensor, "n 2"], levels: int = 2) -> Float[Tensor, " n"]:
        """k_X of each row with itself, or its first level alone."""
        kernel, columns = self._of_levels(levels)
        return kernel(a[:, :columns], diag=True)

    def _of_levels(self, levels: int) -> tuple[Any, int]:
        """The kernel of that many levels, and of how many columns of (x, sampling) it is."""
        known = len(self.kernel.levels)
        return (self.kernel, known) if levels >= known else (self.kernel.levels[0], 1)

    def seen_through(self, inputs: Float[Tensor, "n 2"], levels: int = 2) -> Float[Tensor, "n m"]:
        """a(x) = L_X^-1 k_X(Z, x) of each row; with one level, of g there."""
        Z = self.inducing_inputs()
        K = self.covariance(torch.cat([Z, inputs]), Z)
        K, cross = K[: len(Z)], K[len(Z) :]
        if levels < 2:
            cross = self.covariance(inputs, Z, levels)
        K = K + JITTER * self.variance(Z).mean() * torch.eye(len(Z)).to(K)
        return torch.linalg.solve_triangular(psd_safe_cholesky(K), cross.T, upper=False).T

    def statistics(self, layout: ReplicaBatch, weight: float = 1.0) -> Statistics:
        """What the bound needs of outputs.

        Args:
            weight: How many outputs each stands for.
        """
        psi, P = self.latents.statistics(layout.outputs)
        k = self.variance(layout.inputs)
        a = self.seen_through(layout.inputs)
        if layout.same:
            a = a[layout.where[0]]
            A, b = (a.T @ a).unsqueeze(0), layout.y @ a  # Phi^X of 5.24, whitened
        else:
            a = a[layout.where] * layout.real.unsqueeze(2)
            A, b = a.mT @ a, (layout.y.unsqueeze(1) @ a).squeeze(1)
        yy = layout.y.square().sum(1)
        k = (k[layout.where] * layout.real).sum(1)
        noise = self.noise[layout.outputs]
        return Statistics(psi, P, A, b, yy, k, layout.counts, noise, weight)

    def bound(self, s: Statistics, layout: ReplicaBatch) -> Float[Tensor, ""]:
        """The bound 5.20 (5.31) at the present q(U), from the statistics of these outputs; it and
        `best_bound` have registered priors besides.
        """
        F = expected_log_likelihood(s, self.posterior.weights(s.psi, s.P))
        latent = s.weight * self.latents.divergence(layout.outputs)
        return F - self.posterior.kl_divergence() - latent + log_hyperprior(self)  # (5.20), (5.31)

    def best_bound(self, s: Statistics, layout: ReplicaBatch) -> Float[Tensor, ""]:
        """The bound at the best q(U) for the statistics of all outputs."""
        return collapsed(s) - self.latents.divergence(layout.outputs) + log_hyperprior(self)

    def elbo(self, data: Data | None = None) -> Float[Tensor, ""]:
        """The bound on ln p(y) of all rows, in nats; by default those built on."""
        layout = self._layout(data)
        return self.bound(self.statistics(layout), layout)

    @torch.no_grad()
    def condition(self, data: Data | None = None) -> None:
        """Take the best q(U) for these rows, all else as it is; by default those built on."""
        self.posterior.condition(self.statistics(self._layout(data)))

    def _layout(self, data: Data | None) -> ReplicaBatch:
        if data is not None:
            return ReplicaBatch.of(self.seen(data))
        if self.layout is None:
            raise BadInput("The model was not built on data; say which rows are meant.")
        return self.layout

    @torch.no_grad()
    def predict(
        self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> ReplicatedPrediction:
        """Moments of f over q(U) and q(H) (5.29-5.30), and the noise of y, of standardized data.

        Args:
            output: Which outputs.
            replica: Which of their replicas; -1 is a new one, known by the shared curve alone.
            x: Where.

        Raises:
            BadInput: An output or a replica that the data did not have.
        """
        return self._asked(output, replica, x)

    def forward(self, rows: Float[Tensor, "k 3"]) -> MultivariateNormal:
        """Moments of f, which is not Gaussian over q(H), at rows (output, replica, x).

        What rows have in common is not in them.

        Raises:
            BadInput: An output or a replica that the data did not have.
        """
        found = self._asked(rows[:, 0].long(), rows[:, 1].long(), rows[:, 2])
        return MultivariateNormal(found.mean, DiagLinearOperator(found.variance))

    def _asked(self, output: Tensor, replica: Tensor, x: Tensor) -> ReplicatedPrediction:
        rows = self.seen(Data(output, replica, x, x, self.samplings))
        inputs = torch.stack([x, rows.sampling(rows.output, rows.replica).to(x)], dim=1)
        return self._moments(output, inputs, levels=2)

    @torch.no_grad()
    def shared(
        self, output: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]] | None:
        """Mean and variance of the curve that the replicas of an output share."""
        new = torch.full_like(output, NEW)
        Data(output, new, x, x, self.samplings).check(output, new)
        found = self._moments(output, torch.stack([x, new.to(x)], dim=1), levels=1)
        return found.mean, found.variance

    def _moments(self, output: Tensor, inputs: Tensor, levels: int) -> ReplicatedPrediction:
        if not len(output):
            return ReplicatedPrediction(*inputs.new_zeros(3, 0))
        asked, which = torch.unique(output, return_inverse=True)
        w, W = self.posterior.weights(*self.latents.statistics(asked))
        noise = self.noise[output]
        means, variances = [noise[:0]], [noise[:0]]
        for part, d in zip(inputs.split(CHUNK), which.split(CHUNK)):
            a = self.seen_through(part, levels)
            means.append((a * w[d]).sum(1))
            second = self.variance(part, levels) + torch.einsum("ni,nij,nj->n", a, W[d], a)
            # First and second moment of 5.30 under q(H): 5.29
            variances.append((second - means[-1].square()).clamp(min=0))
        return ReplicatedPrediction(torch.cat(means), torch.cat(variances), noise)

    @torch.no_grad()
    def levels(self, output: Int[Tensor, " k"]) -> Float[Tensor, "k 3"]:
        """Prior variances of the shared curve, of a replica about it, and of the noise."""
        at = torch.zeros(1, 2).to(self.inducing_x)
        shared = self.variance(at, 1)
        own = self.variance(at, 2) - shared
        return torch.stack(
            [shared.expand(len(output)), own.expand(len(output)), self.noise[output]], dim=1
        )

    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        """E[K_H] over q(H): how far outputs go together, 1 on the diagonal."""
        return self.latents.covariance()

    def latent(self) -> tuple[Float[Tensor, "d q"], Float[Tensor, "d q"]] | None:
        """Means and standard deviations of q(H), in lengthscales of k_H."""
        return self.latents.positions()

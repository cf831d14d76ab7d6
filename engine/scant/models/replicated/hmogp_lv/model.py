"""HMOGP-LV: hierarchical multi-output GPs with latent variables, for replicated outputs.

Ma (2023), chapter 5 and appendix C, on Dai, Alvarez and Lawrence (2017). Replica r of output d is

    y_d^r(x) = f_d^r(x) + noise,   cov(f_d^r(x), f_d'^r'(x')) = k_H(h_d, h_d') k_X((x, r), (x', r'))

with the hierarchical kernel k_X of a shared curve g and of each replica about it (5.12-5.14), k_H
over latent positions h_d of the outputs (`latent`), and inducing variables U on a grid of M_H
inducing outputs and M_X inducing inputs. Replicas of the same sampling (`replicated.data`) have the
same r. The bound is in `bound`, q(U) in `posterior`. Differences from the publication: k_H has unit
variance (k_X has the variance), and for small M_X M_H q(U) is the optimal full Gaussian.

    generator = torch.Generator().manual_seed(seed)
    model = HMOGPLV.build(data, generator=generator)     # x and y of `data` standardized
    trainer = HMOGPLVTrainer(model, data, generator)     # hmogp_lv.training
    elbo = trainer.step()                                # repeat
    model.predict(output, replica, x)                    # replica -1: a new replica
    model.condition(other)                               # new q(U), without training

In GPyTorch's interface, with rows (output, replica, x): `model.likelihood(model(rows), rows)`.

On a CPU, equal seeds give bitwise equal runs.
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
from scant.models.replicated.data import MIN_NOISE, NEW, Data, ReplicatedPrediction
from scant.models.replicated.hmogp_lv.bound import Statistics, collapsed, expected_log_likelihood
from scant.models.replicated.hmogp_lv.initialization import (
    inducing_inputs,
    latent_positions,
    start_level,
)
from scant.models.replicated.hmogp_lv.latent import JITTER, LatentOutputs
from scant.models.replicated.hmogp_lv.layout import ReplicaBatch
from scant.models.replicated.hmogp_lv.posterior import Dense, Kronecker

DENSE = 1000  # largest M_X M_H for the full covariance q(U) in closed form
CHUNK = 4096  # rows per block of a prediction
BLOCK = 2**26  # numbers in the W_d of a block


class HMOGPLV(GP):
    """Hierarchical multi-output GP with latent variables; construct it with `build`.

    Args:
        samplings: Sampling of each replica of each output, as in `Data`.
        latent: Initial means of q(H).
        inducing_outputs: Initial Z_H.
        inducing_inputs: Initial Z_X, rows (x, sampling).
        kernel: Hierarchical k_X; with a single level it ignores replicas (`lvmogp`).
        noise: Initial noise variance.
        noise_each: True for a noise variance per output (5.31-5.38), False for one (5.20-5.28).
        dense: True for the optimal full covariance q(U) in closed form, for small M_X M_H; False
            for a Kronecker covariance, as published.
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
        start = torch.full((len(latent) if noise_each else 1,), noise - MIN_NOISE).to(latent)
        self.log_noise = nn.Parameter(start.log())
        self.register_constraint("log_noise", LogPositive())
        family = Dense if dense else Kronecker
        self.posterior: Any = family(len(inducing_outputs), len(inducing_inputs))
        self.layout: ReplicaBatch | None = None  # layout of the training data
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
        """Build a model initialized from standardized data.

        Args:
            data: Training data; outputs may have no rows.
            generator: A CPU generator; equal seeds give bitwise equal results.
            n_latent_dims: Number of latent dimensions Q_H.
            n_inducing_outputs: Number M_H; too few for the diversity of outputs give
                overconfident predictions.
            n_inducing_inputs: Number M_X, at most the number of distinct inputs; with only one or
                two per sampling the replicas' own curves are lost and only g remains.
            kernel_shared: Kernel of g, one of `scant.kernels.hierarchical.SHAPES`, or any GPyTorch
                kernel.
            kernel_replica: Kernel of the replicas about g, likewise.
            noise: "shared" by all outputs, or "each output".
            dense: See the class; by default True if M_X M_H is at most `DENSE`.

        Raises:
            BadInput: An argument is unknown or below one.
        """
        counts = {"latent dimension": n_latent_dims, "inducing output": n_inducing_outputs}
        for name, count in counts.items():
            if count < 1:
                raise BadInput(f"There must be at least one {name}, got {count}.")
        if noise not in ("shared", "each output"):
            raise BadInput(f"Noise {noise!r} is unknown; use 'shared' or 'each output'.")
        layout = ReplicaBatch.of(cls.preprocess(data))
        latent = latent_positions(layout, n_latent_dims, generator)
        inducing = inducing_inputs(layout.inputs, n_inducing_inputs)
        if dense is None:
            dense = len(inducing) * n_inducing_outputs <= DENSE
        model = cls(
            data.samplings,
            latent,
            kmeans_centres(latent, n_inducing_outputs, generator),
            inducing,
            cls.start_kernel(kernel_shared, kernel_replica),
            noise_each=noise == "each output",
            dense=dense,
        ).to(data.x.device)
        model.layout = layout
        without = set(layout.inputs[:, 1].tolist()) - set(inducing[:, 1].tolist())
        if without:
            model.notes.append(
                f"{len(without)} samplings have no inducing input, so that the model knows them"
                f" from the shared curve alone; {len(inducing) + len(without)} would do."
            )
        model.condition()
        return model

    @staticmethod
    def start_kernel(shared: str | Kernel, replica: str | Kernel) -> ReplicaKernel:
        """k_X with initial hyperparameters."""
        return ReplicaKernel(start_level(shared, 0.7), start_level(replica, 0.3))

    @staticmethod
    def preprocess(data: Data) -> Data:
        """Transform the rows for the model; here the identity."""
        return data

    @property
    def noise(self) -> Float[Tensor, " d"]:
        """Noise variance of each output."""
        return (self.log_noise.exp() + MIN_NOISE).expand(len(self.samplings))

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        above = torch.as_tensor(value).to(self.log_noise) - MIN_NOISE
        self.initialize(log_noise=above.log().expand_as(self.log_noise))

    @property
    def likelihood(self) -> GaussianLikelihood:
        """Gaussian likelihood with the noise of each row's output: `likelihood(f, rows)`."""
        return given_noise(self.noise, column=0)

    def inducing_inputs(self) -> Float[Tensor, "m 2"]:
        return torch.stack([self.inducing_x, self.inducing_sampling], dim=1)

    def covariance(
        self, a: Float[Tensor, "n 2"], b: Float[Tensor, "m 2"], levels: int = 2
    ) -> Float[Tensor, "n m"]:
        """k_X between rows (x, sampling); with `levels=1` only the level of g."""
        kernel, columns = self._top_levels(levels)
        return kernel(a[:, :columns], b[:, :columns]).to_dense()

    def variance(self, a: Float[Tensor, "n 2"], levels: int = 2) -> Float[Tensor, " n"]:
        """k_X of each row with itself; with `levels=1` only the level of g."""
        kernel, columns = self._top_levels(levels)
        return kernel(a[:, :columns], diag=True)

    def _top_levels(self, levels: int) -> tuple[Any, int]:
        """Kernel with the given number of levels, and its number of columns of (x, sampling)."""
        available = len(self.kernel.levels)
        return (self.kernel, available) if levels >= available else (self.kernel.levels[0], 1)

    def whitened_cross_covariance(
        self, inputs: Float[Tensor, "n 2"], levels: int = 2
    ) -> Float[Tensor, "n m"]:
        """a(x) = L_X^-1 k_X(Z, x) of each row; with `levels=1`, for g at x."""
        Z = self.inducing_inputs()
        K = self.covariance(torch.cat([Z, inputs]), Z)
        K, cross = K[: len(Z)], K[len(Z) :]
        if levels < 2:
            cross = self.covariance(inputs, Z, levels)
        K = K + JITTER * self.variance(Z).mean() * torch.eye(len(Z)).to(K)
        return torch.linalg.solve_triangular(psd_safe_cholesky(K), cross.T, upper=False).T

    def statistics(self, layout: ReplicaBatch, weight: float = 1.0) -> Statistics:
        """Statistics of outputs for the bound.

        Args:
            layout: Rows of the outputs.
            weight: Total number of outputs per output of the minibatch.
        """
        psi, P = self.latents.statistics(layout.outputs)
        k = self.variance(layout.inputs)
        a = self.whitened_cross_covariance(layout.inputs)
        if layout.same:
            a = a[layout.where[0]]
            a, b = a.unsqueeze(0), layout.y @ a
        else:
            a = a[layout.where] * layout.real.unsqueeze(2)
            b = (layout.y.unsqueeze(1) @ a).squeeze(1)
        yy = layout.y.square().sum(1)
        k = (k[layout.where] * layout.real).sum(1)
        noise = self.noise[layout.outputs]
        return Statistics(psi, P, a, b, yy, k, layout.counts, noise, weight)

    def bound(self, s: Statistics, layout: ReplicaBatch) -> Float[Tensor, ""]:
        """Bound 5.20 (5.31) at the current q(U), plus registered log priors, in nats."""
        F = expected_log_likelihood(s, *self.posterior.fit(s))
        latent = s.weight * self.latents.divergence(layout.outputs)
        return F - self.posterior.kl_divergence() - latent + log_hyperprior(self)  # (5.20), (5.31)

    def best_bound(self, s: Statistics, layout: ReplicaBatch) -> Float[Tensor, ""]:
        """Bound at the optimal q(U) for all outputs, plus registered log priors, in nats."""
        return collapsed(s) - self.latents.divergence(layout.outputs) + log_hyperprior(self)

    def elbo(self, data: Data | None = None) -> Float[Tensor, ""]:
        """Bound on ln p(y) plus registered log priors, in nats (default: training data)."""
        layout = self._layout(data)
        return self.bound(self.statistics(layout), layout)

    @torch.no_grad()
    def condition(self, data: Data | None = None) -> None:
        """Set q(U) to its optimum given rows (default: training data), all else fixed."""
        self.posterior.condition(self.statistics(self._layout(data)))

    def _layout(self, data: Data | None) -> ReplicaBatch:
        if data is not None:
            return ReplicaBatch.of(self.preprocess(data))
        if self.layout is None:
            raise BadInput("The model was not built on data; say which rows are meant.")
        return self.layout

    @torch.no_grad()
    def predict(
        self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> ReplicatedPrediction:
        """Moments of f under q(U) and q(H) (5.29-5.30), and noise variances, standardized.

        Args:
            output: Output indices.
            replica: Replica indices; -1 is a new replica, predicted from the shared curve.
            x: Inputs.

        Raises:
            BadInput: An output or a replica does not exist.
        """
        return self._predict(output, replica, x)

    def forward(self, rows: Float[Tensor, "k 3"]) -> MultivariateNormal:
        """Moments of f at rows (output, replica, x), without covariances between rows.

        f is not Gaussian under q(H).

        Raises:
            BadInput: An output or a replica does not exist.
        """
        prediction = self._predict(rows[:, 0].long(), rows[:, 1].long(), rows[:, 2])
        return MultivariateNormal(prediction.mean, DiagLinearOperator(prediction.variance))

    def _predict(self, output: Tensor, replica: Tensor, x: Tensor) -> ReplicatedPrediction:
        rows = self.preprocess(Data(output, replica, x, x, self.samplings))
        inputs = torch.stack([x, rows.sampling(rows.output, rows.replica).to(x)], dim=1)
        return self._moments(output, inputs, levels=2)

    @torch.no_grad()
    def shared(
        self, output: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]] | None:
        """Mean and variance of the curve shared by an output's replicas."""
        new = torch.full_like(output, NEW)
        Data(output, new, x, x, self.samplings).check(output, new)
        prediction = self._moments(output, torch.stack([x, new.to(x)], dim=1), levels=1)
        return prediction.mean, prediction.variance

    def _moments(self, output: Tensor, inputs: Tensor, levels: int) -> ReplicatedPrediction:
        if not len(output):
            return ReplicatedPrediction(*inputs.new_zeros(3, 0))
        outputs, index = torch.unique(output, return_inverse=True)
        w, W = self.posterior.weights(*self.latents.statistics(outputs))
        noise = self.noise[output]
        means, variances = [noise[:0]], [noise[:0]]
        chunk = max(1, min(CHUNK, BLOCK // len(self.inducing_x) ** 2))
        for part, d in zip(inputs.split(chunk), index.split(chunk)):
            a = self.whitened_cross_covariance(part, levels)
            means.append((a * w[d]).sum(1))
            second = self.variance(part, levels) + torch.einsum("ni,nij,nj->n", a, W[d], a)
            # First and second moment of 5.30 under q(H): 5.29
            variances.append((second - means[-1].square()).clamp(min=0))
        return ReplicatedPrediction(torch.cat(means), torch.cat(variances), noise)

    @torch.no_grad()
    def levels(self, output: Int[Tensor, " k"]) -> Float[Tensor, "k 3"]:
        """Prior variance components: shared curve, replica level, noise."""
        at = torch.zeros(1, 2).to(self.inducing_x)
        shared = self.variance(at, 1)
        own = self.variance(at, 2) - shared
        return torch.stack(
            [shared.expand(len(output)), own.expand(len(output)), self.noise[output]], dim=1
        )

    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        """E[K_H] over q(H): prior correlations of outputs, 1 on the diagonal."""
        return self.latents.covariance()

    def latent(self) -> tuple[Float[Tensor, "d q"], Float[Tensor, "d q"]] | None:
        """Means and standard deviations of q(H), in lengthscales of k_H."""
        return self.latents.positions()

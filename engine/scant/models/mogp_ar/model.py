"""MOGPs-AR (Ma 2023, ch. 3): one multi-output GP over all classes of all outputs.

Each output d has a softmax over C_d classes with functions f_c = sum_l a_cl u_l + a_c0, where u_l,
l = (q, i), are R latent functions for each of Q kernels. With the patch kernel it is MOCGPs-AR
(ch. 4).

f is linear in u, so the moments of u are computed once for any number of classes, and each class
adds one row to the mixing matrix. A training step updates only the rows of sampled classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.models import GP
from jaxtyping import Float, Int
from linear_operator.operators import MatmulLinearOperator
from torch import Tensor, nn

from scant.errors import BadInput
from scant.likelihoods import softmax_average
from scant.likelihoods.augment_reduce import AugmentReduceLikelihood, Covariance
from scant.models.hyperprior import log_hyperprior
from scant.models.mogp_ar import whitening
from scant.models.mogp_ar.kernels import Kernel, Ranks, Rows
from scant.models.mogp_ar.mixing import Coregionalised

CHUNK = 1000  # rows per block of predictions and bounds


class MOGPAR(Coregionalised, GP):  # type: ignore[misc]
    """Multi-output GP classifier with augment-and-reduce bounds.

    Args:
        kernel: Kernel of the Q latent processes.
        inducing_points: Initial inducing points, from the kernel's `start`.
        n_classes: C_d of each output.
        generator: A CPU generator for the initial mixing matrix.
        rank: Number R of latent functions per kernel.
        covariance: Posterior covariances of the classes' functions: "kept", or "dropped" as
            published.
        constant: True for a constant per class (not in the publication).

    Raises:
        BadInput: There is no output, or an output has fewer than two classes.
    """

    first: Tensor
    sizes: Tensor
    Softmax = AugmentReduceLikelihood

    def __init__(
        self,
        kernel: Kernel,
        inducing_points: Float[Tensor, "q m e"],
        n_classes: Sequence[int],
        generator: torch.Generator,
        rank: int = 1,
        covariance: Covariance = "kept",
        constant: bool = True,
    ) -> None:
        super().__init__()
        if not n_classes or min(n_classes) < 2:
            raise BadInput(f"Each output needs two classes or more; got {list(n_classes)}.")
        self.kernel = kernel
        self.covariance, self.constant = covariance, constant
        self.n_latent, self.rank = len(inducing_points), rank
        self.width = max(n_classes)
        z, m = inducing_points, inducing_points.shape[1]
        sizes = torch.tensor(list(n_classes), device=z.device)
        self.register_buffer("sizes", sizes)
        self.register_buffer("first", sizes.cumsum(0) - sizes)
        eye = torch.eye(m, dtype=z.dtype, device=z.device)
        starts = {
            "inducing_points": z.clone(),
            "q_mean": z.new_zeros(self.n_latent, rank, m),
            "q_scale": eye.repeat(self.n_latent, rank, 1, 1),
        }
        for name, start in starts.items():
            self.register_parameter(name, nn.Parameter(start))
        self.start_mixing(sum(n_classes), z, generator)
        self.likelihood = self.Softmax(sizes, self.mixing_rows, covariance, constant)

    def start_mixing(self, functions: int, like: Tensor, generator: torch.Generator) -> None:
        """Register the mixing matrix [classes, Q * R], with an additional column for constants."""
        latent = self.n_latent * self.rank
        start = torch.randn(functions, latent, generator=generator, dtype=like.dtype)
        start = start.to(like.device) / math.sqrt(latent)
        if self.constant:
            start = torch.cat([start, start.new_zeros(functions, 1)], 1)
        self.mixing = nn.Embedding.from_pretrained(start, freeze=False, sparse=True)

    # -- latent functions ------------------------------------------------------------------------

    def _moments(self, rows: Rows) -> tuple[Float[Tensor, "l b"], Float[Tensor, "l b"]]:
        """Means and variances of all latent functions at the rows (3.22 with A = I)."""
        K, cross = self.kernel.covariances(self.inducing_points, rows)
        mean, excess = whitening.moments(K, cross, self.q_mean, self.q_scale)
        variance = (self.kernel.diagonal(rows).unsqueeze(1) + excess).clamp(min=0)
        return mean.flatten(0, 1), variance.flatten(0, 1)

    def forward(self, x: Float[Tensor, "n v"]) -> MultitaskMultivariateNormal:
        """Posterior of the latent functions at unprepared inputs, with lazy covariances.

        Bounds and predictions only need variances and use `whitening.moments`, since the lazy layer
        makes a step 1.3 times as long.
        """
        kernel = self.kernel if self.rank == 1 else Ranks(self.kernel, self.n_latent, self.rank)
        K, cross = self.kernel.covariances(self.inducing_points, self.kernel.prepare(x))
        A = (whitening.inverse_cholesky(K) @ cross).unsqueeze(1)  # [q, 1, m, n]
        mean = (self.q_mean.unsqueeze(2) @ A).flatten(0, 2)  # (3.22), whitened
        excess = (whitening.excess(self.q_scale) @ A).flatten(0, 1).mT
        spread = MatmulLinearOperator(excess, A.expand(-1, self.rank, -1, -1).flatten(0, 1))
        return MultitaskMultivariateNormal.from_batch_mvn(
            MultivariateNormal(mean, kernel(x) + spread)
        )

    def kl_divergence(self) -> Float[Tensor, ""]:
        """KL(q(u) || p(u)) of all latent functions, whitened, with standard normal p(u)."""
        return whitening.kl_divergence(self.q_mean, self.q_scale)

    @torch.no_grad()
    def latent(self, rows: Rows) -> tuple[Float[Tensor, "l n"], Float[Tensor, "l n"]]:
        """Means and variances of the Q * R latent functions, grouped by kernel."""
        parts = [self._moments(rows[part]) for part in _chunks(len(rows))]
        means, variances = zip(*parts) if parts else ((), ())
        empty = self.q_mean.new_zeros(self.n_latent * self.rank, 0)
        return torch.cat([empty, *means], 1), torch.cat([empty, *variances], 1)

    def _mixed(self, moments: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Moments [b, l] for the likelihood, including the constant."""
        return self.likelihood.mixed(*(part.mT for part in moments))

    def mixing_rows(self, classes: Int[Tensor, "*n"]) -> Float[Tensor, "*n l"]:
        """Mixing rows a_c and a_c0 of classes numbered over all outputs, with gradients."""
        rows: Tensor = self.mixing(classes)
        return rows

    @torch.no_grad()
    def rows_of_mixing(self, classes: Int[Tensor, "*n"]) -> Float[Tensor, "*n l"]:
        """Mixing rows a_c (and a_c0) of classes, for inspection.

        With covariances kept, the mean row of an output's classes has no effect on the
        probabilities and is subtracted.
        """
        return self._table()[classes]

    @torch.no_grad()
    def _table(self) -> Float[Tensor, "classes l"]:
        table = self.mixing_rows(torch.arange(int(self.sizes.sum()), device=self.sizes.device))
        if self.covariance == "dropped":
            return table
        return torch.cat([rows - rows.mean(0) for rows in table.split(self.sizes.tolist())])

    # -- bounds ----------------------------------------------------------------------------------

    def elbo(
        self,
        rows: Rows,
        output: Int[Tensor, " b"],
        label: Int[Tensor, " b"],
        n_total: Int[Tensor, " d"],
        generator: torch.Generator,
        sampled: int = 1,
    ) -> Float[Tensor, ""]:
        """Training objective in nats: `estimate` plus registered log priors."""
        bound = self.estimate(rows, output, label, n_total, generator, sampled)
        return bound + log_hyperprior(self)

    def estimate(
        self,
        rows: Rows,
        output: Int[Tensor, " b"],
        label: Int[Tensor, " b"],
        n_total: Int[Tensor, " d"],
        generator: torch.Generator,
        sampled: int = 1,
    ) -> Float[Tensor, ""]:
        """Stochastic estimate of the bound over all rows (3.28), in nats.

        Args:
            rows: Minibatch, prepared by the kernel.
            output, label: Output of each row, and its class within the output.
            n_total: Total number of rows of each output, for rescaling.
            generator: A CPU generator for the classes.
            sampled: Number of other classes sampled per row; 0 uses all.
        """
        moments = self._mixed(self._moments(rows))
        terms = self.likelihood.terms(*moments, output, label, generator, sampled)
        batch_count = torch.bincount(output, minlength=len(self.sizes))
        return (terms * (n_total / batch_count)[output]).sum() - self.kl_divergence()  # (3.28)

    @torch.no_grad()
    def bound(
        self, rows: Rows, output: Int[Tensor, " n"], label: Int[Tensor, " n"]
    ) -> Float[Tensor, ""]:
        """Bound over all rows and classes (3.23), in nats."""
        total = -self.kl_divergence()
        for part in _chunks(len(rows)):
            moments = self._mixed(self._moments(rows[part]))
            terms = self.likelihood.terms(*moments, output[part], label[part], None, 0)
            total = total + terms.sum()
        return total

    # -- predictions and what the classes share --------------------------------------------------

    def predict(
        self,
        rows: Rows,
        output: Int[Tensor, " n"],
        draws: int = softmax_average.DRAWS,
        seed: int = 0,
        temperature: float = 1.0,
    ) -> softmax_average.MOGPARPrediction:
        """Class probabilities (3.35) of each row's output, with errors and entropies.

        Args:
            rows: Rows prepared by the kernel.
            output: Output of each row.
            draws: Number of draws of the latent functions.
            seed: Seed of the draws.
            temperature: Divisor of the class functions (not in the publication).
        """
        moments = self._mixed(self.latent(rows))
        table, sizes = self._table() / temperature, self.sizes.tolist()
        method = self.likelihood.averaged()
        return softmax_average.average_by_output(method, table, moments, output, sizes, draws, seed)

    def probabilities(self, rows: Rows, output: Int[Tensor, " n"]) -> Float[Tensor, "n c"]:
        """Class probabilities of each row's output; 0 beyond the output's classes."""
        return self.predict(rows, output).probability

    @torch.no_grad()
    def factors(self) -> Float[Tensor, "q c r"]:
        """A_q of each kernel, B_q = A_q A_q' (3.7), from `rows_of_mixing`."""
        weights = self._table()[:, : self.n_latent * self.rank]
        return weights.view(-1, self.n_latent, self.rank).transpose(0, 1)  # a of 3.5

    @torch.no_grad()
    def solved(self) -> Float[Tensor, "q m r"]:
        """K_uu^-1 E[u] of each latent function; the mean at x is k(x, Z) K_uu^-1 E[u]."""
        K = self.kernel.inducing(self.inducing_points)
        return (self.q_mean @ whitening.inverse_cholesky(K)).mT


def _chunks(n: int) -> list[slice]:
    return [slice(i, i + CHUNK) for i in range(0, n, CHUNK)]

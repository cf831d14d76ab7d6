"""MOGPs-AR (Ma 2023, ch. 3): one multi-output GP over all classes of all outputs.

Each output d chooses among C_d classes by a softmax of functions f_c = sum_l a_cl u_l + a_c0, where
u_l, l = (q, i), are R latent functions of each of Q kernels. With the patch kernel it is MOCGPs-AR
(ch. 4).

f is linear in u: moments of u at the rows are computed once, whatever the number of classes, and a
class costs the rows of the mixing matrix that it takes. Of that matrix a step touches the rows of
the classes that it has drawn.
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

CHUNK = 1000  # rows at once where all rows are asked for


class MOGPAR(Coregionalised, GP):  # type: ignore[misc]
    """The model, its bounds and its predictions.

    Args:
        kernel: Of the Q latent processes.
        inducing_points: As the kernel wants them; learned.
        n_classes: C_d of each output.
        rank: R, latent functions of each kernel.
        covariance: Of the classes' functions, given the data: "kept", or "dropped" as published.
        constant: Give each class a constant of its own (the publication has none).
        generator: A CPU generator that draws the mixing matrix to start from.

    Raises:
        BadInput: An output with fewer than two classes, or no output.
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
        self.likelihood = self.Softmax(sizes, self.drawn_rows, covariance, constant)

    def start_mixing(self, functions: int, like: Tensor, generator: torch.Generator) -> None:
        """The mixing matrix [classes, Q * R], with a column of constants where there are some."""
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
        mean, more = whitening.moments(K, cross, self.q_mean, self.q_scale)
        variance = (self.kernel.diagonal(rows).unsqueeze(1) + more).clamp(min=0)
        return mean.flatten(0, 1), variance.flatten(0, 1)

    def forward(self, x: Float[Tensor, "n v"]) -> MultitaskMultivariateNormal:
        """The latent functions at inputs as they are, which the likelihood mixes; no n x n is made.

        Bounds and predictions take their variances alone, by `whitening.moments`: through the lazy
        layer a step takes 1.3 times as long.
        """
        kernel = self.kernel if self.rank == 1 else Ranks(self.kernel, self.n_latent, self.rank)
        K, cross = self.kernel.covariances(self.inducing_points, self.kernel.prepare(x))
        A = (whitening.inverse_cholesky(K) @ cross).unsqueeze(1)  # [q, 1, m, n]
        mean = (self.q_mean.unsqueeze(2) @ A).flatten(0, 2)  # (3.22), whitened
        more = (whitening.excess(self.q_scale) @ A).flatten(0, 1).mT
        spread = MatmulLinearOperator(more, A.expand(-1, self.rank, -1, -1).flatten(0, 1))
        return MultitaskMultivariateNormal.from_batch_mvn(
            MultivariateNormal(mean, kernel(x) + spread)
        )

    def kl_divergence(self) -> Float[Tensor, ""]:
        """KL(q(u) || p(u)) of all latent functions; whitened, p(u) is a standard Gaussian."""
        return whitening.kl_divergence(self.q_mean, self.q_scale)

    @torch.no_grad()
    def latent(self, rows: Rows) -> tuple[Float[Tensor, "l n"], Float[Tensor, "l n"]]:
        """Means and variances of the Q*R latent functions, the ranks of a kernel side by side."""
        parts = [self._moments(rows[part]) for part in _chunks(len(rows))]
        means, variances = zip(*parts) if parts else ((), ())
        empty = self.q_mean.new_zeros(self.n_latent * self.rank, 0)
        return torch.cat([empty, *means], 1), torch.cat([empty, *variances], 1)

    def _mixed(self, moments: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Moments [b, l] as the likelihood wants them."""
        return self.likelihood.mixed(*(part.mT for part in moments))

    def drawn_rows(self, classes: Int[Tensor, "*n"]) -> Float[Tensor, "*n l"]:
        """a_c and a_c0 of classes that are numbered over all outputs, for training."""
        found: Tensor = self.mixing(classes)
        return found

    @torch.no_grad()
    def rows_of_mixing(self, classes: Int[Tensor, "*n"]) -> Float[Tensor, "*n l"]:
        """a_c, and a_c0 where classes have constants, to be looked at.

        With covariances kept, what all classes of an output have in common changes nothing: it
        would stay where chance began, and is left out.
        """
        return self._table()[classes]

    @torch.no_grad()
    def _table(self) -> Float[Tensor, "classes l"]:
        table = self.drawn_rows(torch.arange(int(self.sizes.sum()), device=self.sizes.device))
        if self.covariance == "dropped":
            return table
        return torch.cat([own - own.mean(0) for own in table.split(self.sizes.tolist())])

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
        """`estimate` and registered priors: what training raises."""
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
        """A stochastic estimate of the bound of all rows (3.28), in nats.

        Args:
            rows: Prepared by the kernel.
            output, label: Each row's output, and its class within it.
            n_total: Rows of each output in all, for which its rows here stand.
            generator: A CPU generator that draws the classes.
            sampled: Classes drawn for each row besides its own; 0 takes all.
        """
        moments = self._mixed(self._moments(rows))
        terms = self.likelihood.terms(*moments, output, label, generator, sampled)
        here = torch.bincount(output, minlength=len(self.sizes))
        return (terms * (n_total / here)[output]).sum() - self.kl_divergence()  # (3.28)

    @torch.no_grad()
    def bound(
        self, rows: Rows, output: Int[Tensor, " n"], label: Int[Tensor, " n"]
    ) -> Float[Tensor, ""]:
        """The bound of all rows with all classes (3.23), in nats."""
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
            rows: As the kernel prepared them.
            output: Of each row.
            draws: Of the latent functions.
            seed: Of the draws.
            temperature: What functions are divided by; the publication has none.
        """
        moments = self._mixed(self.latent(rows))
        table, sizes = self._table() / temperature, self.sizes.tolist()
        how = self.likelihood.averaged()
        return softmax_average.of_outputs(how, table, moments, output, sizes, draws, seed)

    def probabilities(self, rows: Rows, output: Int[Tensor, " n"]) -> Float[Tensor, "n c"]:
        """Class probabilities of each row's output; 0 beyond the number of its classes."""
        return self.predict(rows, output).probability

    @torch.no_grad()
    def factors(self) -> Float[Tensor, "q c r"]:
        """A_q of each kernel: B_q = A_q A_q' (3.7), of rows as they are looked at."""
        weights = self._table()[:, : self.n_latent * self.rank]
        return weights.view(-1, self.n_latent, self.rank).transpose(0, 1)  # a of 3.5

    @torch.no_grad()
    def solved(self) -> Float[Tensor, "q m r"]:
        """K_uu^-1 E[u] of each latent function: means at x are k(x, Z) times these."""
        K = self.kernel.inducing(self.inducing_points)
        return (self.q_mean @ whitening.inverse_cholesky(K)).mT


def _chunks(n: int) -> list[slice]:
    return [slice(i, i + CHUNK) for i in range(0, n, CHUNK)]

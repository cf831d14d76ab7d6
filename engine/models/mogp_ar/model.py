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
from jaxtyping import Bool, Float, Int
from scant.errors import BadInput
from scant.likelihoods import augment_reduce
from scant.likelihoods.augment_reduce import Covariance
from scant.models.mogp_ar import prediction, whitening
from scant.models.mogp_ar.kernels import Kernel, Rows
from scant.models.mogp_ar.mixing import Coregionalised
from torch import Tensor, nn
from torch.nn.functional import pad

CHUNK = 1000  # rows at once where all rows are asked for


class MOGPAR(Coregionalised, nn.Module):
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
        self.inducing_points = nn.Parameter(z.clone())
        self.q_mean = nn.Parameter(z.new_zeros(self.n_latent, rank, m))
        eye = torch.eye(m, dtype=z.dtype, device=z.device)
        self.q_scale = nn.Parameter(eye.repeat(self.n_latent, rank, 1, 1))
        self.start_mixing(sum(n_classes), z, generator)

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
        """Moments [b, l], with one more function where classes have constants: 1, for sure."""
        mean, variance = (part.mT for part in moments)
        if self.constant:
            mean, variance = pad(mean, (0, 1), value=1.0), pad(variance, (0, 1))
        return mean, variance

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
        """A stochastic estimate of the bound of all rows (3.28), in nats.

        Args:
            rows: Prepared by the kernel.
            output, label: Each row's output, and its class within it.
            n_total: Rows of each output in all, for which its rows here stand.
            generator: A CPU generator that draws the classes.
            sampled: Classes drawn for each row besides its own; 0 takes all.
        """
        moments = self._mixed(self._moments(rows))
        terms = self.data_terms(*moments, output, label, generator, sampled)
        here = torch.bincount(output, minlength=len(self.sizes))
        return (terms * (n_total / here)[output]).sum() - self.kl_divergence()  # (3.28)

    def data_terms(
        self,
        mean: Float[Tensor, "b l"],
        variance: Float[Tensor, "b l"],
        output: Int[Tensor, " b"],
        label: Int[Tensor, " b"],
        generator: torch.Generator | None,
        sampled: int,
    ) -> Float[Tensor, " b"]:
        """Each row's share of the bound, without the KL divergence."""
        if not sampled:
            return self._all_classes(mean, variance, output, label)
        assert generator is not None
        others, log_factor = augment_reduce.sample(
            label, self.sizes[output], sampled, self.width, generator
        )
        classes = torch.cat([label.unsqueeze(1), others.clamp(min=0)], 1)
        mixing = self.drawn_rows(self.first[output].unsqueeze(1) + classes)
        found = augment_reduce.exponents_of_drawn(mixing, mean, variance, self.covariance)
        if sampled > 1:
            found = found.masked_fill(others < 0, -math.inf)
        return augment_reduce.bound(found, log_factor)

    def _all_classes(
        self, mean: Tensor, variance: Tensor, output: Tensor, label: Tensor
    ) -> Float[Tensor, " b"]:
        """With no class left out (3.23); rows of an output are compared in one product."""
        own = self.drawn_rows(self.first[output] + label)
        place, back, present = grouped(output, len(self.sizes))
        classes, real = self.classes_of(present)
        mixing = self.drawn_rows(classes)
        own, mean, variance = (v[place] for v in (own, mean, variance))
        found = augment_reduce.exponents(mixing, own, mean, variance, self.covariance)
        numbers = torch.arange(self.width, device=output.device)
        away = ~real.unsqueeze(1) | (label[place].unsqueeze(-1) == numbers)
        terms = augment_reduce.bound(found.masked_fill(away, -math.inf))
        return terms.flatten()[back]

    def classes_of(
        self, outputs: Int[Tensor, " g"]
    ) -> tuple[Int[Tensor, "g c"], Bool[Tensor, "g c"]]:
        """Numbers of the outputs' classes over all outputs, and which are no padding.

        Padded by the output's first class, so that a step touches no other output.
        """
        numbers = torch.arange(self.width, device=outputs.device)
        real = numbers < self.sizes[outputs].unsqueeze(1)
        return self.first[outputs].unsqueeze(1) + numbers * real, real

    @torch.no_grad()
    def bound(
        self, rows: Rows, output: Int[Tensor, " n"], label: Int[Tensor, " n"]
    ) -> Float[Tensor, ""]:
        """The bound of all rows with all classes (3.23), in nats."""
        total = -self.kl_divergence()
        for part in _chunks(len(rows)):
            moments = self._mixed(self._moments(rows[part]))
            total = total + self.data_terms(*moments, output[part], label[part], None, 0).sum()
        return total

    # -- predictions and what the classes share --------------------------------------------------

    def predict(
        self,
        rows: Rows,
        output: Int[Tensor, " n"],
        draws: int = prediction.DRAWS,
        seed: int = 0,
        temperature: float = 1.0,
    ) -> prediction.MOGPARPrediction:
        """Class probabilities (3.35) of each row's output, with errors and entropies.

        Args:
            rows: As the kernel prepared them.
            output: Of each row.
            draws: Of the latent functions.
            seed: Of the draws.
            temperature: What functions are divided by; the publication has none.
        """
        moments = self._mixed(self.latent(rows))
        how = prediction.by_draws if self.covariance == "kept" else prediction.by_quadrature
        return prediction.of_outputs(
            how, self._table() / temperature, moments, output, self.sizes.tolist(), draws, seed
        )

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


def grouped(
    output: Int[Tensor, " b"], n_outputs: int
) -> tuple[Int[Tensor, "g k"], Int[Tensor, " b"], Int[Tensor, " g"]]:
    """Rows of each output that is there, where each row went (flat), and which outputs those are.

    Shorter groups repeat their first row, to which nothing goes back.
    """
    count = torch.bincount(output, minlength=n_outputs)
    present = count.nonzero().squeeze(1)
    count, order = count[present], output.argsort(stable=True)
    start = (count.cumsum(0) - count).unsqueeze(1)
    step = torch.arange(int(count.max()), device=output.device)
    real = step < count.unsqueeze(1)
    back = torch.empty_like(order)
    back[order] = real.flatten().nonzero().squeeze(1)
    return order[start + step * real], back, present


def _chunks(n: int) -> list[slice]:
    return [slice(i, i + CHUNK) for i in range(0, n, CHUNK)]

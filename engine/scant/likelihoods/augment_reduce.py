"""The softmax likelihood by augment and reduce (Ruiz et al. 2018; Ma 2023, section 3.2, app. B).

Gumbel noise added to each function turns the softmax into an argmax, whose bound is closed:

    E[log softmax_y(f)] >= -log(1 + P),   P = sum over c != y of E[exp(f_c - f_y)]     (3.23-3.24)

and P can be estimated by a few of its terms. All is kept as logarithms: nothing overflows.

The publication takes q(f) for a product over classes, which makes a term of P
exp(m_c - m_y + v_c / 2 + v_y / 2). Functions that mix the same latent ones, f_c = a_c'u, are not
independent, and the true expectation is as closed and as cheap,
exp(m_c - m_y + sum_l (a_cl - a_yl)^2 v_l / 2): what the functions have in common cancels.
Covariances "kept" is the true bound; "dropped" is the publication's, a bound under the product.

`AugmentReduceLikelihood` is the softmax as a likelihood of GPyTorch, of one output or several.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from gpytorch.likelihoods import Likelihood
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.distributions import Categorical
from torch.nn.functional import pad

from scant.likelihoods import softmax_average

Covariance = Literal["kept", "dropped"]


def exponents(
    mixing: Float[Tensor, "g c l"],
    true: Float[Tensor, "g b l"],
    mean: Float[Tensor, "g b l"],
    variance: Float[Tensor, "g b l"],
    covariance: Covariance = "kept",
) -> Float[Tensor, "g b c"]:
    """log E[exp(f_c - f_y)] of groups of rows that are compared with the same classes.

    Args:
        mixing: a_c of each group's classes.
        true: a_y of each row's own class.
        mean, variance: Of the latent functions at each row.
        covariance: Of f_c and f_y: kept or dropped.
    """
    own = true * variance
    linear = mean - own if covariance == "kept" else mean
    offset = (true * (0.5 * own - mean)).sum(-1, keepdim=True)
    weights = torch.cat([linear, 0.5 * variance], -1)
    return weights @ torch.cat([mixing, mixing.square()], -1).mT + offset  # terms of 3.24


def exponents_of_drawn(
    mixing: Float[Tensor, "b k l"],
    mean: Float[Tensor, "b l"],
    variance: Float[Tensor, "b l"],
    covariance: Covariance = "kept",
) -> Float[Tensor, "b k-1"]:
    """log E[exp(f_c - f_y)] of rows that have each its own few classes to be compared with.

    Args:
        mixing: a_y of each row's own class, then a_c of those that were drawn for it.
        mean, variance: Of the latent functions at each row.
        covariance: Of f_c and f_y: kept or dropped.
    """
    own, others = mixing[:, :1], mixing[:, 1:]
    difference = others - own
    of_variance = difference.square() if covariance == "kept" else others.square() + own.square()
    mean, variance = mean.unsqueeze(1), variance.unsqueeze(1)
    return (difference * mean + 0.5 * of_variance * variance).sum(-1)  # terms of 3.24


def bound(
    exponents: Float[Tensor, "*n c"], log_factor: Float[Tensor, "*n"] | None = None
) -> Float[Tensor, "*n"]:
    """-log(1 + factor * sum_c exp(exponent_c)), which bounds the expected log softmax.

    The sum within the logarithm is estimated without bias; the logarithm of the estimate is, by
    Jensen's inequality, higher than the bound of all classes on average (the publication calls
    3.28 unbiased; it is where a row has one other class or all are taken).

    Args:
        exponents: -inf where a class takes no part.
        log_factor: log((C_d - 1) / |S_d|) of each row; None where all classes take part.
    """
    total = exponents.logsumexp(-1)
    if log_factor is not None:
        total = total + log_factor  # (3.28), with C_d - 1 where the publication has K - 1
    return torch.nn.functional.logsigmoid(-total)  # -ln(1 + P) of 3.23


def sample(
    label: Int[Tensor, " b"],
    n_classes: Int[Tensor, " b"],
    count: int,
    width: int,
    generator: torch.Generator,
) -> tuple[Int[Tensor, "b s"], Float[Tensor, " b"]]:
    """S_d of each row: other classes than its own, without replacement (Algorithm 1).

    Args:
        label: Each row's own class, within its output.
        n_classes: C_d of each row's output, at least 2.
        count: |S_d|; an output that has fewer other classes gives all it has.
        width: The largest C_d.
        generator: A CPU generator, so that a seed means the same on every device.

    Returns:
        Classes within the output, -1 where there is none left, and log((C_d - 1) / |S_d|).
    """
    device, dtype = label.device, torch.float64
    others = n_classes - 1
    if count == 1:
        u = torch.rand(len(label), generator=generator, dtype=dtype).to(device)
        drawn = (u * others).long()
        return (drawn + (drawn >= label)).unsqueeze(1), others.to(dtype).log()
    u = torch.rand(len(label), width, generator=generator, dtype=dtype).to(device)
    classes = torch.arange(width, device=device)
    barred = (classes >= n_classes.unsqueeze(1)) | (classes == label.unsqueeze(1))
    top = u.masked_fill(barred, -1.0).topk(min(count, width - 1))
    chosen = top.indices.masked_fill(top.values < 0, -1)
    return chosen, (others.to(dtype) / others.clamp(max=count)).log()


class AugmentReduceLikelihood(Likelihood):  # type: ignore[misc]
    """p(y | u) = softmax_y over the classes c of the row's output of f_c = a_c'u + a_c0.

    As GPyTorch's `SoftmaxLikelihood` it mixes the latent functions u that it is given; the expected
    log probability is bounded in closed form. Rows are of several outputs with classes of their
    own: `output` says of which (all of the first by default), and targets are classes within it.

    Args:
        n_classes: C_d of each output.
        mixing: The rows a_c, and a_c0 where there is one, of classes that are numbered over all
            outputs: an `nn.Embedding`, or a function.
        covariance: Of the classes' functions: kept or dropped.
        constant: Whether the last column of the mixing matrix is a_c0.
    """

    sizes: Tensor
    first: Tensor

    def __init__(
        self,
        n_classes: Int[Tensor, " d"],
        mixing: Callable[[Tensor], Tensor],
        covariance: Covariance = "kept",
        constant: bool = False,
    ) -> None:
        super().__init__()
        self.mixing, self.covariance, self.constant = mixing, covariance, constant
        self.width = int(n_classes.max())
        self.register_buffer("sizes", n_classes, persistent=False)
        self.register_buffer("first", n_classes.cumsum(0) - n_classes, persistent=False)

    def mixed(
        self, mean: Float[Tensor, "b l"], variance: Float[Tensor, "b l"]
    ) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b k"]]:
        """Moments with one more function where classes have constants: 1, for sure."""
        if self.constant:
            mean, variance = pad(mean, (0, 1), value=1.0), pad(variance, (0, 1))
        return mean, variance

    def expected_log_prob(
        self,
        observations: Int[Tensor, " b"],
        function_dist: MultitaskMultivariateNormal,
        *args: Any,
        output: Int[Tensor, " b"] | None = None,
        sampled: int = 0,
        generator: torch.Generator | None = None,
        **kwargs: Any,
    ) -> Float[Tensor, " b"]:
        """The bound on E[log p(y | u)] of each row, in nats (3.23, 3.28); see `terms`."""
        moments = self.mixed(function_dist.mean, function_dist.variance)
        at = self._of(output, observations)
        return self.terms(*moments, at, observations, generator, sampled)

    def log_marginal(
        self,
        observations: Int[Tensor, " b"],
        function_dist: MultitaskMultivariateNormal,
        *args: Any,
        **kwargs: Any,
    ) -> Float[Tensor, " b"]:
        """ln E[p(y | u)] of each row, in nats."""
        found: Tensor = self.marginal(function_dist, *args, **kwargs).log_prob(observations)
        return found

    @torch.no_grad()
    def marginal(
        self,
        function_dist: MultitaskMultivariateNormal,
        *args: Any,
        output: Int[Tensor, " b"] | None = None,
        draws: int = softmax_average.DRAWS,
        seed: int = 0,
        **kwargs: Any,
    ) -> Categorical:
        """Class probabilities (3.35): by the same draws at all rows, or by quadrature."""
        mean, variance = self.mixed(function_dist.mean, function_dist.variance.clamp(min=0))
        table = self.mixing(torch.arange(int(self.sizes.sum()), device=mean.device))
        found = softmax_average.of_outputs(
            self.averaged(),
            table,
            (mean, variance),
            self._of(output, mean[:, 0]),
            self.sizes.tolist(),
            draws,
            seed,
        )
        return Categorical(probs=found.probability)

    def averaged(self) -> softmax_average.How:
        """How the softmax is averaged."""
        kept = self.covariance == "kept"
        return softmax_average.by_draws if kept else softmax_average.by_quadrature

    def forward(
        self,
        function_samples: Float[Tensor, "*s b l"],
        *args: Any,
        output: Int[Tensor, " b"] | None = None,
        **kwargs: Any,
    ) -> Categorical:
        """p(y | u); no probability beyond the number of an output's classes."""
        u = pad(function_samples, (0, 1), value=1.0) if self.constant else function_samples
        classes, real = self.classes_of(self._of(output, u[..., 0]))
        f = (u.unsqueeze(-2) * self.mixing(classes)).sum(-1)
        return Categorical(logits=f.masked_fill(~real, -math.inf))

    def terms(
        self,
        mean: Float[Tensor, "b l"],
        variance: Float[Tensor, "b l"],
        output: Int[Tensor, " b"],
        label: Int[Tensor, " b"],
        generator: torch.Generator | None,
        sampled: int,
    ) -> Float[Tensor, " b"]:
        """The bound of each row.

        Args:
            mean, variance: Of the latent functions, and of the constant (`mixed`).
            output, label: Each row's output, and its class within it.
            generator: A CPU generator that draws the classes.
            sampled: Classes drawn for each row besides its own; 0 takes all.
        """
        if not sampled:
            return self._all_classes(mean, variance, output, label)
        assert generator is not None
        others, log_factor = sample(label, self.sizes[output], sampled, self.width, generator)
        classes = torch.cat([label.unsqueeze(1), others.clamp(min=0)], 1)
        mixing = self.mixing(self.first[output].unsqueeze(1) + classes)
        found = exponents_of_drawn(mixing, mean, variance, self.covariance)
        if sampled > 1:
            found = found.masked_fill(others < 0, -math.inf)
        return bound(found, log_factor)

    def _all_classes(
        self, mean: Tensor, variance: Tensor, output: Tensor, label: Tensor
    ) -> Float[Tensor, " b"]:
        """With no class left out (3.23); rows of an output are compared in one product."""
        own = self.mixing(self.first[output] + label)
        place, back, present = grouped(output, len(self.sizes))
        classes, real = self.classes_of(present)
        mixing = self.mixing(classes)
        own, mean, variance = (v[place] for v in (own, mean, variance))
        found = exponents(mixing, own, mean, variance, self.covariance)
        numbers = torch.arange(self.width, device=output.device)
        away = ~real.unsqueeze(1) | (label[place].unsqueeze(-1) == numbers)
        terms = bound(found.masked_fill(away, -math.inf))
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

    def _of(self, output: Tensor | None, like: Tensor) -> Int[Tensor, " b"]:
        if output is not None:
            return output
        return torch.zeros(like.shape[-1], dtype=torch.long, device=like.device)


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

"""The softmax likelihood by augment and reduce (Ruiz et al. 2018; Ma 2023, section 3.2, app. B).

Gumbel noise added to each function turns the softmax into an argmax with a closed-form bound:

    E[log softmax_y(f)] >= -log(1 + P),   P = sum over c != y of E[exp(f_c - f_y)]     (3.23-3.24)

and P can be estimated from a sample of its terms. Terms are stored as logarithms against overflow.

The publication assumes that q(f) factorizes over classes, so a term of P is
exp(m_c - m_y + v_c / 2 + v_y / 2). Functions that mix the same latent functions, f_c = a_c'u, are
correlated; their exact expectation is as cheap, exp(m_c - m_y + sum_l (a_cl - a_yl)^2 v_l / 2).
`covariance="kept"` uses the exact terms, `"dropped"` those of the publication.

`AugmentReduceLikelihood` is the GPyTorch likelihood, for one output or several.
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
    """log E[exp(f_c - f_y)] for groups of rows that share their classes c.

    Args:
        mixing: a_c of each group's classes.
        true: a_y of each row's observed class.
        mean, variance: Moments of the latent functions u at each row.
        covariance: Covariances of f_c and f_y, kept or dropped.
    """
    a_y_v = true * variance
    linear = mean - a_y_v if covariance == "kept" else mean
    offset = (true * (0.5 * a_y_v - mean)).sum(-1, keepdim=True)
    weights = torch.cat([linear, 0.5 * variance], -1)
    return weights @ torch.cat([mixing, mixing.square()], -1).mT + offset  # terms of 3.24


def sampled_exponents(
    mixing: Float[Tensor, "b k l"],
    mean: Float[Tensor, "b l"],
    variance: Float[Tensor, "b l"],
    covariance: Covariance = "kept",
) -> Float[Tensor, "b k-1"]:
    """log E[exp(f_c - f_y)] for rows that each have their own sample of classes c.

    Args:
        mixing: a_y of each row's observed class, followed by a_c of the sampled classes.
        mean, variance: Moments of the latent functions u at each row.
        covariance: Covariances of f_c and f_y, kept or dropped.
    """
    a_y, a_c = mixing[:, :1], mixing[:, 1:]
    difference = a_c - a_y
    squares = difference.square() if covariance == "kept" else a_c.square() + a_y.square()
    mean, variance = mean.unsqueeze(1), variance.unsqueeze(1)
    return (difference * mean + 0.5 * squares * variance).sum(-1)  # terms of 3.24


def bound(
    exponents: Float[Tensor, "*n c"], log_factor: Float[Tensor, "*n"] | None = None
) -> Float[Tensor, "*n"]:
    """-log(1 + factor * sum_c exp(exponent_c)), a lower bound on the expected log softmax.

    The estimate of the sum is unbiased; by Jensen's inequality its logarithm exceeds the bound over
    all classes on average. The publication calls 3.28 unbiased, which holds with one other class or
    if all classes are used.

    Args:
        exponents: Terms of 3.24; -inf for classes to be ignored.
        log_factor: log((C_d - 1) / |S_d|) of each row; None if all classes are used.
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
    """Sample S_d of each row: classes other than the observed one, without replacement (Alg. 1).

    Args:
        label: Observed class of each row, within its output.
        n_classes: C_d of each row's output, at least 2.
        count: |S_d|; outputs with fewer other classes use all of them.
        width: Largest C_d.
        generator: A CPU generator, so that a seed gives the same result on every device.

    Returns:
        Classes within the output, padded with -1, and log((C_d - 1) / |S_d|).
    """
    device, dtype = label.device, torch.float64
    others = n_classes - 1
    if count == 1:
        u = torch.rand(len(label), generator=generator, dtype=dtype).to(device)
        other = (u * others).long()
        return (other + (other >= label)).unsqueeze(1), others.to(dtype).log()
    u = torch.rand(len(label), width, generator=generator, dtype=dtype).to(device)
    classes = torch.arange(width, device=device)
    excluded = (classes >= n_classes.unsqueeze(1)) | (classes == label.unsqueeze(1))
    top = u.masked_fill(excluded, -1.0).topk(min(count, width - 1))
    chosen = top.indices.masked_fill(top.values < 0, -1)
    return chosen, (others.to(dtype) / others.clamp(max=count)).log()


class AugmentReduceLikelihood(Likelihood):  # type: ignore[misc]
    """p(y | u) = softmax_y over the classes c of the row's output of f_c = a_c'u + a_c0.

    Like GPyTorch's `SoftmaxLikelihood` it mixes latent functions u, but bounds the expected log
    probability in closed form. Several outputs may have separate classes: `output` is each row's
    output (0 by default), and targets are classes within it.

    Args:
        n_classes: C_d of each output.
        mixing: Function from class numbers (counted over all outputs) to rows a_c, including
            a_c0 if `constant`; usually an `nn.Embedding`.
        covariance: Covariances of the classes' functions, kept or dropped.
        constant: True if the last column of the mixing matrix is a_c0.
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
        """Append a latent function with mean 1 and variance 0 if classes have constants."""
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
        outputs = self._outputs(output, observations)
        return self.terms(*moments, outputs, observations, generator, sampled)

    def log_marginal(
        self,
        observations: Int[Tensor, " b"],
        function_dist: MultitaskMultivariateNormal,
        *args: Any,
        **kwargs: Any,
    ) -> Float[Tensor, " b"]:
        """ln E[p(y | u)] of each row, in nats."""
        log_prob: Tensor = self.marginal(function_dist, *args, **kwargs).log_prob(observations)
        return log_prob

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
        """Class probabilities (3.35), by common draws of u at all rows or by quadrature."""
        mean, variance = self.mixed(function_dist.mean, function_dist.variance.clamp(min=0))
        table = self.mixing(torch.arange(int(self.sizes.sum()), device=mean.device))
        prediction = softmax_average.average_by_output(
            self.averaged(),
            table,
            (mean, variance),
            self._outputs(output, mean[:, 0]),
            self.sizes.tolist(),
            draws,
            seed,
        )
        return Categorical(probs=prediction.probability)

    def averaged(self) -> softmax_average.AveragingMethod:
        """Method that averages the softmax over q(u)."""
        keep_covariances = self.covariance == "kept"
        return softmax_average.by_draws if keep_covariances else softmax_average.by_quadrature

    def forward(
        self,
        function_samples: Float[Tensor, "*s b l"],
        *args: Any,
        output: Int[Tensor, " b"] | None = None,
        **kwargs: Any,
    ) -> Categorical:
        """p(y | u); zero beyond the number of an output's classes."""
        u = pad(function_samples, (0, 1), value=1.0) if self.constant else function_samples
        classes, real = self.classes_of(self._outputs(output, u[..., 0]))
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
        """Lower bound on E[log p(y | u)] of each row, in nats.

        Args:
            mean, variance: Moments of the latent functions, including the constant (`mixed`).
            output, label: Output of each row, and its class within the output.
            generator: A CPU generator that samples the classes.
            sampled: Number of other classes sampled per row; 0 uses all.
        """
        if not sampled:
            return self._all_classes(mean, variance, output, label)
        assert generator is not None
        others, log_factor = sample(label, self.sizes[output], sampled, self.width, generator)
        classes = torch.cat([label.unsqueeze(1), others.clamp(min=0)], 1)
        mixing = self.mixing(self.first[output].unsqueeze(1) + classes)
        exponent = sampled_exponents(mixing, mean, variance, self.covariance)
        if sampled > 1:
            exponent = exponent.masked_fill(others < 0, -math.inf)
        return bound(exponent, log_factor)

    def _all_classes(
        self, mean: Tensor, variance: Tensor, output: Tensor, label: Tensor
    ) -> Float[Tensor, " b"]:
        """Bound over all classes (3.23), with one matrix product per output."""
        a_y = self.mixing(self.first[output] + label)
        row, position, present = grouped(output, len(self.sizes))
        classes, real = self.classes_of(present)
        mixing = self.mixing(classes)
        a_y, mean, variance = (v[row] for v in (a_y, mean, variance))
        exponent = exponents(mixing, a_y, mean, variance, self.covariance)
        numbers = torch.arange(self.width, device=output.device)
        ignored = ~real.unsqueeze(1) | (label[row].unsqueeze(-1) == numbers)
        terms = bound(exponent.masked_fill(ignored, -math.inf))
        return terms.flatten()[position]

    def classes_of(
        self, outputs: Int[Tensor, " g"]
    ) -> tuple[Int[Tensor, "g c"], Bool[Tensor, "g c"]]:
        """Class numbers of each output (counted over all outputs), and a mask of the real ones.

        Padding repeats the output's first class, so that a step changes no other output.
        """
        numbers = torch.arange(self.width, device=outputs.device)
        real = numbers < self.sizes[outputs].unsqueeze(1)
        return self.first[outputs].unsqueeze(1) + numbers * real, real

    def _outputs(self, output: Tensor | None, like: Tensor) -> Int[Tensor, " b"]:
        if output is not None:
            return output
        return torch.zeros(like.shape[-1], dtype=torch.long, device=like.device)


def grouped(
    output: Int[Tensor, " b"], n_outputs: int
) -> tuple[Int[Tensor, "g k"], Int[Tensor, " b"], Int[Tensor, " g"]]:
    """Group rows by output: row indices per group, flat position of each row, outputs present.

    Shorter groups are padded with their first row.
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

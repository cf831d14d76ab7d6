"""The objective of GPz: ln p(y | X, omega, theta) + ln p(v | tau) of 3.36, on fixed rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from scant.inference.expectations import kernel_forms
from scant.models.gpz.basis import observed_precision
from scant.models.gpz.evidence import Posterior, negative_log_evidence, posterior_from
from scant.models.gpz.input_density import patterns
from scant.models.gpz.model import GPz
from scant.models.gpz.row_sums import LocalRows, Pattern, RowSums, features, log_basis_weights
from scant.models.hyperprior import log_hyperprior


class LogEvidence:
    """Log evidence of a model on fixed rows, as a function of the model's current parameters.

        log_evidence = LogEvidence(model, X, y)
        log_evidence().backward()

    The value includes all constants: ln N(y; 0, Phi' A^-1 Phi + B^-1) of 2.56, plus ln p(v | tau)
    for heteroscedastic models, plus priors registered on the model.

    The objective has no maximum: if v_j goes to zero, tau_j can grow without limit, at a gain of
    half a nat per e-fold. Stop training by a validation score or a number of steps.

    CPU time of a step with m = 100, relative to autograd through the n x p design matrix: .64 at
    n = 4,000 and .25 at n = 100,000, since no array of n rows is allocated; see `scant bench gpz`.

    Args:
        model: Model whose parameters are used at each call.
        X: Inputs, NaN where missing (section 5.2.2).
        y: Targets.
        omega: Sample weights (3.20); ones by default.
        noise_variance: Variances (n, d) or covariances (n, d, d) of the inputs (section 5.2.1).
        place: Constructor of a `RowSums` from the rows' patterns and m; used for exact inputs,
            radial basis functions and the exponential link.
    """

    def __init__(
        self,
        model: GPz,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        omega: Float[Tensor, " n"] | None = None,
        noise_variance: Float[Tensor, "n *d_d"] | None = None,
        place: Callable[[list[Pattern], int], RowSums] = LocalRows,
    ) -> None:
        self.model = model
        omega = torch.ones_like(y) if omega is None else omega
        self.total_omega = float(omega.sum())
        if model.needs_complete_inputs:
            model.check(X, noise_variance)
        # Basis functions that are not exponentials of the rows' features, or another link
        dense = noise_variance is not None or model.basis == "tanh" or model.noise_link != "exp"
        self._dense = (X, y, omega, noise_variance) if dense else None
        self._last: tuple[tuple[Tensor, ...], Posterior] | None = None
        if not dense:
            y = y - model.prior_function(X)
            counted = omega > 0
            X, y, omega = X[counted], y[counted], omega[counted]
            linear = model.linear_columns(X)
            full = model.covariance[1] == "C"
            self._observed = [(observed, rows) for observed, rows in patterns(X)]
            self.rows = place(
                [
                    Pattern(features(X[r][:, o], full), linear[r], y[r], omega[r])
                    for o, r in self._observed
                ],
                len(model.centres),
            )

    def __call__(self) -> Float[Tensor, ""]:
        """Log evidence in nats, summed over the rows; differentiable once."""
        model = self.model
        if self._dense is not None:
            X, y, omega, noise = self._dense
            y = y - model.prior_function(X)
            phi, design = model.design(X, noise)
            loss = negative_log_evidence(design, y, omega, model.log_alpha, model.log_beta(phi))
        else:
            loss = cast(Tensor, _SummedEvidence.apply(self, *self._parameters()))
            loss = loss + 0.5 * math.log(2 * math.pi) * self.total_omega
        if model.heteroscedastic:
            # ln p(v | tau) of 3.8, last line of 3.37
            scatter = model.log_tau.exp() @ model.v.square() - model.log_tau.sum()
            loss = loss + 0.5 * (scatter + len(model.v) * math.log(2 * math.pi))
        return log_hyperprior(model) - loss

    def _parameters(self) -> tuple[Tensor, ...]:
        """Parameters of the sums over rows: log_alpha, v, b, and each pattern's weights."""
        model = self.model
        return model.log_alpha, model.noise_weights, model.b, *self._weights()

    def _weights(self) -> tuple[Float[Tensor, "m q"], ...]:
        """Weights of each pattern's features in ln phi_j; a missing value halves phi_j^2 (5.86)."""
        centres, precision = self.model.centres, self.model.precision()
        weights = []
        for observed, _ in self._observed:
            z = centres if bool(observed.all()) else centres[:, observed]
            forms = kernel_forms(z, observed_precision(precision, observed))
            n_missing = float((~observed).sum())
            weights.append(log_basis_weights(forms._replace(c=forms.c + n_missing * math.log(2.0))))
        return tuple(weights)

    @torch.no_grad()
    def posterior(self) -> Posterior:
        """Posterior of the weights (3.32-3.34) at the model's current parameters.

        It is cached from the last evaluation at these parameters.
        """
        if self._dense is not None:
            return self.model.weight_posterior(*self._dense)
        parameters = self._parameters()
        if self._last is None or not all(map(torch.equal, self._last[0], parameters)):
            log_alpha, v, b, *weights = parameters
            self.remember(
                parameters, posterior_from(*self.rows.moments(tuple(weights), v, b), log_alpha)
            )
        assert self._last is not None
        return self._last[1]

    def remember(self, parameters: tuple[Tensor, ...], posterior: Posterior) -> None:
        """Cache the posterior at these parameters for `posterior`."""
        self._last = (tuple(p.detach().clone() for p in parameters), posterior)


class _SummedEvidence(torch.autograd.Function):
    """First two lines of 3.37 from sums over rows, with gradients from the same passes.

    The posterior mean minimizes the penalized squares, so derivatives through it vanish: the first
    term of 4.13 and the implicit terms of 4.15 and 4.20.
    """

    @staticmethod
    def forward(
        ctx: Any,
        evidence: LogEvidence,
        log_alpha: Float[Tensor, " p"],
        v: Float[Tensor, " m"],
        b: Float[Tensor, ""],
        *weights: Float[Tensor, "m _"],
    ) -> Float[Tensor, ""]:
        moments = evidence.rows.moments(weights, v, b)
        posterior = posterior_from(*moments, log_alpha)
        evidence.remember((log_alpha, v, b, *weights), posterior)
        w, alpha = posterior.mean, log_alpha.exp()
        covariance = posterior.factor @ posterior.factor.T
        data = evidence.rows.slopes(w, covariance, v)
        d_log_alpha = 0.5 * (alpha * (w.square() + covariance.diagonal()) - 1)  # (4.18)
        ctx.save_for_backward(d_log_alpha, data.v, data.b, *data.weights)
        return data.value + posterior.half_log_det + 0.5 * (alpha * w.square()).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        return None, *(g * gradient for gradient in ctx.saved_tensors)

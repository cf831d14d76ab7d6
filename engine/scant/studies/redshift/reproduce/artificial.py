"""Artificial data of chapter 5 (Almosallam 2017), and GPz fitted to them."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from scant import metrics
from scant.models.gpz.input_density import Mixture
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction
from scant.models.gpz.training import GPzTrainer
from scant.studies.redshift.reproduce.basis_functions import bumps, sinc_with_noise

RANGE = 12.0  # of the inputs of the sinc example, on both sides of 0 (section 5.1.1)
INPUT_VARIANCE = 0.5  # mean of the input variances, Gamma(1, 2) (section 5.1.1)

Inputs = Float[ndarray, "n d"]
Values = Float[ndarray, " n"]


def noisy_sinc(x: Values, rng: np.random.Generator) -> Values:
    """Draw targets with the noise of section 3.2 around sinc(x)."""
    return sinc_with_noise(torch.tensor(x), torch.tensor(rng.standard_normal(len(x)))).numpy()


def three_gaussians(rows: int, seed: int) -> tuple[Inputs, Values]:
    """Draw rows, a multiple of three, of the example of (4.35), in random order."""
    generator = torch.Generator().manual_seed(seed)
    x, y = bumps(rows // 3, generator)
    order = torch.randperm(len(x), generator=generator)
    return x[order].numpy(), y[order].numpy()


class Learned(NamedTuple):
    """A GPz of standardized inputs and targets, with inputs and predictions in their units.

    Attributes:
        model: The model.
        center: Means of the inputs.
        scale: Deviations of the inputs.
        mean: Mean of the targets.
        deviation: Deviation of the targets.
    """

    model: GPz
    center: Values
    scale: Values
    mean: float
    deviation: float

    def inner(self, x: Inputs) -> Float[Tensor, "n d"]:
        """Standardize inputs."""
        return torch.tensor((x - self.center) / self.scale)

    def predict(self, x: Inputs, variances: Inputs | None = None) -> GPzPrediction:
        """Predict rows with missing values (NaN), with noisy inputs of `variances`, or both."""
        noise = None if variances is None else torch.tensor(variances / self.scale**2)
        return self._outer(self.model.predict(self.inner(x), noise))

    def predict_by_one_gaussian(self, x: Inputs, observed: Bool[ndarray, " d"]) -> GPzPrediction:
        """Predict rows whose unobserved inputs have one Gaussian density (5.32-5.34)."""
        moments = moments_given(self.model.mixture, self.inner(x), torch.tensor(observed))
        return self._outer(self.model.predict(*moments))

    def _outer(self, prediction: GPzPrediction) -> GPzPrediction:
        mean, *variances = vars(prediction).values()
        squared = [variance * self.deviation**2 for variance in variances]
        return GPzPrediction(mean * self.deviation + self.mean, *squared)


def moments_given(
    mixture: Mixture, x: Float[Tensor, "n d"], observed: Bool[Tensor, " d"]
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n d d"]]:
    """E[x | o] and V[x | o] of a mixture, given the observed columns o (5.32-5.34)."""
    shares = mixture.log_joint(x, observed).softmax(1)
    slope, offset, spread = mixture.conditional(observed)
    means = torch.einsum("kdo,no->nkd", slope, x[:, observed]) + offset
    mean = torch.einsum("nk,nkd->nd", shares, means)
    deviations = means - mean[:, None]
    covariance = torch.einsum("nk,nkd,nke->nde", shares, deviations, deviations)
    return mean, covariance + torch.einsum("nk,kde->nde", shares, spread)


def learn(
    x: Inputs,
    y: Values,
    m: int,
    steps: int,
    seed: int,
    *,
    validation: tuple[Inputs, Values] | None = None,
    variances: Inputs | None = None,
    omega: Values | None = None,
    heteroscedastic: bool = True,
    noise_link: str = "exp",
) -> Learned:
    """Fit GPVC without a linear mean, which is absent from the equations of chapter 5.

    Args:
        x: Inputs, NaN where missing (5.86).
        y: Targets.
        m: Number of basis functions.
        steps: Maximum steps of L-BFGS.
        seed: Seed of the initial centers.
        validation: Rows whose log-likelihood selects the parameters among the steps; None for the
            last parameters.
        variances: Variances of the inputs (5.72).
        omega: Weights of the rows (3.20).
        heteroscedastic: Whether the noise varies with the inputs.
        noise_link: See `GPz`.
    """
    model = GPz(x.shape[1], m, "VC", heteroscedastic, joint_mean=False, noise_link=noise_link)
    center, scale = np.nanmean(x, 0), np.nanstd(x, 0)
    learned = Learned(model, center, scale, float(y.mean()), float(y.std()))
    rows, targets = learned.inner(x), torch.tensor((y - learned.mean) / learned.deviation)
    noise = None if variances is None else torch.tensor(variances / scale**2)
    weights = None if omega is None else torch.tensor(omega)
    model.init_from_data(rows, targets, torch.Generator().manual_seed(seed))
    trainer = GPzTrainer(model, rows, targets, weights, noise)
    best, best_state = -math.inf, dict[str, Tensor]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # jitter at a step
        for _ in range(steps):
            trainer.step()
            if validation is not None:
                model.take_posterior(trainer.log_evidence.posterior())
                score = likelihood(learned.predict(validation[0]), validation[1])
                if score > best:
                    best, best_state = score, {k: v.clone() for k, v in model.state_dict().items()}
            if trainer.stalled:
                break
    if best_state:
        model.load_state_dict(best_state)
    model.fit_posterior(rows, targets, weights, noise, mixture="basis")
    return learned


def likelihood(prediction: GPzPrediction, y: Values) -> float:
    """Mean log-likelihood under Gaussians with the predicted moments (Table 6.6)."""
    return metrics.mean_log_likelihood(y, prediction.mean.numpy(), prediction.variance.numpy())

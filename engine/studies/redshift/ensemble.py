"""The predictor of a fitted redshift study: one GPz or a mixture of several."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from scant.models.gpz.input_density import Mixture, fit_mixture, single_gaussian
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import Components, GPzPrediction
from scant.models.gpz.weights import positive_moments
from scant.studies.protocol import Tensors, part
from torch import Tensor

# Components of the inputs' density that missing values are filled with. On SDSS galaxies with two
# of five bands missing 8, 15, 25 and 40 gave RMSE .083, .091, .088, .088: more only follow noise.
DENSITY_COMPONENTS = 8


class Located(GPzPrediction):
    """A prediction that can be moved to the CPU."""

    def cpu(self) -> Located:
        """The same numbers, where NumPy can read them."""
        return Located(
            self.mean.cpu(),
            self.model_variance.cpu(),
            self.noise_variance.cpu(),
            self.input_variance.cpu(),
        )


class Target(NamedTuple):
    """From the target's own unit to the standardized scale of the model, and back."""

    centre: float
    scale: float
    positive: bool

    @classmethod
    def fit(cls, z: Float[Tensor, " n"], positive: bool) -> Target:
        """Mean and deviation of the target, or of its logarithm (3.13)."""
        z = z.log() if positive else z
        scale = float(z.std())
        return cls(float(z.mean()), scale if scale > 0 else 1.0, positive)

    def standardize(self, z: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        return ((z.log() if self.positive else z) - self.centre) / self.scale

    def restore(self, prediction: GPzPrediction) -> Located:
        """A prediction in the target's unit; log-normal variances keep their parts' proportions."""
        mean = prediction.mean * self.scale + self.centre
        parts = [
            part * self.scale**2
            for part in (
                prediction.model_variance,
                prediction.noise_variance,
                prediction.input_variance,
            )
        ]
        if self.positive:
            whole = parts[0] + parts[1] + parts[2]
            moments = positive_moments(mean, whole)
            parts = [part * moments.variance / whole for part in parts]
            mean = moments.mean
        return Located(mean, *parts)

    def log_density(self, z: Float[Tensor, " n"], prediction: GPzPrediction) -> Float[Tensor, " n"]:
        """ln p(z), in nats, of a Gaussian (or log-normal) prediction."""
        away = (self.standardize(z) - prediction.mean).square() / prediction.variance
        scale = prediction.variance.log() + 2 * math.log(self.scale) + math.log(2 * math.pi)
        return -0.5 * (away + scale) - (z.log() if self.positive else 0.0)


class Members:
    """Fitted models of the same inputs x, averaged as an equal mixture of their predictions.

    Their disagreement counts as model variance: with more data they would agree.
    """

    def __init__(self, models: list[GPz]) -> None:
        self.models = models

    @classmethod
    @torch.no_grad()
    def of(cls, models: list[GPz], x: Float[Tensor, "n d"]) -> Members:
        """Members that share one density of the inputs, fitted by EM to all rows (5.22-5.34)."""
        m = len(models[0].centres)
        whole = single_gaussian(x)
        k = min(m, DENSITY_COMPONENTS)
        chosen = torch.linspace(0, m - 1, k, device=x.device).round().long()
        complete = x[~x.isnan().any(1)]
        centres = models[0].centres[chosen]
        if len(complete) >= k:  # rows spread over the data are a sounder start than far centres
            centres = complete[torch.linspace(0, len(complete) - 1, k).round().long()]
        start = Mixture(
            x.new_full((k,), -math.log(k)),
            centres,
            whole.precisions.expand(k, -1, -1) * k ** (2 / x.shape[1]),
        )
        result = fit_mixture(x, start, free=True)
        for model in models:
            model.mixture_log_weights = result.log_weights
            model.mixture_means = result.means
            model.mixture_precisions = result.precisions
            model.input_mean, model.input_precision = whole.means[0], whole.precisions[0]
        return cls(models)

    def predict(self, x: Float[Tensor, "n d"], noise: Float[Tensor, "n d"] | None) -> GPzPrediction:
        """Moments of the mixture of all members, NaN in x where missing."""
        prediction = [model.predict(x, noise) for model in self.models]
        mean = torch.stack([f.mean for f in prediction])

        def average(part: str) -> Tensor:
            return torch.stack([getattr(f, part) for f in prediction]).mean(0)

        return GPzPrediction(
            mean.mean(0),
            average("model_variance") + mean.var(0, correction=0),
            average("noise_variance"),
            average("input_variance"),
        )

    def components(self, x: Float[Tensor, "n d"], noise: Float[Tensor, "n d"] | None) -> Components:
        """All components of all members, their weights shared out equally."""
        results = [model.predict_components(x, noise) for model in self.models]
        columns = [torch.cat(parts, dim=1) for parts in zip(*(vars(f).values() for f in results))]
        return Components(columns[0] / len(results), *columns[1:])

    def tensors(self) -> Tensors:
        """Everything that prediction needs, by member."""
        return {
            f"{i}.{name}": value
            for i, model in enumerate(self.models)
            for name, value in model.state_dict().items()
        }

    @classmethod
    def restore(cls, tensors: Tensors, count: int, settings: Any, device: torch.device) -> Members:
        """The inverse of `tensors`."""
        models = []
        for i in range(count):
            state = part(tensors, f"{i}.")
            m, d = state["centres"].shape
            model = GPz(d, m, "VC", settings.heteroscedastic, settings.joint_mean)
            for name in ("mixture_log_weights", "mixture_means", "mixture_precisions"):
                setattr(model, name, torch.empty_like(state[name]))
            model.load_state_dict(state)
            models.append(model.to(device))
        return cls(models)

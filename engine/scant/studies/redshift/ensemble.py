"""The predictor of a fitted redshift study: one GPz or a mixture of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.change_of_basis import structure_of
from scant.models.gpz.input_density import (
    chosen_components,
    fill,
    fit_mixture,
    single_gaussian,
    spread_start,
)
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import Components, GPzPrediction
from scant.studies.auto import AUTO
from scant.studies.protocol import Tensors, part
from scant.studies.redshift.components import MIN_COLUMNS
from scant.studies.redshift.stack import Stack

# Components of the inputs' density that missing values are filled with, unless `missing` is auto
# and left-out rows choose. On SDSS galaxies with two of five bands missing 8, 15, 25 and 40 gave
# RMSE .083, .091, .088, .088: more only follow noise.
DENSITY_COMPONENTS = 8
FEW_MISSING = 0.1  # of a row's columns


class Members:
    """Fitted models of the same inputs x, averaged as an equal mixture of their predictions.

    Their disagreement counts as model variance: with more data they would agree.

    Args:
        models: Of the same coordinates.
        stack: What their average is averaged with.
    """

    def __init__(self, models: list[GPz], stack: Stack | None = None) -> None:
        self.models, self.stack = models, stack

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        models: list[GPz],
        x: Float[Tensor, "n d"],
        stack: Stack | None = None,
        missing: str = "integrate",
    ) -> Members:
        """Members that share one density of the inputs, fitted by EM to all rows (5.22-5.34).

        Args:
            models: Of the coordinates x.
            x: Rows, NaN where missing.
            stack: What stands beside the models.
            missing: As the setting says; "basis functions" gives each model a density of its own,
                unless it is trained on other coordinates than x (`GPz.projection`).
        """
        m = len(models[0].centres)
        whole = single_gaussian(x)
        k = 1 if missing == "one Gaussian" else min(m, DENSITY_COMPONENTS)
        if missing == AUTO:
            k = min(m, chosen_components(x))
        complete = x[~x.isnan().any(1)]
        if len(complete) < k:  # where the models have other coordinates, their centres are no rows
            first = models[0]
            complete = first.centres if first.projection is None else fill(x, whole)
        # Rows spread over the data are a sounder start than far centres.
        start = spread_start(whole, complete, k)
        result = fit_mixture(x, start, free=True)
        for model in models:
            model.mixture_log_weights = result.log_weights
            model.mixture_means = result.means
            model.mixture_precisions = result.precisions
            model.input_mean, model.input_precision = whole.means[0], whole.precisions[0]
            if missing == "basis functions" and model.projection is None:
                model.mixture_log_weights = x.new_zeros(m)
                model.mixture_means = x.new_zeros(m, x.shape[1])
                model.mixture_precisions = x.new_zeros(m, x.shape[1], x.shape[1])
                model.fit_density(x, free=False)
        return cls(models, stack)

    def predict(self, x: Float[Tensor, "n d"], noise: Float[Tensor, "n d"] | None) -> GPzPrediction:
        """Moments of the mixture of all members, NaN in x where missing."""
        told, apart = _averaged([model.predict(x, noise) for model in self.models])
        return self.stack.mixed(self._asked(x), told, apart) if self.stack else told

    def told(
        self, x: Float[Tensor, "n d"], noise: Float[Tensor, "n d"] | None
    ) -> tuple[GPzPrediction, Components]:
        """`predict`, and all components of all members, their weights shared out equally."""
        results = [model.predict_components(x, noise) for model in self.models]
        told, apart = _averaged([found.collapse() for found in results])
        parts = _joined(results)
        if self.stack is None:
            return told, parts
        whole = self._asked(x)
        asked = self.stack.asked(whole, told.noise_variance)
        mixed = self.stack.mixed(whole, told, apart, asked)
        noise_variance, lacking = told.noise_variance, told.input_variance
        return mixed, self.stack.components(whole, parts, noise_variance, asked, lacking)

    def _asked(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Rows as the models beside GPz are asked.

        A few missing columns of many hardly move what they say: their expectation stands for them
        there, as in training (`fold.completes`), and the variance that they cause is GPz's.
        """
        first = self.models[0]
        if first.projection is None or x.shape[1] <= MIN_COLUMNS:
            return x
        few = x.isnan().sum(1) <= FEW_MISSING * x.shape[1]
        whole = x.clone()
        if bool(few.any()):
            whole[few] = first.complete(x[few])
        return whole

    def tensors(self) -> Tensors:
        """Everything that prediction needs, by member."""
        own = {
            f"{i}.{name}": value
            for i, model in enumerate(self.models)
            for name, value in model.state_dict().items()
        }
        beside = self.stack.tensors() if self.stack else {}
        return own | {f"stack.{name}": value for name, value in beside.items()}

    @classmethod
    def restore(
        cls,
        tensors: Tensors,
        count: int,
        settings: Any,
        device: torch.device,
        stack: Mapping[str, Any] | None,
    ) -> Members:
        """The inverse of `tensors`; `stack` is what the stack's `meta` gave, if there is one."""
        models = []
        for i in range(count):
            state = part(tensors, f"{i}.")
            m, d = state["centres"].shape
            shape, projection = structure_of(state["gamma"]), state.get("projection")
            model = GPz(
                d,
                m,
                shape,
                settings.heteroscedastic,
                settings.joint_mean,
                projection=None if projection is None else torch.empty_like(projection),
            )
            for name in ("mixture_log_weights", "mixture_means", "mixture_precisions"):
                setattr(model, name, torch.empty_like(state[name]))
            model.load_state_dict(state)
            models.append(model.to(device))
        return cls(models, Stack.read(part(tensors, "stack."), stack))


def _averaged(
    prediction: Sequence[GPzPrediction],
) -> tuple[GPzPrediction, Float[Tensor, " n"]]:
    """Moments of an equal mixture, and the part of its model variance that is disagreement."""
    mean = torch.stack([f.mean for f in prediction])

    def average(part: str) -> Tensor:
        return torch.stack([getattr(f, part) for f in prediction]).mean(0)

    apart = mean.var(0, correction=0)
    told = GPzPrediction(
        mean.mean(0),
        average("model_variance") + apart,
        average("noise_variance"),
        average("input_variance"),
    )
    return told, apart


def _joined(results: Sequence[Components]) -> Components:
    """All components, the weights shared out equally."""
    columns = [torch.cat(parts, dim=1) for parts in zip(*(vars(f).values() for f in results))]
    return Components(columns[0] / len(results), *columns[1:])

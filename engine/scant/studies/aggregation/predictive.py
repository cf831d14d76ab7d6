"""Predictive distributions of a task, in its unit, for any likelihood."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.mtgpa.counts import Counts
from scant.models.mtgpa.likelihoods import Bernoulli, Categorical, HeteroscedasticGaussian
from scant.predictive import (
    BernoulliPredictive,
    CategoricalPredictive,
    CountsPredictive,
    MixturePredictive,
    ValuePredictive,
)
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.fitted import FittedMTGPA
from scant.studies.aggregation.supports import Supports
from scant.studies.predicted_table import class_columns, interval_columns


@torch.no_grad()
def class_predictive(fitted: FittedMTGPA, supports: Tensor, task: int) -> CategoricalPredictive:
    """Predict the classes of a categorical task at supports, in the order of the model."""
    likelihood = fitted.model.likelihoods[task]
    assert isinstance(likelihood, Categorical)
    parts = fitted.model.log_rates(supports, task)
    probabilities = supports.new_zeros(likelihood.classes, len(supports))
    for weight, q in parts:
        probabilities += weight * likelihood.probabilities(q)
    return CategoricalPredictive(_array(probabilities.T))


@torch.no_grad()
def predictive(
    fitted: FittedMTGPA,
    supports: Tensor,
    task: int,
    exposure: Tensor | None = None,
    known_noise: Tensor | None = None,
) -> ValuePredictive:
    """Predict new observations of a task at supports (arguments of `TaskGP.predict`).

    For a categorical task use `class_predictive`.
    """
    model, likelihood = fitted.model, fitted.model.likelihoods[task]
    exposures = supports.new_ones(len(supports)) if exposure is None else exposure
    unit = np.broadcast_to(_array(fitted.unit(task, exposure)), len(supports))
    calibrated = fitted.averaged(supports, task, exposure, known_noise)
    if calibrated is not None or not isinstance(
        likelihood, Bernoulli | Counts | HeteroscedasticGaussian
    ):
        prediction = calibrated
        if prediction is None:
            prediction = model.mixture(supports, task, exposure, known_noise).predictive()
        return prediction.scaled(unit, fitted.scale[task].offset, log=False)
    if isinstance(likelihood, Bernoulli):
        return BernoulliPredictive(_array(model.predict(supports, task, exposure).mean))
    parts = model.log_rates(supports, task)  # of two functions, the first is the mean
    if isinstance(likelihood, HeteroscedasticGaussian):
        noise = 0.0 if known_noise is None else known_noise
        columns = [
            torch.stack([(w * share).expand_as(mean), mean, variance + noise])
            for w, q in parts
            for share, mean, variance in [likelihood.components(q, exposures)]
        ]
        weights, means, variances = (_array(c.T) for c in torch.cat(columns, dim=1))
        of_nodes = MixturePredictive(weights, means, variances)
        return of_nodes.scaled(unit, fitted.scale[task].offset, log=False)
    log_rates = torch.stack([q.mean[0] + exposures.log() for _, q in parts], 1)
    spread = torch.stack([q.covariance[0, 0] for _, q in parts], 1).clamp(min=0)
    dispersion = float(getattr(likelihood, "dispersion", lambda: 0.0)())
    shares = np.tile([w for w, _ in parts], (len(supports), 1))
    return CountsPredictive(shares, _array(log_rates), _array(spread), unit, dispersion)


def predicted_columns(fitted: FittedMTGPA, supports: Supports) -> dict[str, np.ndarray]:
    """Moments and intervals of rows, named as in the catalog (`Entry.predicted`)."""
    columns = dict[str, np.ndarray]()
    classes = fitted.metadata.get("class_names", {})
    for t, task in enumerate(fitted.tasks):
        in_task = supports.task == t
        if not in_task.any():
            continue
        exposure = torch.as_tensor(supports.exposure[in_task]).to(fitted.device)
        boxes = space.supports_of(supports, in_task, fitted.device)
        known_noise = fitted.known(supports, in_task, t)
        mean, std, new = fitted.moments(boxes, t, exposure, known_noise)
        task_columns = {
            **{"mean": mean, "std": std, "std_y": new, "std_model": std},
            "std_noise": np.sqrt(np.maximum(new**2 - std**2, 0)),
        }
        if task in classes:
            prediction = class_predictive(fitted, boxes, t)
            task_columns |= interval_columns(partial(_no_quantiles, len(prediction)))
            names, p = classes[task], prediction.probabilities
            best = [names[c] for c in p.argmax(1)]
            task_columns |= class_columns(best, p.max(1), dict(zip(names, p.T)))
        else:
            task_columns |= interval_columns(
                predictive(fitted, boxes, t, exposure, known_noise).quantile
            )
        for name, values in task_columns.items():
            empty = np.full(len(supports), None if values.dtype == object else np.nan)
            columns.setdefault(name, empty)[in_task] = values
    return columns


def _no_quantiles(
    count: int, probabilities: Float[np.ndarray, " q"]
) -> Float[np.ndarray, "q {count}"]:
    return np.full((len(probabilities), count), np.nan)


def _array(values: Tensor | float) -> np.ndarray:
    return values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values, float)

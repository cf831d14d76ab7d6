"""Empirical Bayes standardization of outputs with few rows.

Mean and standard deviation of eight values are imprecise, and no model of standardized values can
correct them. Means and log variances are shrunk towards those of all outputs by a random effects
model (DerSimonian and Laird, Meta-analysis in clinical trials, 1986); there is little shrinkage if
outputs differ by more than chance, for example in their units.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import digamma, polygamma

from scant.models.replicated.data import Data, Scale

MIN_OUTPUTS = 3  # outputs needed to estimate the variance between them

Values = Float[np.ndarray, " d"]


def moderated(scale: Scale, data: Data) -> Scale:
    """Shrink the standardization of the outputs towards their common values.

    Args:
        scale: Standardization of the data.
        data: Data in the table's units.
    """
    count = torch.bincount(data.output, minlength=data.n_outputs).cpu().numpy()
    centre, width = (v.cpu().numpy().copy() for v in (scale.y_centre, scale.y_width))
    square = (data.y - scale.y_centre[data.output]).square()
    spread = torch.zeros_like(scale.y_centre).index_add(0, data.output, square).cpu().numpy()
    estimable = (count > 1) & (spread > 1e-24)
    if estimable.sum() < MIN_OUTPUTS:
        return scale
    half_df = (count[estimable] - 1) / 2
    log_variance = np.log(spread[estimable] / 2) - digamma(half_df)  # unbiased
    width[estimable] = np.exp(shrunk(log_variance, polygamma(1, half_df)) / 2)
    centre[estimable] = shrunk(centre[estimable], width[estimable] ** 2 / count[estimable])
    y_centre, y_width = (torch.as_tensor(v).to(scale.y_centre) for v in (centre, width))
    return scale._replace(y_centre=y_centre, y_width=y_width)


def shrunk(value: Values, error: Values) -> Values:
    """Shrink estimates towards their weighted mean by a random effects model.

    Args:
        value: Unbiased estimates.
        error: Variances of the estimates.
    """
    between = max(float(value.var(ddof=1) - error.mean()), 0.0)
    weight = 1 / (between + error)
    overall = (weight * value).sum() / weight.sum()
    return np.asarray(overall + between * weight * (value - overall))

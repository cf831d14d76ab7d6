"""Centres and widths of outputs with few rows, drawn together as far as the outputs are alike.

Of eight values neither mean nor deviation is known well, and what is wrong with them no model that
sees standardized values can mend. Means and log variances are shrunk towards those of all outputs
by random effects (DerSimonian and Laird, Meta-analysis in clinical trials, 1986): hardly at all
where outputs differ by more than chance, so that their units do not matter.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import digamma, polygamma

from scant.models.replicated.data import Data, Scale

LEAST_OUTPUTS = 3  # that tell how alike outputs are

Values = Float[np.ndarray, " d"]


def moderated(scale: Scale, data: Data) -> Scale:
    """A scale whose outputs borrow from each other.

    Args:
        scale: Of these rows.
        data: In the table's units.
    """
    count = torch.bincount(data.output, minlength=data.n_outputs).cpu().numpy()
    centre, width = (v.cpu().numpy().copy() for v in (scale.y_centre, scale.y_width))
    square = (data.y - scale.y_centre[data.output]).square()
    spread = torch.zeros_like(scale.y_centre).index_add(0, data.output, square).cpu().numpy()
    told = (count > 1) & (spread > 1e-24)
    if told.sum() < LEAST_OUTPUTS:
        return scale
    half = (count[told] - 1) / 2  # of the degrees of freedom
    log = np.log(spread[told] / 2) - digamma(half)  # unbiased
    width[told] = np.exp(shrunk(log, polygamma(1, half)) / 2)
    centre[told] = shrunk(centre[told], width[told] ** 2 / count[told])
    y_centre, y_width = (torch.as_tensor(v).to(scale.y_centre) for v in (centre, width))
    return scale._replace(y_centre=y_centre, y_width=y_width)


def shrunk(value: Values, error: Values) -> Values:
    """Values drawn together by random effects.

    Args:
        value: Unbiased ones.
        error: Their variances.
    """
    between = max(float(value.var(ddof=1) - error.mean()), 0.0)
    weight = 1 / (between + error)
    overall = (weight * value).sum() / weight.sum()
    return np.asarray(overall + between * weight * (value - overall))

"""p(z) of a table's rows as a few Gaussians."""

from __future__ import annotations

import pandas as pd

from scant.studies.densities import Densities, few_gaussians
from scant.studies.predicted_table import checked
from scant.studies.redshift.fitted import FittedGPz


def densities(fitted: FittedGPz, table: pd.DataFrame, most: int) -> Densities:
    """The whole mixture of each row (of averaged models, and of what is missing), reduced.

    Args:
        fitted: The models.
        table: Rows; an empty cell is a missing value.
        most: How many Gaussians a row may have.

    Raises:
        BadInput: A cell is no number that can be computed with.
    """
    features, target = fitted.features, fitted.target
    query = checked(table, gaps=[*features.bands, *(f"{b}_err" for b in features.errors)])
    columns = vars(fitted.components(query)).values()
    weights, means, *variances = (part.cpu().numpy() for part in columns)
    return few_gaussians(
        weights,
        means * target.scale + target.centre,
        sum(variances) * target.scale**2,
        most,
        positive=target.positive,
    )

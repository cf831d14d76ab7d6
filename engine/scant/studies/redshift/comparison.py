"""The redshift study as a plain regression, for rivals."""

from __future__ import annotations

import pandas as pd

from scant.rivals.comparison import Comparison
from scant.studies.redshift.beside import blocks_of, table_of
from scant.studies.redshift.fitted import FittedGPz, ScoredPredictive


def comparison(fitted: FittedGPz, learn: pd.DataFrame, scored: ScoredPredictive) -> Comparison:
    """Bands and errors to the target, in its unit.

    Args:
        fitted: This run's model.
        learn: The rows learned from.
        scored: The model's predictions of the held-out rows.
    """
    return Comparison(
        x=table_of(fitted.features, learn),
        y=learn[fitted.settings.target].to_numpy(float),
        x_test=table_of(fitted.features, fitted.held),
        y_test=scored.y,
        own=scored.predictive,
        scores=("RMSE", "mean log-likelihood", "CRPS"),
        replaces=True,
        by=fitted.settings.target,
        blocks=blocks_of(fitted.features),
    )

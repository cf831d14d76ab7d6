"""The redshift study as a plain regression, for rivals."""

from __future__ import annotations

import pandas as pd

from scant.rivals.comparison import Comparison
from scant.studies.redshift.beside import blocks_of, own_answer, table_of
from scant.studies.redshift.fitted import FittedGPz, Judged


def comparison(fitted: FittedGPz, learn: pd.DataFrame, judged: Judged) -> Comparison:
    """Bands and errors to the target, in its unit.

    Args:
        fitted: This run's model.
        learn: The rows learned from.
        judged: What the model says of the held-out rows.
    """
    return Comparison(
        x=table_of(fitted.features, learn),
        y=learn[fitted.settings.target].to_numpy(float),
        x_test=table_of(fitted.features, fitted.held),
        y_test=judged.y,
        own=own_answer(judged),
        scores=("RMSE", "mean log-likelihood", "CRPS"),
        replaces=True,
        by=fitted.settings.target,
        blocks=blocks_of(fitted.features),
    )

"""The redshift study as a plain regression, for rivals."""

from __future__ import annotations

import pandas as pd
from scant.rivals.comparison import Comparison, Prediction
from scant.studies.redshift.fitted import FittedGPz
from scant.studies.redshift.report import table_of


def comparison(fitted: FittedGPz, learn: pd.DataFrame) -> Comparison:
    """Bands and errors to the target, in its unit; `learn` are the rows learned from."""
    judged = fitted.judge(fitted.held)
    return Comparison(
        x=table_of(fitted.features, learn),
        y=learn[fitted.settings.target].to_numpy(float),
        x_test=table_of(fitted.features, fitted.held),
        y_test=judged.y,
        own=Prediction(judged.told.mean.numpy(), judged.density),
        scores=("RMSE", "mean log-likelihood"),
        replaces=True,
    )

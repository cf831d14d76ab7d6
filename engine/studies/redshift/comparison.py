"""The redshift study as a plain regression, for rivals."""

from __future__ import annotations

import pandas as pd
from scant.rivals.comparison import Comparison, gaussian
from scant.studies.redshift.fitted import FittedGPz
from scant.studies.redshift.report import table_of


def comparison(fitted: FittedGPz, learn: pd.DataFrame) -> Comparison:
    """Bands and errors to the target, in its unit; `learn` are the rows learned from."""
    y, y_test = (t[fitted.settings.target].to_numpy(float) for t in (learn, fitted.held))
    prediction = fitted.ask(fitted.held)
    return Comparison(
        x=table_of(fitted.features, learn),
        y=y,
        x_test=table_of(fitted.features, fitted.held),
        y_test=y_test,
        own=gaussian(y_test, prediction.mean.numpy(), prediction.variance.numpy()),
        scores=("RMSE", "mean log-likelihood"),
        replaces=True,
    )

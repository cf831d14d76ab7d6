"""The figures a redshift run ends with: ours, the baselines' and the published ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float
from numpy import ndarray
from scipy.special import ndtri
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from scant import metrics
from scant.deadline import NEVER, Deadline
from scant.events import Metric, Report
from scant.predictive import MixturePredictive
from scant.predictive.mixture_scores import pit_ks
from scant.rivals.comparison import row_scores
from scant.studies.redshift.beside import MISSING_ROWS, beside, summary, table_of
from scant.studies.redshift.capacity import RIVAL_ROWS
from scant.studies.redshift.fitted import SHOWN, FittedGPz, ScoredPredictive
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings
from scant.verdict import Verdict

BOOTSTRAPS = 200
SHARES = np.arange(0.05, 1.001, 0.05)
# Almosallam 2017, Table 6.7: SDSS-DR12, 100,000 galaxies to train on, m = 100.
PUBLISHED: dict[str, tuple[float, float, float, float]] = {
    "ANNz2": (0.0583, 1.6536, 89.08, 98.77),
    "TPZ (forest)": (0.0855, 1.2096, 68.47, 98.69),
    "GPVL": (0.0568, 1.9021, 90.09, 98.72),
    "GPVD": (0.0547, 1.9758, 91.52, 98.80),
    "GPVC": (0.0540, 2.0024, 91.97, 98.93),
}
Rows = Float[ndarray, " n"]
NAMES = ("RMSE", "mean log-likelihood", "F_0.05", "F_0.15")


def write_report(
    fitted: FittedGPz,
    learn: pd.DataFrame,
    scored: ScoredPredictive,
    deadline: Deadline = NEVER,
) -> Report:
    """Metrics of all test rows, arrays of the first `SHOWN`, and what they say in words.

    Args:
        fitted: This run's model.
        learn: Training and validation rows, which the baselines learn from too.
        scored: The model's predictions of the test rows.
        deadline: Of baselines and of curves of missing bands.
    """
    y, mean, predictive = scored.y, scored.mean, scored.predictive
    # Quantiles of a mixture as those of a Gaussian, which `coverage` takes.
    covered = metrics.coverage(ndtri(scored.pit), np.zeros(len(y)), np.ones(len(y)))
    rivals = beside(fitted, learn, scored, deadline)
    floor = line(fitted.features, learn, fitted.held, fitted.settings.target)
    rows = own_metrics(scored, covered, fitted.settings.seed)
    line_scores = row_scores(y, MixturePredictive.gaussian(*floor))
    for name, own in {**rivals.whole, "linear regression": line_scores}.items():
        assert own.log_density is not None
        assert own.crps is not None
        values = *four(y, own.value, own.log_density), float(own.crps.mean())
        rows += [Metric(name, n, v, source="baseline") for n, v in zip((*NAMES, "CRPS"), values)]
    photometry = is_photometry(fitted.features, fitted.settings)
    if photometry:
        rows += [
            Metric(name, n, v, source="published")
            for name, values in PUBLISHED.items()
            for n, v in zip(NAMES, values)
        ]
    s = slice(0, SHOWN)
    rows_of = {
        "z_true": y,
        "z_mean": mean,
        "std_model": np.sqrt(predictive.model_variance),
        "std_noise": np.sqrt(predictive.noise_variance),
        "std_input": np.sqrt(predictive.input_variance),
        "pit": scored.pit,
        "features": fitted.held[list(fitted.features.bands)].to_numpy(float),
    }
    arrays = {
        **{name: of_row[s] for name, of_row in rows_of.items()},
        "coverage": covered,
        "bins": metrics.redshift_bins(y, mean),
        "bin_scores": by_bins(scored),
        "kept": metrics.by_confidence(y, mean, predictive.variance, scored.log_density, SHARES),
    }
    arrays["missing"], arrays["missing_scores"] = rivals.missing, rivals.scores
    notes = notes_of(predictive, arrays["coverage"], len(learn), photometry)
    return Report(tuple(rows), arrays, (*notes, *rivals.notes), Verdict(parts=rivals.parts))


def four(
    y: Float[ndarray, " n"], mean: Float[ndarray, " n"], density: Float[ndarray, " n"]
) -> tuple[float, float, float, float]:
    """The metrics of Table 6.7, in the order of `NAMES`; `density` is the log density of y."""
    return (
        metrics.rmse(y, mean),
        float(density.mean()),
        metrics.fraction_within(y, mean, 0.05),
        metrics.fraction_within(y, mean, 0.15),
    )


def own_metrics(
    scored: ScoredPredictive, covered: Float[ndarray, "2 c"], seed: int
) -> list[Metric]:
    """This run's metrics; the spread is the standard error over bootstrap samples of test rows."""
    y, mean, density = scored.y, scored.mean, scored.log_density
    generator = np.random.default_rng(seed)
    draws = generator.integers(len(y), size=(BOOTSTRAPS, len(y)))
    spread = np.std([four(y[d], mean[d], density[d]) for d in draws], axis=0)
    rows = [
        Metric("this run", n, v, float(e)) for n, v, e in zip(NAMES, four(y, mean, density), spread)
    ]
    error = metrics.normalized_error(y, mean)
    rows += [
        Metric("this run", "bias", float(error.mean())),
        Metric("this run", "median bias", float(np.median(error))),
        Metric("this run", "sigma_MAD", metrics.sigma_mad(error)),
        Metric("this run", "sigma_IQR", metrics.sigma_iqr(error)),
        Metric("this run", "outlier rate", metrics.outlier_rate(error)),
        Metric("this run", "outliers beyond 0.15", metrics.far_share(error, 0.15)),
        Metric("this run", "outliers beyond 3 sigma", metrics.far_share(error)),
        Metric("this run", "CRPS", float(scored.scores.crps.mean())),
        Metric("this run", "CDE loss", float(scored.scores.cde.mean())),
        Metric("this run", "PIT-KS", pit_ks(scored.pit)),
    ]
    rows += [
        Metric("this run", f"coverage of the {100 * level:.0f}% interval", float(100 * share))
        for level, share in covered.T
    ]
    return rows


def line(
    features: Features, learn: pd.DataFrame, held: pd.DataFrame, target: str
) -> tuple[Rows, Rows]:
    """Mean and variance by a straight line, the floor that all others stand on.

    Missing values are taken for their mean; the error is that of the rows learned from.
    """
    learn = learn.iloc[:RIVAL_ROWS]
    x, y = table_of(features, learn), learn[target].to_numpy(float)
    model = make_pipeline(SimpleImputer(keep_empty_features=True), LinearRegression()).fit(x, y)
    free = max(len(y) - x.shape[1] - 1, 1)
    variance = float(((y - model.predict(x)) ** 2).sum()) / free
    mean = model.predict(table_of(features, held))
    return mean, np.full(len(mean), variance)


def by_bins(scored: ScoredPredictive) -> Float[ndarray, "6 q"]:
    """Scores of densities in the bins of `metrics.redshift_bins`: their edges, then `summary`."""
    found = []
    for low, high in metrics.bins_of(scored.y):
        found.append([low, high, *summary(scored, (scored.y >= low) & (scored.y < high))])
    return np.array(found).reshape(-1, 6).T


def is_photometry(features: Features, settings: RedshiftSettings) -> bool:
    """Whether the published table says anything of this data: five bands, target a redshift."""
    return len(features.bands) == 5 and settings.target == "z"


def notes_of(
    predictive: MixturePredictive, covered: Float[ndarray, "2 c"], n_train: int, photometry: bool
) -> tuple[str, ...]:
    """What a person should take home, in words."""
    model, whole = float(predictive.model_variance.mean()), float(predictive.variance.mean())
    level, held = covered[:, -1]
    notes = [
        f"More data like these would remove about {100 * model / whole:.0f}% of the predictive "
        "variance; the rest needs better or further measurements.",
        f"The {100 * level:.0f}% intervals hold {100 * held:.1f}% of the test rows.",
    ]
    if n_train > RIVAL_ROWS:
        notes.append(f"The baselines were fitted to the first {RIVAL_ROWS:,} rows only.")
    if len(predictive) > MISSING_ROWS:
        notes.append(
            f"The curves of missing bands are of the first {MISSING_ROWS:,} of "
            f"{len(predictive):,} test rows; forest and boosting have learned from copies "
            "of rows with bands removed."
        )
    if photometry:
        notes.append(
            "The published figures are of 100,000 SDSS-DR12 galaxies and 100 basis functions: "
            "another sample than this one."
        )
    return tuple(notes)

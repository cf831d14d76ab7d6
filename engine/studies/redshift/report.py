"""The figures a redshift run ends with: ours, the baselines' and the published ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from numpy import ndarray
from scant import metrics
from scant.density_scores import Scores, pit_ks
from scant.events import Metric, Report
from scant.models.gpz.prediction import GPzPrediction
from scant.studies.redshift.fitted import SHOWN, FittedGPz, Judged
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings
from scipy.special import ndtri
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline

FOREST_ROWS = 20_000  # more only make the baseline slow
MISSING_ROWS = 500  # test rows from which bands are removed
PAIRS = 20_000  # of basis functions, in all models: a pattern of missing bands takes so long
PATTERNS = 5  # ways in which bands are missing, for each count of them: more take time only
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


def write_report(fitted: FittedGPz, learn: pd.DataFrame) -> Report:
    """Metrics of all test rows, arrays of the first `SHOWN`, and what they say in words.

    Args:
        learn: Training and validation rows, which the baselines learn from too.
    """
    judged = fitted.judge(fitted.held)
    y, prediction, density, pit, scores = judged
    mean, variance = prediction.mean.numpy(), prediction.variance.numpy()
    covered = metrics.coverage(y, mean, variance)
    if fitted.members.stack is not None:  # of the mixture: its quantiles as those of a normal one
        covered = metrics.coverage(ndtri(pit), np.zeros_like(pit), np.ones_like(pit))
    forest, line = baselines(fitted.features, learn, fitted.settings)
    rows = own_metrics(judged, covered, fitted.settings.seed)
    for name, model in (("random forest", forest), ("linear regression", line)):
        guess = model.predict(table_of(fitted.features, fitted.held))
        spread = float(np.std(y - guess))  # the forest brings no deviation of its own
        rows += [
            Metric(name, n, v, source="baseline")
            for n, v in zip(
                NAMES, four(y, guess, metrics.log_density(y, guess, np.full_like(y, spread**2)))
            )
        ]
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
        "std_model": prediction.model_variance.sqrt().numpy(),
        "std_noise": prediction.noise_variance.sqrt().numpy(),
        "std_input": prediction.input_variance.sqrt().numpy(),
        "pit": pit,
        "features": fitted.held[list(fitted.features.bands)].to_numpy(float),
    }
    arrays = {
        **{name: of_row[s] for name, of_row in rows_of.items()},
        "coverage": covered,
        "bins": metrics.redshift_bins(y, mean),
        "bin_scores": by_bins(y, density, pit, scores),
        "kept": metrics.by_confidence(y, mean, variance, density, SHARES),
    }
    arrays["missing"], arrays["missing_scores"] = with_bands_missing(fitted, forest)
    notes = notes_of(prediction, arrays["coverage"], len(learn), photometry)
    return Report(tuple(rows), arrays, notes)


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


def own_metrics(judged: Judged, covered: Float[ndarray, "2 c"], seed: int) -> list[Metric]:
    """This run's metrics; the spread is the standard error over bootstrap samples of test rows."""
    y, mean, density = judged.y, judged.told.mean.numpy(), judged.density
    generator = np.random.default_rng(seed)
    draws = generator.integers(len(y), size=(BOOTSTRAPS, len(y)))
    spread = np.std([four(y[d], mean[d], density[d]) for d in draws], axis=0)
    rows = [
        Metric("this run", n, v, float(e)) for n, v, e in zip(NAMES, four(y, mean, density), spread)
    ]
    error = metrics.normalized_error(y, mean)
    rows += [
        Metric("this run", "bias", float(error.mean())),
        Metric("this run", "sigma_MAD", metrics.sigma_mad(error)),
        Metric("this run", "outlier rate", metrics.outlier_rate(error)),
        Metric("this run", "outliers beyond 0.15", metrics.far_share(error, 0.15)),
        Metric("this run", "outliers beyond 3 sigma", metrics.far_share(error)),
        Metric("this run", "CRPS", float(judged.scores.crps.mean())),
        Metric("this run", "CDE loss", float(judged.scores.cde.mean())),
        Metric("this run", "PIT-KS", pit_ks(judged.pit)),
    ]
    rows += [
        Metric("this run", f"coverage of the {100 * level:.0f}% interval", float(100 * share))
        for level, share in covered.T
    ]
    return rows


def baselines(
    features: Features, learn: pd.DataFrame, settings: RedshiftSettings
) -> tuple[Pipeline, Pipeline]:
    """A random forest and a line on the same columns, missing values imputed by their mean."""
    learn = learn.iloc[:FOREST_ROWS]
    X, y = table_of(features, learn), learn[settings.target].to_numpy(float)
    forest = make_pipeline(
        SimpleImputer(keep_empty_features=True),
        RandomForestRegressor(100, min_samples_leaf=3, random_state=settings.seed),
    ).fit(X, y)
    line = make_pipeline(SimpleImputer(keep_empty_features=True), LinearRegression()).fit(X, y)
    return forest, line


def table_of(
    features: Features, table: pd.DataFrame, hidden: Bool[ndarray, "n b"] | None = None
) -> Float[ndarray, "n d"]:
    """What the baselines see: bands and log errors as they are, with `hidden` ones removed."""
    measured = features.measured(table)
    if hidden is not None:
        bands = list(features.bands)
        owner = [*range(len(bands)), *(bands.index(b) for b in features.errors)]
        measured = np.where(hidden[:, owner[: measured.shape[1]]], np.nan, measured)
    return np.where(np.isfinite(measured), measured, np.nan)


def with_bands_missing(
    fitted: FittedGPz, forest: Pipeline
) -> tuple[Float[ndarray, "3 k"], Float[ndarray, "7 k"]]:
    """RMSE with 0, 1, 2, … bands removed at random from each row, ours and the forest's; and ours
    by all other scores.

    Figs. 6.17-6.18. A removed band takes its error along.
    """
    bands = fitted.features.bands
    table = fitted.held.iloc[:MISSING_ROWS].reset_index(drop=True)
    pairs = sum(len(model.centres) ** 2 for model in fitted.members.models)
    patterns = min(max(PAIRS // pairs, 1), PATTERNS)
    generator = np.random.default_rng(fitted.settings.seed)
    results, others = [], []
    for count in range(min(5, len(bands))):
        hidden = hide(generator, len(table), len(bands), count, patterns)
        less = table.copy()
        less[list(bands)] = less[list(bands)].mask(hidden)
        y, told, density, pit, scores = fitted.judge(less)
        theirs = forest.predict(table_of(fitted.features, table, hidden))
        results.append([count, metrics.rmse(y, told.mean.numpy()), metrics.rmse(y, theirs)])
        error = metrics.normalized_error(y, told.mean.numpy())
        point = metrics.sigma_mad(error), metrics.far_share(error, 0.15)
        others.append([count, *point, *summary(density, pit, scores)])
    return np.array(results).T, np.array(others).T


def summary(density: Rows, pit: Rows, scores: Scores) -> tuple[float, float, float, float]:
    """Mean log-likelihood, CRPS and CDE loss of some rows, and the PIT's distance from uniform."""
    return (
        float(density.mean()),
        float(scores.crps.mean()),
        float(scores.cde.mean()),
        pit_ks(pit),
    )


def by_bins(y: Rows, density: Rows, pit: Rows, scores: Scores) -> Float[ndarray, "6 q"]:
    """Scores of densities in the bins of `metrics.redshift_bins`: their edges, then `summary`."""
    found = []
    for low, high in metrics.bins_of(y):
        rows = (y >= low) & (y < high)
        some = Scores(scores.crps[rows], scores.cde[rows])
        found.append([low, high, *summary(density[rows], pit[rows], some)])
    return np.array(found).reshape(-1, 6).T


def hide(
    generator: np.random.Generator, n: int, bands: int, count: int, patterns: int = PATTERNS
) -> Bool[ndarray, "n bands"]:
    """Which `count` bands each row lacks: one of so many random choices, row by row in turn."""
    chosen = np.zeros((patterns, bands), dtype=bool)
    for pattern in chosen:
        pattern[generator.permutation(bands)[:count]] = True
    return chosen[np.arange(n) % patterns]


def is_photometry(features: Features, settings: RedshiftSettings) -> bool:
    """Whether the published table says anything of this data: five bands, target a redshift."""
    return len(features.bands) == 5 and settings.target == "z"


def notes_of(
    prediction: GPzPrediction, covered: Float[ndarray, "2 c"], n_train: int, photometry: bool
) -> tuple[str, ...]:
    """What a person should take home, in words."""
    model, whole = float(prediction.model_variance.mean()), float(prediction.variance.mean())
    level, held = covered[:, -1]
    notes = [
        f"More data like these would remove about {100 * model / whole:.0f}% of the predictive "
        "variance; the rest needs better or further measurements.",
        f"The {100 * level:.0f}% intervals hold {100 * held:.1f}% of the test rows.",
    ]
    if n_train > FOREST_ROWS:
        notes.append(f"The baselines were fitted to the first {FOREST_ROWS:,} rows only.")
    if len(prediction.variance) > MISSING_ROWS:
        notes.append(
            f"The curve of missing bands is of the first {MISSING_ROWS:,} of "
            f"{len(prediction.variance):,} test rows."
        )
    if photometry:
        notes.append(
            "The published figures are of 100,000 SDSS-DR12 galaxies and 100 basis functions: "
            "another sample than this one."
        )
    return tuple(notes)

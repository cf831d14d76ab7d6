"""The figures a redshift run ends with: ours, the baselines' and the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from numpy import ndarray
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline

from engine import metrics
from engine.events import Metric, Report

if TYPE_CHECKING:
    from engine.studies.redshift import Study

SHOWN = 1000  # test rows that travel to the page and stay with the model, for quick answers
EVERY = 100_000  # test rows whose predictions are kept for download: 5 MB in single precision
FOREST_ROWS = 20_000  # more only make the baseline slow
MISSING_ROWS = 500  # test rows from which bands are removed
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
NAMES = ("RMSE", "mean log-likelihood", "F_0.05", "F_0.15")


def write_report(study: Study) -> Report:
    """Metrics of all test rows, arrays of the first `SHOWN`, and what they say in words.

    Predictions alone are there for all rows (as `every_…`, float32), for those who download them.
    """
    y = study.held[study.settings.target].to_numpy(float)
    found = study.ask(study.held)
    mean, variance = found.mean.numpy(), found.variance.numpy()
    forest, line = baselines(study)
    rows = own_metrics(y, mean, variance, study.settings.seed)
    for name, model in (("random forest", forest), ("linear regression", line)):
        guess = model.predict(table_of(study, study.held))
        spread = float(np.std(y - guess))  # the forest brings no deviation of its own
        rows += [
            Metric(name, n, v, source="baseline")
            for n, v in zip(NAMES, four(y, guess, np.full_like(y, spread**2)))
        ]
    if is_photometry(study):
        rows += [
            Metric(name, n, v, source="published")
            for name, values in PUBLISHED.items()
            for n, v in zip(NAMES, values)
        ]
    s = slice(0, SHOWN)
    rows_of = {
        "z_true": y,
        "z_mean": mean,
        "std_model": found.model_variance.sqrt().numpy(),
        "std_noise": found.noise_variance.sqrt().numpy(),
        "std_input": found.input_variance.sqrt().numpy(),
        "pit": metrics.pit(y, mean, variance),
        "features": study.held[list(study.features.bands)].to_numpy(float),
    }
    arrays = {
        **{name: of_row[s] for name, of_row in rows_of.items()},
        **{f"every_{name}": of_row[:EVERY].astype("f4") for name, of_row in rows_of.items()},
        "coverage": metrics.coverage(y, mean, variance),
        "bins": metrics.redshift_bins(y, mean),
        "kept": metrics.by_confidence(y, mean, variance, SHARES),
        "missing": with_bands_missing(study, forest),
    }
    return Report(tuple(rows), arrays, notes_of(study, arrays["coverage"], found))


def four(
    y: Float[ndarray, " n"], mean: Float[ndarray, " n"], variance: Float[ndarray, " n"]
) -> tuple[float, float, float, float]:
    """The metrics of Table 6.7, in the order of `NAMES`."""
    return (
        metrics.rmse(y, mean),
        metrics.mean_log_likelihood(y, mean, variance),
        metrics.fraction_within(y, mean, 0.05),
        metrics.fraction_within(y, mean, 0.15),
    )


def own_metrics(
    y: Float[ndarray, " n"], mean: Float[ndarray, " n"], variance: Float[ndarray, " n"], seed: int
) -> list[Metric]:
    """This run's metrics; the spread is the standard error over bootstrap samples of test rows."""
    generator = np.random.default_rng(seed)
    draws = generator.integers(len(y), size=(BOOTSTRAPS, len(y)))
    spread = np.std([four(y[d], mean[d], variance[d]) for d in draws], axis=0)
    rows = [
        Metric("this run", n, v, float(e))
        for n, v, e in zip(NAMES, four(y, mean, variance), spread)
    ]
    error = metrics.normalised_error(y, mean)
    rows += [
        Metric("this run", "bias", float(error.mean())),
        Metric("this run", "sigma_MAD", metrics.sigma_mad(error)),
        Metric("this run", "outlier rate", metrics.outlier_rate(error)),
    ]
    covered = metrics.coverage(y, mean, variance)
    rows += [
        Metric("this run", f"coverage of the {100 * level:.0f}% interval", float(100 * share))
        for level, share in covered.T
    ]
    return rows


def baselines(study: Study) -> tuple[Pipeline, Pipeline]:
    """A random forest and a line on the same columns, missing values imputed by their mean."""
    learn = study.learn.iloc[:FOREST_ROWS]
    X, y = table_of(study, learn), learn[study.settings.target].to_numpy(float)
    forest = make_pipeline(
        SimpleImputer(keep_empty_features=True),
        RandomForestRegressor(100, min_samples_leaf=3, random_state=study.settings.seed),
    ).fit(X, y)
    line = make_pipeline(SimpleImputer(keep_empty_features=True), LinearRegression()).fit(X, y)
    return forest, line


def table_of(
    study: Study, table: pd.DataFrame, hidden: Bool[ndarray, "n b"] | None = None
) -> Float[ndarray, "n d"]:
    """What the baselines see: bands and log errors as they are, with `hidden` ones removed."""
    measured = study.features.measured(table)
    if hidden is not None:
        bands = list(study.features.bands)
        owner = [*range(len(bands)), *(bands.index(b) for b in study.features.errors)]
        measured = np.where(hidden[:, owner[: measured.shape[1]]], np.nan, measured)
    return np.where(np.isfinite(measured), measured, np.nan)


def with_bands_missing(study: Study, forest: Pipeline) -> Float[ndarray, "3 k"]:
    """RMSE with 0, 1, 2, … bands removed at random from each row: ours and the forest's.

    Figs. 6.17-6.18. A removed band takes its error along.
    """
    bands = study.features.bands
    table = study.held.iloc[:MISSING_ROWS].reset_index(drop=True)
    y = table[study.settings.target].to_numpy(float)
    generator = np.random.default_rng(study.settings.seed)
    found = []
    for count in range(min(5, len(bands))):
        hidden = hide(generator, len(table), len(bands), count)
        less = table.copy()
        less[list(bands)] = less[list(bands)].mask(hidden)
        ours = study.ask(less).mean.numpy()
        theirs = forest.predict(table_of(study, table, hidden))
        found.append([count, metrics.rmse(y, ours), metrics.rmse(y, theirs)])
    return np.array(found).T


def hide(
    generator: np.random.Generator, n: int, bands: int, count: int
) -> Bool[ndarray, "n bands"]:
    """Which `count` bands each row lacks: one of `PATTERNS` random choices, row by row in turn."""
    chosen = np.zeros((PATTERNS, bands), dtype=bool)
    for pattern in chosen:
        pattern[generator.permutation(bands)[:count]] = True
    return chosen[np.arange(n) % PATTERNS]


def is_photometry(study: Study) -> bool:
    """Whether the published table says anything of this data: five bands, target a redshift."""
    return len(study.features.bands) == 5 and study.settings.target == "z"


def notes_of(study: Study, covered: Float[ndarray, "2 c"], found: Any) -> tuple[str, ...]:
    """What a person should take home, in words."""
    model, whole = float(found.model_variance.mean()), float(found.variance.mean())
    level, held = covered[:, -1]
    notes = [
        f"More data like these would remove about {100 * model / whole:.0f}% of the predictive "
        "variance; the rest needs better or further measurements.",
        f"The {100 * level:.0f}% intervals hold {100 * held:.1f}% of the test rows.",
    ]
    if len(study.learn) > FOREST_ROWS:
        notes.append(f"The baselines were fitted to the first {FOREST_ROWS:,} rows only.")
    if is_photometry(study):
        notes.append(
            "The published figures are of 100,000 SDSS-DR12 galaxies and 100 basis functions: "
            "another sample than this one."
        )
    return tuple(notes)

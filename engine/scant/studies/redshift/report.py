"""Final report of a redshift run: this model, baselines and published results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from scant import metrics
from scant.deadline import NEVER, Deadline
from scant.evaluate.scores import COVERAGE, SCORES, coverage, metrics_of, scores_of
from scant.events import Metric, Report
from scant.predictive import MixturePredictive
from scant.predictive.scored import Scored
from scant.problem import Problem
from scant.studies.published import printed
from scant.studies.redshift.beside import ALSO, DENSITY, MISSING_ROWS, beside
from scant.studies.redshift.capacity import MOST_GAPS, RIVAL_ROWS
from scant.studies.redshift.fitted import SHOWN, FittedGPz
from scant.studies.redshift.gap_patterns import lacking
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings
from scant.verdict import Verdict

BOOTSTRAPS = 200
SHARES = np.arange(0.05, 1.001, 0.05)
TABLE = "photometric redshifts"  # Table 6.7 (Almosallam 2017), by its name in our results
Rows = Float[ndarray, " n"]
NAMES = ("RMSE", "mean log-likelihood", "F_0.05", "F_0.15")  # of the published table
FAR = ("outliers beyond 0.15", "outliers beyond 3 sigma")
PATTERN_ROWS = 20  # least number of rows of a pattern of missing bands, as of a bin of the truth
POINT = (
    "bias", "median bias", "sigma_MAD", "sigma_IQR", "outlier rate", *FAR, "CRPS", "CDE loss",
    "PIT-KS",
)  # fmt: skip


def write_report(
    fitted: FittedGPz, problem: Problem, scored: Scored, deadline: Deadline = NEVER
) -> Report:
    """Metrics of all test rows, arrays of the first `SHOWN`, and notes.

    Args:
        fitted: Model of the run.
        problem: Regression of the baselines.
        scored: Predictions of the model for the test rows.
        deadline: Time for baselines and curves of missing bands.
    """
    y, mean, predictive = scored.y, scored.value, scored.predictive
    assert isinstance(predictive, MixturePredictive)
    baselines = beside(fitted, problem, scored, deadline)
    results = own_metrics(problem, scored, fitted.settings.seed)
    if fitted.settings.combine == "best":  # the published number is for one model
        count = float(fitted.ensemble.models[0].relevant_count())
        results.append(Metric("this run", "relevant basis functions", count))
    for name, prediction in {
        **baselines.whole,
        "linear regression": problem.scored(line(problem)),
    }.items():
        results += metrics_of(problem, prediction, name, (*NAMES, "CRPS"))
    photometry = is_photometry(fitted.features, fitted.settings)
    if photometry:
        results += [
            Metric(p.method.split()[0], p.metric, p.value, p.spread, "published")
            for p in printed("redshift", TABLE)
        ]
    head = slice(0, SHOWN)
    per_row = {
        "z_true": y,
        "z_mean": mean,
        "std_model": np.sqrt(predictive.model_variance),
        "std_noise": np.sqrt(predictive.noise_variance),
        "std_input": np.sqrt(predictive.input_variance),
        "pit": scored.pit,
        "log_density": scored.log_density,
        "features": fitted.held[list(fitted.features.bands)].to_numpy(float),
    }
    arrays = {
        **{name: values[head] for name, values in per_row.items()},
        "coverage": coverage(scored),
        "bins": metrics.redshift_bins(y, mean),
        "bin_scores": by_bins(problem, scored),
        "pattern_scores": by_patterns(fitted, problem, scored),
        "kept": metrics.by_confidence(y, mean, predictive.variance, scored.log_density, SHARES),
    }
    arrays["missing"], arrays["missing_scores"] = baselines.missing, baselines.scores
    notes = notes_of(problem, predictive, arrays["coverage"], photometry)
    return Report(
        tuple(results), arrays, (*notes, *baselines.notes), Verdict(parts=baselines.parts)
    )


def own_metrics(problem: Problem, scored: Scored, seed: int) -> list[Metric]:
    """This run's metrics; the spread is the standard error over bootstrap samples of test rows."""
    generator = np.random.default_rng(seed)
    draws = generator.integers(len(scored), size=(BOOTSTRAPS, len(scored)))
    spread = {n: float(np.std([SCORES[n](problem, scored, d) for d in draws])) for n in NAMES}
    return [
        replace(metric, spread=spread.get(metric.name))
        for metric in metrics_of(problem, scored, "this run", (*NAMES, *POINT, *COVERAGE), "run")
    ]


def line(problem: Problem) -> MixturePredictive:
    """Linear regression, the simplest baseline.

    The mean replaces missing values; the variance is that of the training residuals.
    """
    x, y = problem.x[:RIVAL_ROWS], problem.y[:RIVAL_ROWS]
    model = make_pipeline(SimpleImputer(keep_empty_features=True), LinearRegression()).fit(x, y)
    free = max(len(y) - x.shape[1] - 1, 1)
    variance = float(((y - model.predict(x)) ** 2).sum()) / free
    mean = model.predict(problem.x_test)
    return MixturePredictive.gaussian(mean, np.full(len(mean), variance))


def by_bins(problem: Problem, scored: Scored) -> Float[ndarray, "8 q"]:
    """Scores in the bins of `metrics.redshift_bins`: their edges, then `DENSITY` and `FAR`."""
    result = []
    for low, high in metrics.bins_of(scored.y):
        rows = scored.rows((scored.y >= low) & (scored.y < high))
        result.append([low, high, *scores_of(problem, rows, (*DENSITY, *FAR))])
    return np.array(result).reshape(-1, 8).T


def by_patterns(fitted: FittedGPz, problem: Problem, scored: Scored) -> Float[ndarray, "_ p"]:
    """Scores of the test rows by the bands that they lack, the most frequent pattern first.

    Returns:
        For each pattern with at least `PATTERN_ROWS` rows: 1 for each band that is missing, else 0;
        number of rows; RMSE; then `ALSO`.
    """
    n_bands = len(fitted.features.bands)
    missing = lacking(fitted.features, fitted.held).isnan().numpy()[:, :n_bands]
    patterns, pattern_of_row, counts = np.unique(
        missing, axis=0, return_inverse=True, return_counts=True
    )
    result = []
    for k in np.argsort(-counts, kind="stable")[:MOST_GAPS]:
        if counts[k] >= PATTERN_ROWS:
            rows = scored.rows(pattern_of_row.reshape(-1) == k)
            result.append([*patterns[k], counts[k], *scores_of(problem, rows, ("RMSE", *ALSO))])
    return np.array(result, float).reshape(-1, n_bands + 2 + len(ALSO)).T


def is_photometry(features: Features, settings: RedshiftSettings) -> bool:
    """Return True if the published table applies: five bands, target a redshift."""
    return len(features.bands) == 5 and settings.target == "z"


def notes_of(
    problem: Problem,
    predictive: MixturePredictive,
    covered: Float[ndarray, "2 c"],
    photometry: bool,
) -> tuple[str, ...]:
    """Notes for the user."""
    model, total = float(predictive.model_variance.mean()), float(predictive.variance.mean())
    level, held = covered[:, -1]
    notes = [
        f"More data like these would remove about {100 * model / total:.0f}% of the predictive "
        "variance; the rest needs better or further measurements.",
        f"The {100 * level:.0f}% intervals hold {100 * held:.1f}% of the test rows.",
    ]
    if problem.contrasts is not None:
        notes.append(
            "Forests and boosted trees also learn from all colors, the differences of two inputs."
        )
    if len(problem.y) > RIVAL_ROWS:
        notes.append(f"The baselines were fitted to the first {RIVAL_ROWS:,} rows only.")
    if len(predictive) > MISSING_ROWS:
        notes.append(
            f"The curves of missing bands use at most {MISSING_ROWS:,} of the {len(predictive):,} "
            "test rows, which have all bands; forest and boosting have learned from copies of "
            "rows with bands removed."
        )
    if photometry:
        notes.append(
            "The published figures are of 100,000 SDSS-DR12 galaxies and 100 basis functions: "
            "another sample than this one."
        )
    return tuple(notes)

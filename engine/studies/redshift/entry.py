"""Redshift: heteroscedastic GPs for uncertain and incomplete photometry (Almosallam 2017)."""

from __future__ import annotations

import param
from scant.errors import BadInput
from scant.studies.base import (
    ArraySpec,
    Citation,
    Counts,
    Entry,
    Source,
    array_specs,
    until_rest,
)
from scant.studies.predicted_columns import of_values
from scant.studies.split import COLUMNS, TEST, VALIDATION, SplitCounts, SplitSettings
from scant.tables.schema import Column, TableSchema

DEMO = {"training_size": 2000, "validation_size": 500, "test_size": 2000}


class RedshiftSettings(SplitSettings):
    """Settings of a GPz fit (Almosallam 2017, chapters 3-6)."""

    study = "redshift"
    essential = ("training_size", "n_basis", "covariance", "weights", "max_steps")

    target = param.String("z", doc="Column to predict; for galaxies the spectroscopic redshift.")
    training_size = param.Integer(
        0,
        bounds=(0, 1_000_000),
        doc="Scarcity: number of training rows; 0: all that are not held out.",
    )
    validation_share = param.Number(
        0.1,
        bounds=(0.01, 0.5),
        doc="Share of the validation set, which selects the parameters.",
    )
    test_share = param.Number(
        0.2,
        bounds=(0.01, 0.8),
        doc="Share of the test set, which is used in every figure and score.",
    )
    validation_size = param.Integer(
        0, bounds=(0, 1_000_000), doc="Rows of the validation set; 0: its share."
    )
    test_size = param.Integer(0, bounds=(0, 1_000_000), doc="Rows of the test set; 0: its share.")
    n_basis = param.Integer(
        25,
        bounds=(1, 1000),
        label="Basis functions",
        doc="Number m of basis functions; the cost grows as n m².",
    )
    covariance = param.Selector(
        default="VC",
        objects=["GL", "VL", "GD", "VD", "GC", "VC"],
        doc="Shape of the basis functions. G: one for all, V: one each; L: one lengthscale, D: one"
        " per feature, C: a full covariance.",
    )
    heteroscedastic = param.Boolean(True, doc="Let the noise depend on the input (eq. 3.3).")
    joint_mean = param.Boolean(True, doc="Learn a linear mean jointly with the basis (3.27).")
    log_target = param.Boolean(
        False, doc="Model log(target), for strictly positive targets (3.13)."
    )
    features = param.Selector(
        objects=["colours", "as given"],
        doc="colours: differences of neighboring features (colors, for magnitudes) and one "
        "reference feature; as given: the features themselves.",
    )
    errors = param.Selector(
        objects=["as features", "as noise", "ignore"],
        doc="Use of <feature>_err columns: their logarithms as features, as input noise in "
        "training and prediction (5.71), or not at all.",
    )
    robust = param.Boolean(True, doc="Limit outliers: scale by median and quartiles, then asinh.")
    weights = param.Selector(
        objects=["normal", "normalised", "balanced"],
        doc="Weight of an error: equal, (1+z)^-2, or balanced over the target's range (6.3).",
    )
    restarts = param.Integer(
        3,
        bounds=(1, 20),
        doc="Number of fits from different starts; `combine` selects or averages them.",
    )
    combine = param.Selector(
        default="average",
        objects=["best", "average"],
        doc="Keep the restart with the best validation score, or average all restarts as a "
        "mixture, each with a different split of training and validation rows.",
    )
    start = param.Selector(
        objects=["coarse to fine", "direct"],
        doc="Optimize the covariances of the basis functions in stages (GD, GC, VC), each from the"
        " best of the previous stage, or all at once as published.",
    )
    incomplete = param.Selector(
        objects=["leave out", "use"],
        doc="Training rows with missing values: leave them out, or use their observed values "
        "(5.82; slower).",
    )
    max_steps = param.Integer(
        240, bounds=(1, 5000), doc="Maximum number of L-BFGS iterations per restart."
    )
    patience = param.Integer(
        25,
        bounds=(0, 5000),
        doc="Stop a restart after this number of iterations without a better validation score; 0: "
        "never.",
    )
    workers = param.Integer(
        1,
        bounds=(1, 256),
        doc="Number of processes that share the training rows: workers of the cluster without a "
        "task, or processes on this machine. Worthwhile from some 100,000 rows.",
    )

    def check(self) -> None:
        if self.test_share + self.validation_share > 0.9:
            raise BadInput(
                "Settings 'test_share' and 'validation_share' leave too few rows to learn from; "
                "lower one of them."
            )
        if self.log_target and self.weights == "normalised":
            raise BadInput(
                "Settings 'log_target' and 'weights=normalised' exclude each other: "
                "the logarithm already weighs errors relatively; set weights to normal or balanced."
            )


def test_rows(s: RedshiftSettings, n: int) -> int:
    """Rows to hold out of n, where none are marked."""
    if not s.test_size:
        return round(s.test_share * n)
    return min(s.test_size, max(n - s.training_size - s.validation_size, n // 3))


def learned(s: RedshiftSettings, n: int) -> tuple[int, int]:
    """Rows to train on and to validate on, of n that are not held out.

    No more than a quarter of them validates; what is asked for beyond that trains.
    """
    share = s.validation_share / (1 - s.test_share)
    every = s.training_size / (1 - share) if s.training_size else n
    validation = min(s.validation_size or round(share * min(n, every)), n // 4)
    used = min(n, s.training_size + validation) if s.training_size else n
    validation = min(validation, used // 4)
    return used - validation, validation


def parts(s: RedshiftSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into."""
    marked = counts.get("split", {})
    test = marked.get(TEST) or test_rows(s, rows)
    train, validation = learned(s, rows - test)
    return SplitCounts(train, marked.get(VALIDATION) or validation, test, rows)


def estimate(
    settings: RedshiftSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: the report; the steps of all restarts (45 to 80% were used before the score settled),
    each with objective, gradient and score; the forest beside it. Measured, one thread, a full
    covariance: a step of 2,000 rows, ten inputs and 25 basis functions 6 ms, with 100 functions
    16 ms; with noisy inputs (5.71) 0.3 s of 2,000. Training on 1,000,000 rows of ten inputs with
    100 functions peaks at 2.0 GB; the table and the report come on top.
    """
    s = settings
    n = parts(s, rows, counts).train
    size = n * s.n_basis
    step = size * (8e-8 + 2e-10 * s.n_basis) * (0.5 + 0.05 * max(columns - 1, 1))
    if s.errors == "as noise":
        step *= 110
    steps = until_rest(s.max_steps, s.patience, 0.4) * s.restarts
    return 1.0 + 4e-4 * n + steps * (0.004 + step), 500e6 + min(
        450 * size, 1e8 + n * (25 * s.n_basis + 1000)
    )


def survey_size(s: RedshiftSettings) -> int:
    """Galaxies of the simulated survey."""
    return sum(getattr(s, name) or count for name, count in DEMO.items())


_CITATION = Citation(
    "I. Almosallam, Heteroscedastic Gaussian Processes for Uncertain and Incomplete Data, "
    "DPhil thesis, University of Oxford, 2017."
)

_TEST = "n_test"

ENTRY = Entry(
    name="redshift",
    title="Redshift",
    question="How far away is a galaxy with only a few noisy colors, and how certain is the "
    "answer?",
    settings=RedshiftSettings,
    table=TableSchema(
        columns=(
            Column(
                "z",
                doc="what to predict; another column can be named in `target`",
                aliases=("z_spec", "spec_z", "redshift", "z_true", "z_redshift"),
            ),
            *COLUMNS,
        ),
        features=True,
        errors=True,
        missing=True,
        minimum_rows=60,
        target_setting="target",
    ),
    sources=(
        Source(
            "demo",
            "Simulated survey",
            "ugriz photometry of a simulated survey; errors grow towards faint magnitudes",
            generator="scant.studies.redshift.simulate:demo",
            size=lambda s: (survey_size(s), 11),
        ),
        Source(
            "sdss",
            "SDSS galaxies",
            "20,000 galaxies with spectra, from the SDSS catalogue server",
            kind="fetched",
        ),
    ),
    snapshot=array_specs("""
        z_true (k) [target] true values of the k test rows shown while training
        z_mean (k) [target] their predictive means
        std_model (k) [target] deviation that more data would remove (nu)
        std_noise (k) [target] deviation that better features would remove
        relevance (m) [share] each basis function's share of the signal, sorted
        feature_relevance (d) [share] each feature's share of the sensitivity
    """),
    report=(
        ArraySpec("z_true", _TEST, "target", "true values of the test rows"),
        ArraySpec("z_mean", _TEST, "target", "predictive means"),
        ArraySpec("std_model", _TEST, "target", "model part of the predictive deviation"),
        ArraySpec("std_noise", _TEST, "target", "noise part"),
        ArraySpec("std_input", _TEST, "target", "part that comes from noisy or missing inputs"),
        ArraySpec("features", f"{_TEST} b", "as given", "the test rows' features, NaN if missing"),
        ArraySpec("pit", _TEST, "probability", "probability integral transform of the truth"),
        *array_specs("""
            coverage (2 c) [share] nominal and observed coverage of intervals
            bins (6 q) [target] per bin of truth: low edge, high edge, bias, sigma_MAD, outlier
                rate, rows
            kept (6 p) [share] share kept by confidence, then RMSE, mean log-likelihood, FR15, FR05,
                bias of what is kept
            missing (3 5) [target] 0 to 4 bands removed at random: how many, RMSE of this model,
                RMSE of the forest with mean imputation
        """),
    ),
    predicted=of_values(
        "target",
        """
            mean (n) [y] predictive mean
            std (n) [y] deviation of a new value: of all its parts
            std_model (n) [y] the part of it that more data would remove
            std_noise (n) [y] the part that better features would remove
            std_input (n) [y] the part that comes from noisy or missing inputs
        """,
    ),
    explore={
        "without": (
            ArraySpec("z_mean", _TEST, "target", "means with the bands in `off` (names) removed"),
            ArraySpec("std_model", _TEST, "target", "model part"),
            ArraySpec("std_noise", _TEST, "target", "noise part"),
            ArraySpec("std_input", _TEST, "target", "part from the missing bands"),
            ArraySpec("metrics", "4", "mixed", "RMSE, mean log-likelihood, FR15, FR05"),
        ),
        "density": array_specs("""
            grid (g) [target] where p(z) is evaluated
            density (g) [1/target] p(z) of test row `row` with `off` removed
            components (c g) [1/target] the mixture's parts, times weight
        """),
    },
    presets={
        "demo": DEMO,
        "quick": {
            "training_size": 500,
            "validation_size": 500,
            "test_size": 2000,
            "n_basis": 10,
            "max_steps": 60,
            "restarts": 1,
        },
        "as published": {
            "n_basis": 100,
            "features": "as given",
            "robust": False,
            "start": "direct",
            "restarts": 1,
            "combine": "best",
            "training_size": 100_000,
            "validation_size": 100_000,
            "test_size": 100_000,
            "max_steps": 500,
        },
    },
    citations=(_CITATION,),
    limits=(
        "The expectation under one Gaussian fills in bands missing from training rows (5.82); this"
        " is optimistic if a band is missing because the galaxy is faint.",
        "p(z) is a mixture of Gaussians: it cannot represent sharp edges or exclude redshifts "
        "below zero.",
        "Colors, limited outliers, staged starts and averaged restarts depart from the "
        "publication; the preset 'as published' switches them off.",
        "A Gaussian mixture fitted by EM to all training rows fills in missing bands; the "
        "publication uses the centers and covariances of the basis functions.",
    ),
    objective="log marginal likelihood (nats a row)",
    estimate=estimate,
    parts=parts,
)

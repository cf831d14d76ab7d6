"""Redshift: heteroscedastic GPs for uncertain and incomplete photometry (Almosallam 2017)."""

from __future__ import annotations

from scant.studies.base import ArraySpec, Citation, Entry, Source, array_specs
from scant.studies.predicted_columns import of_values
from scant.studies.published import values
from scant.studies.redshift.bands import band, by_wavelength
from scant.studies.redshift.capacity import capacity, estimate, parts
from scant.studies.redshift.catalogs import ASIDE, TARGETS
from scant.studies.redshift.published import SETTINGS
from scant.studies.redshift.settings import DEMO, FIXED, RedshiftSettings, survey_size
from scant.studies.split import COLUMNS
from scant.tables.schema import Column, TableSchema

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
                aliases=TARGETS,
            ),
            *COLUMNS,
        ),
        features=True,
        errors=True,
        band=band,
        order=by_wavelength,
        aside=ASIDE,
        missing=True,
        minimum_rows=10,
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
            "20,000 galaxies with spectra, from the SDSS catalog server",
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
        ArraySpec("log_density", _TEST, "nats", "log density of the truth"),
        *array_specs("""
            coverage (2 c) [share] nominal and observed coverage of intervals
            bins (6 q) [target] per bin of truth: low edge, high edge, bias, sigma_MAD, outlier
                rate, rows
            bin_scores (8 q) [mixed] in these bins: low edge, high edge, mean log-likelihood, CRPS,
                CDE loss, distance of the PIT from uniform (PIT-KS), share of errors beyond 0.15 and
                beyond 3 sigma. Reports of before lack the last two
            pattern_scores (_ p) [mixed] by the bands that rows lack, the most frequent pattern
                first: 1 for each band that is missing, else 0; number of rows; RMSE; then the
                scores of `missing_scores`
            kept (6 p) [share] share kept by confidence, then RMSE, mean log-likelihood, FR15, FR05,
                bias of what is kept
            missing (13 5) [mixed] 0 to 4 bands removed at random: how many, then RMSE of this
                model, of a random forest, of gradient boosting and of CatBoost (NaN where it is not
                installed), all trained on rows with bands removed too; then their mean
                log-likelihood; then their CRPS. Reports of before have 3 rows: how many, RMSE of
                this model, and of a forest of whole rows with the mean in place of what is missing
            missing_scores (9 5) [mixed] of this model with so many bands removed: how many,
                sigma_MAD, share of errors beyond 0.15, mean log-likelihood, CRPS, CDE loss, PIT-KS,
                bias, share of errors beyond 3 sigma. Reports of before lack the last two
            tried (t 5) [mixed] per stage of training: number of basis functions, place of their
                shape among the values of `covariance`, freedom of precisions and noise (0 to 2),
                best validation score, expected seconds of training until its end
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
            ArraySpec("pit", _TEST, "probability", "probability integral transform of the truth"),
            ArraySpec(
                "metrics",
                "11",
                "mixed",
                "RMSE, mean log-likelihood, FR15, FR05, then bias, "
                "sigma_MAD, errors beyond 0.15, beyond 3 sigma, CRPS, CDE loss, PIT-KS",
            ),
        ),
        "density": array_specs("""
            grid (g) [target] where p(z) is evaluated
            density (g) [1/target] p(z) of test row `row` with `off` removed
            components (c g) [1/target] the mixture's parts, times weight
        """),
    },
    presets={
        "demo": FIXED | DEMO,
        "quick": FIXED
        | {
            "training_size": 500,
            "validation_size": 500,
            "test_size": 2000,
            "n_basis": 10,
            "max_steps": 60,
            "restarts": 1,
        },
        "as published": values(SETTINGS),
    },
    citations=(_CITATION,),
    limits=(
        "If a band has no detection, predictions average over magnitudes beyond the limit, under "
        "the density of the inputs. That density is learned from detected magnitudes and "
        "extrapolated to fainter ones.",
        "If training rows with missing bands are used, basis functions are averaged over the "
        "missing values (5.86), and the linear mean takes their expectation under one Gaussian. "
        "This is optimistic if a band is missing because the galaxy is faint.",
        "p(z) is a mixture of Gaussians: it cannot represent sharp edges or exclude redshifts "
        "below zero.",
        "Colors, limited outliers, staged starts and averaged restarts depart from the "
        "publication; the preset 'as published' switches them off.",
    ),
    objective="log marginal likelihood (nats a row)",
    check="scant.studies.redshift.settings:check",
    estimate=estimate,
    parts=parts,
    capacity=capacity,
)

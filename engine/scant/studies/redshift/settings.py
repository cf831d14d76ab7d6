"""Settings of a redshift fit and of its demonstration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import param

from scant.errors import BadInput
from scant.studies.auto import AUTO, AutoInteger
from scant.studies.split import SplitSettings

SHAPES = ("GL", "VL", "GD", "VD", "GC", "VC")
AS_GIVEN, COLORS, COMPONENTS = "as given", "colors", "principal components"  # values of `features`
BASIS_FUNCTIONS = "basis functions"  # value of `missing`: the density of the publication (5.22)
# Shared by the demonstration and the other presets, whose results are known.
FIXED: dict[str, Any] = {
    "n_basis": 25,
    "covariance": "VC",
    "log_target": "no",
    "robust": "yes",
    "features": "colors",
    "restarts": 3,
    "max_steps": 240,
    "stack": False,
    "missing": "integrate",
}
DEMO = {"training_size": 2000, "validation_size": 500, "test_size": 2000}


class RedshiftSettings(SplitSettings):
    """Settings of a GPz fit (Almosallam 2017, chapters 3-6)."""

    study = "redshift"
    essential = (
        "training_size",
        "time_budget",
        "gap_seconds",
        "n_basis",
        "covariance",
        "weights",
        "max_steps",
    )

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
    test_size = AutoInteger(
        AUTO,
        bounds=(0, 1_000_000),
        doc="Rows of the test set; 0: its share of all rows; auto: its share of at most 5,000 "
        "rows, or of a tenth of all rows if these are more; the others are used for training.",
    )
    n_basis = AutoInteger(
        AUTO,
        bounds=(1, 1000),
        label="Basis functions",
        doc="Number m of basis functions: more of them follow finer detail and take longer (n m²). "
        "auto: the number is increased while rows held out for validation are predicted better and "
        "the time budget lasts; the figure 'Models tried' shows how.",
    )
    covariance = param.Selector(
        default=AUTO,
        objects=[AUTO, *SHAPES],
        doc="Shape of the basis functions. First letter: G, all share one shape, or V, each has "
        "its own. Second letter: L, one lengthscale; D, one per feature; C, a full covariance, "
        "which also tilts. auto: the shape is refined while rows held out for validation are "
        "predicted better.",
    )
    heteroscedastic = param.Boolean(True, doc="Let the noise depend on the input (eq. 3.3).")
    joint_mean = param.Boolean(True, doc="Learn a linear mean jointly with the basis (3.27).")
    tie_precisions = param.Boolean(
        False,
        doc="One prior precision for the weights of all basis functions and one for those of the "
        "noise (Figure 3.1a), instead of one for each weight (3.1), which switches off basis "
        "functions that are not needed.",
    )
    log_target = param.Selector(
        default=AUTO,
        objects=[AUTO, "yes", "no"],
        doc="Model log(target), for strictly positive targets (3.13). auto: where a straight line "
        "or a GP, whichever is better, predicts the logarithm better.",
    )
    features = param.Selector(
        default=AUTO,
        objects=[AUTO, COLORS, AS_GIVEN, COMPONENTS],
        doc="colors: differences of neighboring features, such as magnitudes, and one "
        "reference feature; as given: the features themselves; principal components: all of them, "
        "uncorrelated and of unit variance, the errors' logarithms included (section 6.3.1); where "
        "rows with missing values are used in training, as given. auto: colors of three or more "
        "columns that rise and fall together, as magnitudes do; of more than 30 columns 8, 16 or "
        "32 principal components, where these predict left-out rows better. Fluxes (flux_g) are "
        "converted to asinh magnitudes first, unless as given.",
    )
    errors = param.Selector(
        objects=["as features", "as noise", "ignore"],
        doc="Use of <feature>_err columns: their logarithms as features, as input noise in "
        "training and prediction (5.71), or not at all.",
    )
    robust = param.Selector(
        default=AUTO,
        objects=[AUTO, "yes", "no"],
        doc="Limit outliers: scale by median and quartiles, then asinh. auto: unless a straight "
        "line or a GP, whichever is better, predicts better without.",
    )
    weights = param.Selector(
        objects=["normal", "normalized", "balanced"],
        doc="Weight of an error: equal, (1+z)^-2, or balanced over the target's range (6.3).",
    )
    restarts = AutoInteger(
        AUTO,
        bounds=(1, 20),
        doc="Number of fits from different starts; `combine` selects or averages them. auto: more "
        "for fewer rows.",
    )
    combine = param.Selector(
        default="average",
        objects=["best", "average"],
        doc="Keep the restart with the best validation score, or average all restarts as a "
        "mixture, each with a different split of training and validation rows.",
    )
    stack = param.Boolean(
        True,
        doc="Average the predictions with those of plain GPs, a straight line and the mean, "
        "weighted by training rows that are left out in turn. Not available with errors as noise "
        "or with weights other than normal. Not in the publication.",
    )
    start = param.Selector(
        objects=["coarse to fine", "direct"],
        doc="Optimize the covariances of the basis functions in stages (GD, GC, VC), each from the"
        " best of the previous stage, or all at once as published. Centers start from k-means; the "
        "authors' program draws them at random.",
    )
    incomplete = param.Selector(
        default=AUTO,
        objects=[AUTO, "leave out", "use"],
        doc="Training rows with missing values: leave them out, or use their observed values "
        "(5.86; slower). auto: leave them out, unless most rows lack a value and there are more "
        "than 30 columns or fewer than 30 rows without missing values.",
    )
    missing = param.Selector(
        default=AUTO,
        objects=[AUTO, "integrate", BASIS_FUNCTIONS, "one Gaussian"],
        doc="How rows with missing values are predicted. integrate: predictions are averaged over "
        "the values that the missing ones may have, under a mixture of Gaussians fitted to the "
        "inputs; basis functions: the same with the publication's density (5.22); one Gaussian: "
        "the same with a single Gaussian. auto: frequent gaps get models of their own, trained on "
        "the remaining columns; other gaps are integrated.",
    )
    gap_seconds = param.Number(
        180.0,
        bounds=(0.0, 1e6),
        label="Time for gaps (s)",
        doc="Seconds of the time budget, at most, for models of rows with missing values; used "
        "where 'missing' is auto. The gaps that the table has get a model each, the most frequent "
        "ones first. If a table to predict has gaps without a model, these models are trained when "
        "the table is given. 0: no such models.",
    )
    max_steps = AutoInteger(
        AUTO,
        bounds=(1, 5000),
        doc="Maximum number of L-BFGS iterations per restart. auto: as many as the time budget "
        "allows.",
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
        if self.log_target == "yes" and self.weights == "normalized":
            raise BadInput(
                "Settings 'log_target' and 'weights=normalized' exclude each other: "
                "the logarithm already weighs errors relatively; set weights to normal or balanced."
            )


def survey_size(s: RedshiftSettings) -> int:
    """Number of galaxies of the simulated survey."""
    sizes = {name: getattr(s, name) for name in DEMO}
    return sum(count if sizes[n] in (0, AUTO) else sizes[n] for n, count in DEMO.items())


def check(s: RedshiftSettings, table: pd.DataFrame, name: str) -> None:
    """Raise BadInput for a table that these settings cannot learn (`Entry.check`)."""
    if s.log_target == "yes" and s.target in table and (table[s.target] <= 0).any():
        row = int(np.flatnonzero(table[s.target].to_numpy() <= 0)[0])
        raise BadInput(
            f"{name}, column {s.target!r}, row {row + 2}: got {table[s.target].iloc[row]:g}, but "
            "the setting 'log_target' needs values above zero; switch it off or drop the row."
        )

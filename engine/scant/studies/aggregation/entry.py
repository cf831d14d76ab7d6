"""Aggregation: values given as averages over supports of any size (Yousefi 2021, chapter 5)."""

from __future__ import annotations

from scant.studies.aggregation.capacity import capacity, estimate, parts
from scant.studies.aggregation.published import SETTINGS
from scant.studies.aggregation.settings import FIXED, AggregationSettings
from scant.studies.aggregation.simulate.counties import BIRTHS, EARLY, LATE, size
from scant.studies.aggregation.table import TABLE
from scant.studies.base import Citation, Entry, Source, array_specs
from scant.studies.predicted_columns import of_values
from scant.studies.published import values
from scant.tables.geometry import COLUMN

# A draw with about the median error (`scripts/demo_spread.py`); 0 is the hardest of ten.
DEMO = {**FIXED, "data_seed": 5, "inference": "variational", "fine_rows": 80}

_FIELD = array_specs("""
    mean (g) [y] posterior means of the cells' averages, of one task
    std_f (g) [y] their deviations
    std_y (g) [y] deviations of new observations of the cells
""")
_MAP = array_specs("""
    map_mean (p) [y] posterior means of the averages over a map's polygons, of counts the rates per
        unit of exposure, layer by layer as the metadata's `map` lists them; empty without a map
    map_std (p) [y] their deviations
""")
_PRIOR = array_specs("""
    B (t t) [1] sum over q of the coregionalization matrices B_q
    lengthscale (q d) [input] lengthscales of the latent functions
""")

ENTRY = Entry(
    name="aggregation",
    title="Aggregation",
    question="How do you predict single years, hours or places from averages over larger ones?",
    settings=AggregationSettings,
    table=TABLE,
    sources=(
        Source(
            "demo",
            "Births by age and year",
            "a simulated country's birth rates by 5 × 5 years, and a few single cells",
            generator="scant.studies.aggregation.simulate.fertility:demo",
            size=(2744, 8),
            counts={
                "task": {"first births": 2640, "first births 5x5": 104},
                "split": {"train": 1744, "test": 1000},
            },
        ),
        Source(
            "particulates",
            "A week of fine dust",
            "a cheap counter every five minutes, a reference filter every six hours",
            generator="scant.studies.aggregation.simulate.particulates:demo",
            size=(2716, 6),
            counts={
                "task": {"counter": 2016, "filter": 700},
                "split": {"train": 2044, "test": 672},
            },
        ),
        Source(
            "counties",
            "Infant deaths by county",
            "sudden infant deaths in North Carolina: by county in 1974-78, in a few groups of "
            "counties in 1979-84, as real counts with births as the exposure (Cressie 1993); "
            "needs the packages for maps",
            generator="scant.studies.aggregation.simulate.counties:demo",
            size=size,
            counts={
                "task": {EARLY: 100, LATE: 120, BIRTHS: 100},
                "split": {"train": 220, "test": 100},
                "exposure": {},
                COLUMN: {},
            },
            start={"population_task": BIRTHS},  # else the defaults, as for an own map
            scarcity="n_groups",
        ),
        Source(
            "counts",
            "Poisson counts",
            "two tasks on intervals of one and two units, as published; one has a gap",
            generator="scant.studies.aggregation.simulate.poisson:demo",
            size=(375, 6),
        ),
    ),
    snapshot=(
        *_FIELD,
        *_MAP,
        *_PRIOR,
    ),
    report=(
        *_FIELD,
        *_MAP,
        *_PRIOR,
        *array_specs("""
            totals (6 k) [y] of each observed polygon that held-out ones make up: number of these,
                its value, the sum of their predictions (of averages and rates: weighted), its
                deviation, deviation of a new observation of it, 1 where the 95% interval contains
                the value
            test_y (n_test) [y] held-out observations
            test_mean (n_test) [y] their predictive means
            test_std (n_test) [y] their predictive deviations
            coverage (2 c) [share] nominal and observed coverage of intervals
            check (5 n) [y] the aggregate check of each training row: task, observed value,
                posterior average over its box, deviation of a new observation, 1 where the 95%
                interval contains the value
        """),
    ),
    predicted=of_values(
        "y",
        """
            mean (n) [y] predictive mean: of the average over the row's box
            std (n) [y] deviation of that average
            std_y (n) [y] deviation of a new observation of it
            std_model (n) [y] the part of that which more data would remove: `std` again
            std_noise (n) [y] the part that stays
        """,
    ),
    explore={
        "box": array_specs("""
            grid (k) [y] values of the average over the requested box
            density (k) [1/y] their posterior density
            moments (3) [y] mean, deviation, deviation of a new observation
        """),
        "polygon": array_specs("""
            grid (k) [y] values of the average, or rate, over the requested polygon
            density (k) [1/y] their posterior density
            moments (3) [y] mean, deviation, deviation of a new observation
            interval (2) [y] ends of its 95% interval
            exceedance (1) [probability] that it is above the threshold asked about; NaN without one
            outline (2 v) [m] the polygon in the run's projection; rings end in NaN
            area (1) [km²] of the polygon
            outside (1) [share] of the polygon, beyond the bounds of the training data
        """),
        "scarcity": array_specs("""
            n (k) [rows] fine observations
            smse (2 3 k) [1] all tasks, the scarce one alone: mean, low, high
            snlp (2 3 k) [nats] the same of the standardised negative log density
        """),
        "retrain": array_specs("""
            n (1) [rows] number of fine observations in training
            smse (2) [1] all tasks, the scarce one alone
            snlp (2) [nats] the same of the standardised negative log density
        """),
        "field": _FIELD,
    },
    presets={
        "demo": DEMO,
        "quick": {**DEMO, "n_inducing": 40, "max_steps": 80},
        "as published": {"data_seed": DEMO["data_seed"], **values(SETTINGS)},
    },
    citations=(
        Citation(
            "F. Yousefi, Gaussian Processes for Data Scarcity Challenges, PhD thesis, University "
            "of Sheffield, 2021, chapter 5."
        ),
        Citation(
            "F. Yousefi, M. T. Smith, M. A. Álvarez, Multi-task learning for aggregated data "
            "using Gaussian processes, NeurIPS 2019."
        ),
    ),
    limits=(
        "The model learns the noise: one variance per task, or a function of the inputs if "
        "heteroscedastic, in addition to y_err where that is given (the demonstrations ignore it). "
        "An average over a large box counts as one observation.",
        "The expected count of a box or polygon is the integral of a rate, whose logarithm is "
        "modeled as Gaussian. The variational objective is then close to a lower bound but not "
        "proven to be one, and its intervals are too narrow for few large groups. Laplace's "
        "approximation, which auto chooses for up to some hundreds of polygons, has neither "
        "problem. The demonstrations use the exponential of an average, as published.",
        "auto does not test whether counts vary more than Poisson counts: it chooses Poisson if "
        "their mean is at most 100. Choose negative_binomial if intervals turn out too narrow.",
        "A class of a categorical task is one observation of its whole support, with averages of "
        "the log odds. Figures and maps show the probability of the rarest class.",
        "A polygon is represented by 9 to 36 points, weighted by area, or by population if a task "
        "gives it. Columns of a map other than times and covariates are not used.",
        "The mean of each task is constant except for covariates; predictions return to it far "
        "from the data. The figure's grid is predicted with covariates at their means.",
    ),
    objective="ELBO (nats a row)",
    score="ELBO of all rows (nats a row)",
    check="scant.studies.aggregation.table:check",
    estimate=estimate,
    parts=parts,
    capacity=capacity,
)

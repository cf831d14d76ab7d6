"""Aggregation: values known as averages over supports of every size (Yousefi 2021, chapter 5)."""

from __future__ import annotations

from scant.studies.aggregation.capacity import capacity, estimate, parts
from scant.studies.aggregation.settings import FIXED, AggregationSettings
from scant.studies.aggregation.table import TABLE
from scant.studies.base import Citation, Entry, Source, array_specs
from scant.studies.predicted_columns import of_values

# A draw of about the median error (see `limits`); 0 is the hardest of ten.
DEMO = {**FIXED, "data_seed": 5, "inference": "variational", "fine_rows": 80}

_FIELD = array_specs("""
    mean (g) [y] posterior means of the cells' averages, of one task
    std_f (g) [y] their deviations
    std_y (g) [y] deviations of new observations of the cells
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
            "counts",
            "Poisson counts",
            "two tasks on intervals of one and two units, as published; one has a gap",
            generator="scant.studies.aggregation.simulate.poisson:demo",
            size=(375, 6),
        ),
    ),
    snapshot=(
        *_FIELD,
        *_PRIOR,
    ),
    report=(
        *_FIELD,
        *_PRIOR,
        *array_specs("""
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
        "as published": {
            **DEMO,
            "optimizer": "em",
            "batch_size": 50,
            "n_inducing": 100,
            "max_steps": 5000,
            "learning_rate": 0.01,
            "halving": 0,
        },
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
        "The model learns the noise: one variance per task, or a function if heteroscedastic. It "
        "ignores y_err, and an average over a large box counts as one observation.",
        "A count's rate is the exponential of an average, not the average of an exponential.",
        "The mean of each task is constant; predictions return to it far from the data.",
        "On ten draws of the demonstration (data seeds 0 to 9), SMSE was 0.0036 to 0.0124, "
        "median 0.0063, and SNLP -2.80 to -2.22, median -2.56; the recorded draw has 0.0067 and "
        "-2.54.",
    ),
    objective="ELBO (nats a row)",
    score="ELBO of all rows (nats a row)",
    estimate=estimate,
    parts=parts,
    capacity=capacity,
)

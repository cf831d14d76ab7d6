"Genes: outputs measured in replicas, some of them missing (Ma 2023, chapter 5)."

from __future__ import annotations

from scant.studies.base import ArraySpec, Citation, Entry, Source, array_specs
from scant.studies.genes.capacity import capacity, estimate, parts
from scant.studies.genes.published import SETTINGS
from scant.studies.genes.settings import FIXED, GenesSettings
from scant.studies.genes.table import TABLE
from scant.studies.predicted_columns import of_values
from scant.studies.published import values

# The draw closest to the medians of ten (`scripts/demo_spread.py`).
DEMO = {"data_seed": 3, **FIXED}


_CURVES = array_specs("""
    grid (g) [x] inputs of the curves
    mean (s r g) [y] posterior means of the shown outputs' replicas; NaN beyond an output's own
        number of them
    std_f (s r g) [y] deviations of the curves f
    std_y (s r g) [y] deviations of new measurements y
    shared_mean (s g) [y] posterior mean of the curve g that an output's replicas share; NaN where
        the model has none
    shared_std (s g) [y] its deviation
""")
_OUTPUTS = array_specs("""
    latent (d q) [1] means of the outputs' latent positions; empty where the model has none
    latent_std (d q) [1] their deviations
    K (d d) [1] correlation of the outputs under the prior, of 60 at most
    share (s 3) [share] of the prior variance: shared by the replicas, of each replica, noise
""")
_ONE = array_specs("""
    grid (g) [x] inputs
    mean (g) [y] posterior mean
    std_f (g) [y] deviation of the curve f
    std_y (g) [y] deviation of a new measurement y
""")

ENTRY = Entry(
    name="genes",
    title="Genes",
    question="How do you predict a replica that was never measured, or only at other times?",
    settings=GenesSettings,
    table=TABLE,
    sources=(
        Source(
            "demo",
            "Six genes in six embryos",
            "simulated log expression y at uneven times x (hours); some genes miss an embryo",
            generator="scant.studies.genes.simulate:demo",
            size=(252, 5),
            counts={"test": {"0": 226, "1": 26}},
        ),
        Source(
            "synthetic1",
            "Fifty outputs, half of the points",
            "the publication's first synthetic set: 50 outputs in 3 replicas of 10 points",
            generator="scant.studies.genes.simulate:first",
            size=(1500, 5),
            counts={"test": {"0": 750, "1": 750}},
        ),
        Source(
            "synthetic2",
            "Fifty outputs, a replica missing in each",
            "the publication's second synthetic set: 50 outputs in 4 replicas of 10 points",
            generator="scant.studies.genes.simulate:second",
            size=(2000, 5),
            counts={"test": {"0": 1500, "1": 500}},
        ),
        Source(
            "drosophila",
            "Embryos of the fruit fly",
            "expression of the publication's four genes in eight replicas (Kalinka et al. 2010), "
            "each gene standardized",
            kind="fetched",
        ),
        Source(
            "drosophila200",
            "Two hundred genes of the fruit fly",
            "the same four and others drawn at random, each standardized: 11,200 rows",
            kind="fetched",
        ),
    ),
    snapshot=(*_CURVES, *_OUTPUTS),
    report=(
        *_CURVES,
        *_OUTPUTS,
        *array_specs("""
            test_y (n_test) [y] held-out values
            test_mean (n_test) [y] their predictive means
            test_std_f (n_test) [y] deviations of the curve there
            test_std_y (n_test) [y] deviations of a new measurement there
            test_output (n_test) [1] index of their outputs
            test_replica (n_test) [1] index of their replicas in their outputs
            test_std_noise (n_test) [y] the noise part of it, which more data do not reduce
            test_unit (2 n_test) [y] mean and deviation of the training values of each value's
                output; NMSE and NLPD are of values in these units
            pit (n_test) [probability] probability integral transform of the values
            coverage (2 c) [share] nominal and observed coverage of intervals
            compare_mean (k r g) [y] curves of the first shown output by each of the compared
                models, in the order of the word `compared`
            compare_std (k r g) [y] deviations of a new measurement by each
        """),
    ),
    predicted=of_values(
        "y",
        """
            mean (n) [y] predictive mean of the replica's curve
            std (n) [y] deviation of the curve
            std_y (n) [y] deviation of a new measurement of it
            std_model (n) [y] the part of that which more data would remove: `std` again
            std_noise (n) [y] the part that stays
        """,
        "a new measurement",
    ),
    explore={
        "curves": (
            *_CURVES,
            *array_specs("""
                seen_x (n) [x] inputs of the data of the outputs asked for
                seen_y (n) [y] their values
                seen_output (n) [1] which of the outputs asked for
                seen_replica (n) [1] which of its replicas
                seen_test (n) [1] 1 where a row was kept out of training
            """),
        ),
        "hide": (
            *_ONE[:1],
            *(
                ArraySpec(f"{when}_{spec.name}", spec.shape, spec.unit, f"{spec.doc}, {condition}")
                for when, condition in (
                    ("before", "with the replica"),
                    ("after", "without it, the model trained on warm"),
                )
                for spec in _ONE[1:]
            ),
            *array_specs("""
                x (n) [x] inputs of the replica's own points
                y (n) [y] its points, hidden from the second model
                nmse (1) [1] NMSE of the hidden points (5.43)
                inside (1) [1] number of them in the 95% band without it
            """),
        ),
        "new": _ONE,
    },
    presets={
        "demo": DEMO,
        "quick": {
            **DEMO,
            "n_inducing_outputs": 2,
            "n_inducing_inputs": 8,
            "max_steps": 60,
            "baselines": False,
        },
        "as published": {"data_seed": DEMO["data_seed"], **values(SETTINGS)},
    },
    citations=(
        Citation(
            "C. Ma, Multi-output Gaussian Processes for Large-scale Multi-class Classification and "
            "Hierarchical Data, PhD thesis, University of Sheffield, 2023, chapter 5."
        ),
        Citation(
            "J. Hensman, N. D. Lawrence, M. Rattray, Hierarchical Bayesian modelling of gene "
            "expression time series across irregularly sampled replicates and clusters, BMC "
            "Bioinformatics 14:252, 2013.",
            "10.1186/1471-2105-14-252",
        ),
        Citation(
            "A. T. Kalinka et al., Gene expression divergence recapitulates the developmental "
            "hourglass model, Nature 468:811-814, 2010.",
            "10.1038/nature09634",
        ),
    ),
    limits=(
        "There is one input dimension and the noise is Gaussian.",
        "Some draws of the demonstration's data tell little about the missing replicas, even to a "
        "GP with the true covariances.",
        "Replicas with the same name count as the same sample in all outputs; give different "
        "samples different names.",
        "The cost of the exact models (DHGP, HGP, LMC, independent, pooled) is cubic in the rows: "
        "they are left out of the comparison above 1,500 rows.",
    ),
    objective="bound or log marginal likelihood (nats a row)",
    score="bound or log marginal likelihood (nats a row)",
    check="scant.studies.genes.table:check",
    estimate=estimate,
    parts=parts,
    capacity=capacity,
)

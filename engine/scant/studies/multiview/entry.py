"""Cell events, pollution and survival from many views by networks of GPs (Kandemir 2015)."""

from __future__ import annotations

from scant.studies.base import Citation, Entry, Source, array_specs
from scant.studies.multiview.capacity import capacity, estimate, parts
from scant.studies.multiview.published import SETTINGS, SURVIVAL
from scant.studies.multiview.settings import FIXED, MultiviewSettings
from scant.studies.multiview.table import TABLE
from scant.studies.predicted_columns import of_classes, of_values
from scant.studies.published import values

_MODEL = array_specs("""
    shown (n) [1] rows of the table that are shown (from 0): held-out ones
    hidden (n v) [1] means of the hidden neurons at these rows; no columns where the model has none
    hidden_std (n v) [1] their deviations
    influence (v) [share] of each neuron in the output kernel's relevance: squared inverse
        lengthscale times the neuron's variance over the rows
    predicted (n) [y] probability of the class in question, value, or time
    predicted_std (n) [y] deviation of a new value, or of the log of a time; with classes, of the
        class (0 or 1) itself
    predicted_low (n) [y] lower end of the 95% interval; NaN with classes
    predicted_high (n) [y] its upper end
    truth (n) [y] 1 or 0, value, or time
    km_time (t) [time] times of the survival curves of the held-out patients; empty where no
        survival is learnt, as all that follows
    km_true (3 t) [share] Kaplan-Meier estimate of survival, lower and upper end of its 95% interval
    km_predicted (t) [share] the same of the predicted times, as published
    km_expected (t) [share] mean of the patients' predicted survival functions, which know that
        predictions are uncertain
    patient_time (p) [time] how long each held-out patient is known to have lived
    patient_event (p) [1] 1 where he died then, 0 where he was last seen alive
    patient_pred (p) [time] predicted time: the median, averaged over his rows on the log scale
    patient_std (p) [1] deviation of its logarithm
    patient_low (p) [time] lower end of the 95% interval
    patient_high (p) [time] its upper end
""")
_TEST = array_specs("""
    test_index (n_test) [1] rows of the table that were held out
    test_truth (n_test) [y] 1 or 0, value, or time
    test_predicted (n_test) [y] probability, value, or time
    test_std (n_test) [y] as `predicted_std`
    test_low (n_test) [y] lower end of the 95% interval; NaN with classes
    test_high (n_test) [y] its upper end
    test_entropy (n_test) [nats] of the predicted classes; empty without classes
    test_information (n_test) [nats] the part of it that more data would remove
    test_std_model (n_test) [y] the part of `test_std` that more data would remove; empty with
        classes, and with models that do not tell it
    test_std_noise (n_test) [y] and the part that they would not; their squares add up
    pit (n_test) [probability] probability integral transform of the held-out values; of the
        patients that died, where survival is learnt; empty with classes
    coverage (2 c) [share] nominal and observed coverage of intervals, likewise
    reliability (3 b) [share] mean probability of the class in question, its share and the number of
        rows, of each bin; empty without classes
    pr (m 3 t) [share] threshold, precision and recall of each method (word `methods`); empty
        without classes
    scores (m r) [1] score of each method on each random split (word `score`): F1 or NMSE; one
        column, the run's own, where there is no repetition
    t_test (m) [probability] p of a paired t-test of the run's model against each method over these
        splits; NaN where there are fewer than three, or for itself
""")

# A draw of about the median scores (`scripts/demo_spread.py`).
DEMO = FIXED | {"data_seed": 6, "training_share": 0.5}

ENTRY = Entry(
    name="multiview",
    title="Many views",
    question="Few labels, many views: which views are informative, and how do you combine them?",
    settings=MultiviewSettings,
    table=TABLE,
    sources=(
        Source(
            "demo",
            "Cell events on film",
            "480 simulated candidates from eight films: dividing and dying cells among moving "
            "ones, each in eight views, four of them from the previous frame",
            generator="scant.studies.multiview.simulate.cell_events:demo",
            size=(480, 542),
            kept=True,
        ),
        Source(
            "so2",
            "Sulphur dioxide, a day ahead",
            "2,000 simulated hours with 27 inputs of pollution and weather, and the level 24 hours"
            " later",
            generator="scant.studies.multiview.simulate.so2:demo",
            size=(2000, 28),
            counts={"y": {}},
        ),
        Source(
            "survival",
            "A cohort of patients",
            "77 simulated patients with 918 tissue samples in four views; some are censored",
            generator="scant.studies.multiview.simulate.survival:demo",
            size=(918, 45),
            counts={"time": {}},
        ),
    ),
    snapshot=_MODEL,
    report=(*_MODEL, *_TEST),
    predicted=(
        *of_classes(),
        *of_values(
            "y or time",
            """
                mean (n) [y] predictive mean; of times that of a patient's rows
                std (n) [y] deviation of a new value
                median (n) [y] of a patient's time
                low (n) [y] lower end of the 95 % interval from two moments
                high (n) [y] its upper end
                std_model (n) [y] the part of the deviation that more data would remove
                std_noise (n) [y] the part that stays
            """,
            "a new value",
        )[:-1],
    ),
    explore={
        "views": array_specs("""
            on (v) [1] 1 for each view (word `views`) that is looked through
            score (1) [1] F1 or NMSE of the held-out rows by the run's model, trained anew on these
                views
            averaged (1) [1] the same by a support vector machine, or kernel regression, with the
                average of these views' kernels
            influence (v) [share] of each view; 0 where it is off
        """),
        "row": array_specs("""
            index (1) [1] the row of the table
            predicted (1) [y] probability, value, or time
            predicted_std (1) [y] as in the snapshot
            predicted_low (1) [y] lower end of the 95% interval; NaN with classes
            predicted_high (1) [y] its upper end
            truth (1) [y] 1 or 0, value, or time
            hidden (v) [1] means of the hidden neurons
            hidden_std (v) [1] their deviations
        """),
        "scarcity": array_specs("""
            n (1) [1] groups, patients or rows (word `counted`) learnt from
            rows (1) [rows] that they have
            scores (m) [1] score of the held-out rows by each method (word `scarce`): F1 or NMSE
        """),
        "patient": array_specs("""
            time (1) [time] how long the patient is known to have lived
            event (1) [1] 1 where he died then
            predicted (1) [time] predicted time
            low (1) [time] lower end of its 95% interval
            high (1) [time] its upper end
            rows (n) [time] what each of his rows says
            curve_time (t) [time] times of his survival function
            curve (t) [probability] that he lives longer
        """),
    },
    presets={
        "demo": DEMO,
        "quick": DEMO | {"max_steps": 40, "baselines": False},
        "as published": {"data_seed": DEMO["data_seed"], **values(SETTINGS)},
        "as published, survival": {"data_seed": DEMO["data_seed"], **values(SURVIVAL)},
    },
    citations=(
        Citation(
            "M. Kandemir, F. A. Hamprecht, The Deep Feed-Forward Gaussian Process: An Effective "
            "Generalization to Covariance Priors, Proceedings of Machine Learning Research 44, "
            "2015."
        ),
        Citation(
            "A. Shah, A. G. Wilson, Z. Ghahramani, Student-t processes as alternatives to Gaussian "
            "processes, AISTATS 2014."
        ),
        Citation(
            "E. L. Kaplan, P. Meier, Nonparametric estimation from incomplete observations, "
            "Journal of the American Statistical Association 53:457-481, 1958.",
            "10.1080/01621459.1958.10501452",
        ),
    ),
    limits=(
        "The model separates two classes: those named in 'positive_class' and the rest.",
        "Only the stochastic bound of DFGP and DFGP-WP learns from censored times. Other models "
        "use them only in the observed Kaplan-Meier curve and in the concordance, so with many "
        "censored times their predictions are too short.",
        "Errors per patient cover those who died, because the other times are unknown. Censored "
        "patients count in the concordance, the curves and the training.",
        "The rows of a patient have fully correlated errors: their average is as uncertain as one "
        "row, because they share the same unobserved causes.",
        "The published figures are from other data (air quality in Belfast, films of osteosarcoma "
        "cells) that are not available here; they are shown for reference only.",
        "The published bound omits the entropy of the inducing outputs, so it has no maximum: "
        "under L-BFGS the noise diverges and F1 falls. Here a decaying step size ends the run; the"
        " publication stops after a hundred steps at one rate.",
        "The publication's kernels have one lengthscale each, its output kernel has variance 1, "
        "and its Wishart process has no weights. By default all of these are learned; the preset "
        "'as published' has the publication's kernels.",
        "With the publication's kernels and bound, the hidden neurons go flat on the simulated "
        "patients, so that DFGP and DFGP-WP predict the mean of the times.",
        "A neuron goes flat if its view adds nothing to the others. In the demonstration most "
        "neurons go flat: a support vector machine on the texture alone, or on most views of the "
        "previous frame, also finds hardly any event.",
        "On the demonstration's data DFGP is no better than a support vector machine with averaged "
        "kernels; on the publication's data it was better.",
        "Histograms of oriented gradients replace the publication's SIFT features.",
    ),
    objective="bound (nats a row)",
    score="bound (nats a row)",
    check="scant.studies.multiview.splits:check",
    estimate=estimate,
    parts=parts,
    capacity=capacity,
    reweighs=False,
)  # fmt: skip

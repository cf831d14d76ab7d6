"""Clamps: active learning with few labels from an expert (Yousefi 2021, chapter 4)."""

from __future__ import annotations

from scant.studies.base import ArraySpec, Citation, Entry, Source, array_specs
from scant.studies.clamp.capacity import capacity
from scant.studies.clamp.cost import COLUMNS, estimate
from scant.studies.clamp.published import SETTINGS
from scant.studies.clamp.settings import FIXED, ClampSettings
from scant.studies.clamp.table import TABLE
from scant.studies.predicted_columns import of_classes
from scant.studies.published import values

_SESSION = array_specs("""
    labels (r) [1] labels given at each round so far
    f1 (m r) [1] F1 of the class of interest on the held-out patches (validation where there is no
        test set): active sampling, and random sampling (mean)
    precision (m r) [1] precision, likewise
    recall (m r) [1] recall, likewise
    f1_random_sd (r) [1] standard deviation of F1 over the random sessions
    validation_f1 (r) [1] F1 on the validation patches; NaN where there are none
    evidence (r) [nats] log evidence of the labels
    flips (r) [share] of the pool's predictions that the round changed
    expected (r) [patches] predictions that the next round is expected to change
    pool_xy (n 2) [1] the first two principal components of every row
    pool_p (n) [probability] of the class that is looked for, of every row
    role (n) [1] 0: may be asked about, 1: validation, 2: test
    row (n) [1] of the table, counted from 0
    truth (n) [1] label in the table; -1 where it has none
    asked (k) [1] labeled rows, in the order of the queries
    asked_label (k) [1] their labels
    queue (q) [1] rows to be asked about next
    queue_p (q) [probability] of them
    predicted (n) [1] class of every row, by its number in metadata['classes']
    change (r) [1] 1 less the F1 of the round's predictions by those of the round before
""")

ENTRY = Entry(
    name="clamp",
    title="Clamps",
    question="Thousands of patches, one expert: which patches should be labeled?",
    settings=ClampSettings,
    table=TABLE,
    sources=(
        Source(
            "demo",
            "Pipe joints in trenches",
            "88 simulated photographs with 21 patches each; one patch in fifteen has a clamp",
            generator="scant.studies.clamp.simulate:demo",
            size=(1848, COLUMNS),
            kept=True,
        ),
        Source(
            "trenches",
            "Frequent clamps of three kinds",
            "80 simulated photographs; one patch in five has a clamp, and random sampling finds "
            "enough",
            generator="scant.studies.clamp.simulate:large",
            size=(1680, COLUMNS),
            kept=True,
            start=FIXED,
        ),
        Source(
            "many trenches",
            "A pool much larger than the budget",
            "143 simulated photographs, 3,003 patches: active and random sampling do not end on "
            "the same labels",
            generator="scant.studies.clamp.simulate:many",
            size=(3003, COLUMNS),
            kept=True,
            start=FIXED,
        ),
    ),
    snapshot=_SESSION,
    report=(
        *_SESSION,
        *array_specs("""
            eigenvalues (e) [share] of the features' variance by component
            compare_f1 (c r) [1] F1 of the methods compared (metadata['compared']), mean over the
                repeated sessions
            compare_sd (c r) [1] its standard deviation over them
            reliability (3 b) [share] mean p, share of the class looked for and number of the
                held-out patches, by bin of p
            confusion (c c) [patches] held-out rows by their class and by the predicted one
            class_f1 (c) [1] F1 of each class on the held-out rows
            picture (n) [1] of every row, by its number in metadata['pictures']
            test_row (t) [1] held-out rows, of the pool
            test_p (t) [probability] of the class that is looked for
            test_label (t) [1] their labels
        """),
    ),
    predicted=of_classes(),
    explore={
        "ask": array_specs("""
            queue (k) [1] rows to be asked about next, in this order
            queue_p (k) [probability] of the class that is looked for
            reason (k) [words] why each is asked about
            p (n) [probability] of every row
            evidence (1) [nats] log evidence of the labels; NaN without any
            f1 (1) [1] on the held-out patches; of the training labels by cross-validation where
                none of these is, or is predicted as, the class looked for; NaN where neither can be
            precision (1) [1] likewise
            recall (1) [1] likewise
            held_out (1) [1] 1 where the scores are of held-out patches, else 0, even if some are
            flips (1) [share] of the pool, changed since the fit before
            expected (1) [patches] predictions that the queue's labels are expected to change
            predicted (n) [1] class of every row, by its number in metadata['classes']
            remaining (1) [labels] estimate of those still needed; 0 at the stop, NaN unknown
            held_out_rows (h) [1] labeled rows that are drawn at random and not learned from
            f1_interval (2) [1] 95 % interval of f1 by the held-out patches; NaN where held_out is 0
            stop (1) [1] 1 where one may stop
            advice (1) [words] whether to go on, and why
            missing_images (w) [1] placed patches of the labels whose image files are to be sent as
                `images`, by number; until then the answer is without the new labels
        """),
        "model": array_specs("""
            file (n) [bytes] the model of these labels, as safetensors
            missing_images (w) [1] as of "ask"; the file is then empty
        """),
        "patch": (ArraySpec("image", "h w 3", "0-255", "the patch; empty where there is none"),),
        "patches": array_specs("""
            image (k h w 3) [0-255] patches, all of one size; empty where there are no images
            thumb (k a b 3) [0-255] the pictures that they are parts of, small
            box (k 4) [share] left, top, width and height of each in its picture
            x (k d) [1] features of the table where there are no images
        """),
        "picture": array_specs("""
            image (h w 3) [0-255] the whole picture, reduced
            boxes (b 4) [pixels] left, top, right, bottom of its patches in it
            p (b) [probability] of each
            rows (b) [1] of the pool; then the numbers of placed patches that are learned from
            truth (b) [1] labels in the table; -1 where it has none
            verdict (1) [probability] of the picture: the largest of its patches
        """),
    },
    presets={
        "demo": FIXED | {"picture_width": 340},  # so that the recording stays small
        "quick": FIXED | {"budget": 130, "repeats": 2, "baselines": False},
        "as published": values(SETTINGS),
        "one in twenty": FIXED | {"imbalance": 20.0, "start": 60, "budget": 300},
        "you label": {"expert": "you"},  # on whatever features are best here
    },
    citations=(
        Citation(
            "F. Yousefi, Gaussian Processes for Data Scarcity Challenges, PhD thesis, University "
            "of Sheffield, 2021, chapter 4."
        ),
        Citation(
            "F. Yousefi, M. A. Álvarez, N. Lawrence, C. H. Ek, Active Learning Using Gaussian "
            "Processes for Imbalanced Datasets, NeurIPS workshop on Bayesian nonparametrics, 2018."
        ),
        Citation(
            "C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning, MIT "
            "Press, 2006, chapter 3."
        ),
        Citation(
            "N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel, Bayesian Active Learning for "
            "Classification and Preference Learning, arXiv:1112.5745, 2011."
        ),
    ),
    limits=(
        "The photographs of the publication are confidential and those of the demonstration are "
        "simulated. The publication's Table 4.1, shown beside our results, is therefore for other "
        "data.",
        "Skipped rows return until they are labeled.",
        "The advice to stop is calibrated on simulated sessions; with few labels of the rare class "
        "it is not given.",
        "Patches overlap, so whole pictures are held out: the scores are on other pictures than "
        "the labels.",
        "The prediction for a picture is that of its most probable patch.",
        "Amplitude and lengthscales have a weak prior, which is not in the publication: without "
        "it, the amplitude diverges when a few labels are separable. The setting 'hyperprior' "
        "turns it off.",
        "Laplace's approximation is cubic in the number of labels: a thousand are fast, five "
        "thousand are not.",
        "Frequent clamps need no search: where one patch in five has a clamp, of three kinds, "
        "active sampling gains little or nothing over random sampling.",
    ),
    objective="log marginal likelihood (nats a label)",
    score="validation F1, or agreement in F1 (0 to 1)",
    check="scant.studies.clamp.splits:check",
    estimate=estimate,
    capacity=capacity,
)

"Clamps: active learning with few labels from an expert (Yousefi 2021, chapter 4)."

from __future__ import annotations

import param
from scant.errors import BadInput
from scant.studies.auto import AUTO, AutoInteger
from scant.studies.base import ArraySpec, Citation, Counts, Entry, Settings, Source, array_specs
from scant.studies.clamp.capacity import COMPONENTS, capacity
from scant.studies.clamp.table import TABLE
from scant.studies.predicted_columns import of_classes

FIXED = {"n_components": COMPONENTS}  # what presets begin from
EXPERTS = ["simulated", "you"]
ACQUISITIONS = ["band", "least confident", "entropy", "BALD", "random"]
DIVERSITY = ["distance", "determinant", "none"]
FEATURES = ["auto", "columns", "colour, HOG and LBP", "InceptionV3"]
METHODS = ("GP, active", "GP, random")  # while it runs
COMPARED = (*METHODS, "logistic regression, active", "linear classifier, all labels")
QUEUE = 8  # patches that wait to be shown
ROLES = ("pool", "validation", "test")
COLUMNS = 6  # of a table of patches that has no features of its own


class ClampSettings(Settings):
    "Settings of a labeling session."

    study = "clamp"
    essential = ("expert", "acquisition", "imbalance", "start", "budget", "batch_size")

    expert = param.Selector(
        objects=EXPERTS,
        doc="simulated: the table's labels answer the queries. you: the run prepares the pool and "
        "waits for your labels.",
    )
    pace = param.Number(
        0.0,
        bounds=(0.0, 100.0),
        doc="Labels per second of the simulated expert; 0: no limit.",
    )
    positive_class = param.String(
        "",
        doc='The class of interest. Empty: "clamp" or "1", else the rarer class. It '
        "names what you look for where no patch is labeled yet.",
    )
    acquisition = param.Selector(
        default="band",
        objects=ACQUISITIONS,
        doc="Acquisition function. band: p within delta of 0.5 as published, then the nearest to "
        "it. BALD: the largest expected information about the latent function.",
    )
    delta = param.Number(0.05, bounds=(0.0, 0.5), doc="Half-width of the band around p = 0.5.")
    batch_size = param.Integer(10, bounds=(1, 1000), doc="Number of labels between two fits.")
    diverse = param.Selector(
        objects=DIVERSITY,
        doc="Diversity of a batch: patches far from one another, the largest determinant of their "
        "posterior covariance, or no diversity.",
    )
    start = param.Integer(
        30,
        bounds=(2, 100_000),
        doc="Number of initial labels, drawn at random; more if all of these have one class.",
    )
    budget = param.Integer(
        230, bounds=(2, 100_000), doc="Scarcity: maximum number of labels from the expert."
    )
    imbalance = param.Number(
        0.0,
        bounds=(0.0, 1000.0),
        doc="Scarcity: number of other patches for each patch of the class of interest. The "
        "surplus is dropped at random; 0: as in the table.",
    )
    validation_share = param.Number(
        0.15,
        bounds=(0.0, 0.5),
        doc="Share of the pictures in the validation set, which decides when to stop.",
    )
    test_share = param.Number(
        0.25,
        bounds=(0.0, 0.6),
        doc="Share of the pictures in the test set, which is only used for the scores.",
    )
    feature_extractor = param.Selector(
        objects=FEATURES,
        doc="Inputs of the classifier. auto: the table's numeric columns if there are any, else "
        "color, HOG and LBP of the images.",
    )
    n_components = AutoInteger(
        AUTO,
        bounds=(1, 500),
        label="Principal components",
        doc="Principal components of the features, fitted to the whole pool; auto: all of few "
        "columns, 20 of many or of images.",
    )
    link = param.Selector(
        default="logistic",
        objects=["logistic", "probit"],
        doc="Link from the latent function to p.",
    )
    ard = param.Boolean(
        False, doc="Learn one lengthscale for each component instead of one for all."
    )
    patience = param.Integer(
        5,
        bounds=(0, 10_000),
        doc="Stop after this number of batches without a better validation F1, if the predictions "
        "have settled; 0: continue to the end of the budget.",
    )
    repeats = param.Integer(
        5,
        bounds=(1, 100),
        doc="Number of repeated sessions from other starts: random sampling during the run, the "
        "active methods after it.",
    )
    baselines = param.Boolean(
        True, doc="Compare with other methods on the same budget of labels after the run."
    )
    picture_width = param.Integer(
        560,
        bounds=(160, 1280),
        doc="Width in pixels of the pictures stored with the model for display.",
    )

    def check(self) -> None:
        if self.budget < self.start:
            raise BadInput(
                f"Setting 'budget' is {self.budget} and 'start' already takes {self.start} labels; "
                "raise the budget or start with fewer."
            )
        if self.validation_share + self.test_share > 0.9:
            raise BadInput(
                "Settings 'validation_share' and 'test_share' leave no pictures to query; lower "
                "one of them."
            )


def estimate(
    settings: ClampSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a run takes on one core, good to a factor of two.

    Counted: images, and their features where nobody made them before; of each session 40 steps of
    the first fit and 6 of every further one, of those beside the run and of the active ones
    afterwards. There are no more labels than the table has outside validation and test, and with
    `patience` a run stopped after 13 to 21 batches. Measured, one thread: a step takes 4 ms up to
    150 labels; an image 9 to 14 ms the first time.
    """
    s = settings
    images = columns <= COLUMNS
    making = rows * (0.01 if images else 0.0) * (12 if s.feature_extractor == "InceptionV3" else 1)
    if not counts and s.data_seed == 0 and s.feature_extractor in (FEATURES[0], FEATURES[2]):
        making = 0.0  # of what we draw ourselves they are shipped
    held = 500e6 + rows * (200e3 if images else 200)
    if s.expert == "you":
        return 1.0 + making, held
    label = counts.get("label", {})
    known = float(sum(label.values()) if counts else rows)
    if s.imbalance and label:
        few, many = min(label.values()), max(label.values())
        known = min(known, few * (1 + s.imbalance), many * (1 + 1 / s.imbalance))
    budget = min(s.budget, known * (1 - s.validation_share - s.test_share))
    rounds = -(-max(0, budget - s.start) // s.batch_size)
    if s.patience:
        rounds = min(rounds, 4 * s.patience)
    labels = min(budget, s.start + rounds * s.batch_size)
    sessions = (1 + s.repeats) + (s.repeats - 1 if s.baselines else 0)
    fits = sessions * (40 + 6 * rounds) * (0.0036 + 6e-11 * labels**3)
    waiting = max(0.0, labels - s.start) / s.pace if s.pace else 0.0
    return 0.6 + making + fits + waiting, held


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
            "36 simulated photographs with 21 patches each; one patch in five has a clamp",
            generator="scant.studies.clamp.simulate:demo",
            size=(756, COLUMNS),
            kept=True,
        ),
        Source(
            "trenches",
            "More pipe joints",
            "80 simulated photographs, enough for one clamp in twenty patches",
            generator="scant.studies.clamp.simulate:large",
            size=(1680, COLUMNS),
            kept=True,
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
                none is held out; NaN where neither can be
            precision (1) [1] likewise
            recall (1) [1] likewise
            held_out (1) [1] 1 where the scores are of held-out patches, else 0
            flips (1) [share] of the pool, changed since the fit before
            expected (1) [patches] predictions that the queue's labels are expected to change
            stop (1) [1] 1 where one may stop
            advice (1) [words] whether to go on, and why
        """),
        "model": (ArraySpec("file", "n", "bytes", "the model of these labels, as safetensors"),),
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
            rows (b) [1] of the pool
            truth (b) [1] labels in the table; -1 where it has none
            verdict (1) [probability] of the picture: the largest of its patches
        """),
    },
    presets={
        "demo": FIXED,
        "quick": FIXED | {"budget": 130, "repeats": 2, "baselines": False},
        "as published": FIXED | {"start": 126, "budget": 433, "batch_size": 30, "diverse": "none"},
        "one in twenty": FIXED | {"imbalance": 20.0, "start": 60, "budget": 300},
        "you label": FIXED | {"expert": "you"},
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
        "simulated. Its Table 4.1 beside our results is therefore on other data.",
        "The expert chooses between two classes; skipped patches return until they are labeled.",
        "Patches overlap, so whole pictures are held out: the scores are on other pictures than "
        "the labels.",
        "The prediction for a picture is that of its most probable patch.",
        "Amplitude and lengthscales have a weak prior, which is not in the publication: without "
        "it, the amplitude diverges when a few labels are separable.",
        "Laplace's approximation is cubic in the number of labels: a thousand are fast, five "
        "thousand are not.",
        "On ten draws of the demonstration (data seeds 0 to 9), F1 of the patches was 0.43 to "
        "0.74, median 0.65, with 80 to 200 labels; the recorded draw has 0.63 with 190.",
    ),
    objective="log marginal likelihood (nats a label)",
    score="F1 of the validation patches (0 to 1)",
    estimate=estimate,
    capacity=capacity,
)

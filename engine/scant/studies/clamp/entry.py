"Clamps: active learning with few labels from an expert (Yousefi 2021, chapter 4)."

from __future__ import annotations

import param

from scant.errors import BadInput
from scant.studies.auto import AUTO, AutoInteger
from scant.studies.base import ArraySpec, Citation, Counts, Entry, Settings, Source, array_specs
from scant.studies.clamp.capacity import COMPONENTS, capacity, expert_for
from scant.studies.clamp.table import TABLE
from scant.studies.predicted_columns import of_classes
from scant.tables.images.kinds import HANDMADE, INCEPTION, JOINED, KINDS, NETWORK, automatic

EXPERTS = [AUTO, "simulated", "you"]
ACQUISITIONS = [
    AUTO,
    "rare class first",
    "band",
    "band, strict",
    "least confident",
    "entropy",
    "BALD",
    "random",
]
KERNELS = ["RBF", "linear and RBF"]
BY_PATCH, BY_PICTURE = "patch", "picture"
DIVERSITY = ["distance", "determinant", "none"]
FEATURES = ["auto", "columns", *KINDS]
# What presets begin from, so that they are the same whatever is installed.
FIXED = {"n_components": COMPONENTS, "feature_extractor": HANDMADE}
# Yousefi (2021, sections 4.4 and 4.5): 126 patches first, 433 learned from and 101 to validate,
# one picture without a clamp to four with one; the class of interest is "non-clamp".
PUBLISHED = {
    "positive_class": "no clamp",
    "acquisition": "band, strict",
    "kernel": "RBF",
    "diverse": "none",
    "start": 126,
    "budget": 534,
    "batch_size": 30,
    "validation_share": 0.19,
    "imbalance": 4.0,
    "imbalance_by": BY_PICTURE,
}
METHODS = ("GP, active", "GP, random")  # while it runs
COMPARED = (*METHODS, "logistic regression, active", "linear classifier, all labels")
CNN = "convolutional network, random"
SECONDS = {NETWORK: 0.005, JOINED: 0.015, INCEPTION: 0.12}  # of an image
SHIPPED = 1848  # images of a source at most whose features are shipped
NETWORK_SECONDS = 20.0  # of the convolutional network
QUEUE = 8  # patches that wait to be shown
ROLES = ("pool", "validation", "test")
COLUMNS = 6  # of a table of patches that has no features of its own


class ClampSettings(Settings):
    "Settings of a labeling session."

    study = "clamp"
    essential = ("expert", "acquisition", "imbalance", "start", "budget", "batch_size")

    expert = param.Selector(
        default=AUTO,
        objects=EXPERTS,
        doc="simulated: the table's labels answer the queries. you: the run prepares the pool and "
        "waits for your labels. auto: simulated where most rows have labels, else you.",
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
    class_names = param.String(
        "",
        doc='Names of the classes, with commas, the class of interest first, such as "screw, no '
        'screw", where the table has no labels. Empty: the names in the table.',
    )
    acquisition = param.Selector(
        default=AUTO,
        objects=ACQUISITIONS,
        doc="Acquisition function. rare class first: the likeliest of the rarest class until "
        "enough are labeled, then the least confident. band: p within delta of 0.5, then the "
        "nearest to it. band, strict: those within delta alone, as published; the session ends "
        "where there are none. BALD: the largest expected information about the latent function. "
        "auto: rare class first.",
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
    imbalance_by = param.Selector(
        objects=[BY_PATCH, BY_PICTURE],
        label="Imbalance by",
        doc="Whether 'imbalance' counts patches or, as published, whole pictures: those that show "
        "the rarer class and those that do not.",
    )
    validation_share = param.Number(
        0.0,
        bounds=(0.0, 0.5),
        doc="Share of the budget whose labels are not learned from, but give a validation F1; with "
        "'count_validation' off, share of the pictures beside the budget.",
    )
    count_validation = param.Boolean(
        True, doc="Count the labels of the validation set in the budget."
    )
    test_share = param.Number(
        0.25,
        bounds=(0.0, 0.6),
        doc="Share of the pictures in the test set, which is only used for the scores.",
    )
    feature_extractor = param.Selector(
        objects=FEATURES,
        doc="Inputs of the classifier. auto: the table's numeric columns if there are any, else "
        "of the images EfficientNet-Lite0 with color, HOG and LBP, or without the extra 'vision' "
        "color, HOG and LBP alone.",
    )
    n_components = AutoInteger(
        AUTO,
        bounds=(1, 500),
        label="Principal components",
        doc="Principal components of the features, fitted to the whole pool; auto: all of few "
        "columns, 20 of many or of images, 50 of a network's features.",
    )
    fixed_split = param.Boolean(
        True,
        doc="Hold out the same rows whatever the seed is: 'data_seed' draws them. Off: another "
        "test set with every seed.",
    )
    check_share = param.Number(
        0.0,
        bounds=(0.0, 0.5),
        label="Share of checks",
        doc="Share of your own queries that are drawn at random and not learned from; they give "
        "the F1 of your session, with its interval.",
    )
    kernel = param.Selector(
        default="linear and RBF",
        objects=KERNELS,
        doc="Kernel of the Gaussian process: squared exponential, or with a linear part, which "
        "alone is Bayesian logistic regression.",
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
        8,
        bounds=(0, 10_000),
        doc="Stop where the predictions have settled over this number of batches, by the expected "
        "change of F1; 0: continue to the end of the budget.",
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
    network = param.Boolean(
        False,
        label="Convolutional network",
        doc="Train a small convolutional network on the same number of random labels, as a further "
        "baseline; of images only.",
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
        if not self.count_validation and self.validation_share + self.test_share > 0.9:
            raise BadInput(
                "Settings 'validation_share' and 'test_share' leave no pictures to query; lower "
                "one of them."
            )
        names = self.names_of_classes()
        if names and (len(names) < 2 or len(set(names)) < len(names) or not all(names)):
            raise BadInput(
                f"Setting 'class_names' is {self.class_names[:80]!r}; give two different names or "
                'more, with commas, such as "screw, no screw".'
            )

    def names_of_classes(self) -> list[str]:
        """Of `class_names`, the class of interest first; none where it is empty."""
        given = str(self.class_names)
        return [word.strip() for word in given.split(",")] if given.strip() else []

    @property
    def method(self) -> str:
        """The acquisition, where it is `auto` too."""
        return ACQUISITIONS[1] if self.acquisition == AUTO else str(self.acquisition)

    @property
    def split_seed(self) -> int:
        """Of the rows that are left out and held out."""
        return int(self.data_seed if self.fixed_split else self.seed)

    def spent(self, known: int) -> int:
        """Labels of the budget that go to validation, of so many that there are."""
        if not self.count_validation:
            return 0
        return min(round(self.validation_share * min(self.budget, known)), known // 2)


def estimate(
    settings: ClampSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a run takes on one core, good to a factor of two.

    Counted: images, and their features where nobody made them before; of each session 40 steps of
    the first fit and 6 of every further one, of those beside the run and of the active ones
    afterwards. There are no more labels than the table has outside validation and test, and with
    `patience` a run stops early or not at all. Measured, one thread: a step takes 4 ms up to
    150 labels; an image 9 to 14 ms the first time.
    """
    s = settings
    images = columns <= COLUMNS
    kind = automatic() if s.feature_extractor == FEATURES[0] else s.feature_extractor
    making = rows * SECONDS.get(kind, 0.01) if images else 0.0
    if not counts and s.data_seed == 0 and kind == HANDMADE and rows <= SHIPPED:
        making = 0.0  # of what we draw ourselves they are shipped
    held = 500e6 + rows * (200e3 if images else 200)
    label = counts.get("label", {})
    who = s.expert if s.expert != AUTO or not counts else expert_for(label, rows).value
    if who == "you":
        return 1.0 + making, held
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
    models = len(label) if len(label) > 2 else 1
    fits = models * sessions * (40 + 6 * rounds) * (0.0036 + 6e-11 * labels**3)
    waiting = max(0.0, labels - s.start) / s.pace if s.pace else 0.0
    learning = NETWORK_SECONDS if s.network and images else 0.0
    return 0.6 + making + fits + waiting + learning, held


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
                none is held out; NaN where neither can be
            precision (1) [1] likewise
            recall (1) [1] likewise
            held_out (1) [1] 1 where the scores are of held-out patches, else 0
            flips (1) [share] of the pool, changed since the fit before
            expected (1) [patches] predictions that the queue's labels are expected to change
            predicted (n) [1] class of every row, by its number in metadata['classes']
            remaining (1) [labels] estimate of those still needed; 0 at the stop, NaN unknown
            held_out_rows (h) [1] labeled rows that are drawn at random and not learned from
            f1_interval (2) [1] 95 % interval of f1 by the held-out patches; NaN where none is
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
        "demo": FIXED | {"picture_width": 340},  # so that the recording stays small
        "quick": FIXED | {"budget": 130, "repeats": 2, "baselines": False},
        "as published": FIXED | PUBLISHED,
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
        "Skipped patches return until they are labeled.",
        "The advice to stop is calibrated on simulated sessions; with few labels of the rare class "
        "it is not given.",
        "Patches overlap, so whole pictures are held out: the scores are on other pictures than "
        "the labels.",
        "The prediction for a picture is that of its most probable patch.",
        "Amplitude and lengthscales have a weak prior, which is not in the publication: without "
        "it, the amplitude diverges when a few labels are separable.",
        "Laplace's approximation is cubic in the number of labels: a thousand are fast, five "
        "thousand are not.",
        "Averaged over 30 to 230 labels, active sampling was ahead of random sampling by 0.13 to "
        "0.20 of F1, median 0.17, on five draws of the demonstration (data seeds 0 to 4); the "
        "recorded draw has 0.19. F1 at the end was 0.70 to 0.87, median 0.78. Frequent clamps need "
        "no search: where one patch in five has a clamp, of three kinds, the gain was -0.03 to "
        "0.07, median 0.02, on five draws of 36 pictures.",
    ),
    objective="log marginal likelihood (nats a label)",
    score="validation F1, or agreement in F1 (0 to 1)",
    estimate=estimate,
    capacity=capacity,
)

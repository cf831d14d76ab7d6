"""Clamps: an expert, few labels, and a model that asks (Yousefi 2021, chapter 4)."""

from __future__ import annotations

import param
from scant.errors import BadInput
from scant.studies.base import ArraySpec, Citation, Counts, Entry, Settings, Source
from scant.studies.clamp.table import TABLE

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
    """Settings of a labeling session."""

    study = "clamp"
    essential = ("expert", "acquisition", "imbalance", "start", "budget", "batch_size")

    expert = param.Selector(
        default=EXPERTS[0],
        objects=EXPERTS,
        doc="simulated: the labels of the table answer. you: the run prepares the pool and waits "
        "for your labels.",
    )
    pace = param.Number(
        0.0,
        bounds=(0.0, 100.0),
        doc="Labels a second of the simulated expert; 0: as fast as it goes.",
    )
    positive_class = param.String(
        "", doc='The class that is looked for; empty: "clamp" or "1", else the rarer one.'
    )
    acquisition = param.Selector(
        default="band",
        objects=ACQUISITIONS,
        doc="Which patches are asked about. band: p within delta of 0.5, as published, then the "
        "nearest to it; BALD: where a label would tell most of the latent function.",
    )
    delta = param.Number(0.05, bounds=(0.0, 0.5), doc="Half width of the band about p = 0.5.")
    batch_size = param.Integer(10, bounds=(1, 1000), doc="Labels between two fits.")
    diverse = param.Selector(
        default=DIVERSITY[0],
        objects=DIVERSITY,
        doc="How a batch is kept from repeating itself: patches far from one another, the largest "
        "determinant of their posterior covariance, or not at all.",
    )
    start = param.Integer(
        30,
        bounds=(2, 100_000),
        doc="Patches labelled first, drawn at random; more where they are all of one class.",
    )
    budget = param.Integer(
        230, bounds=(2, 100_000), doc="Scarcity: labels that the expert gives at most."
    )
    imbalance = param.Number(
        0.0,
        bounds=(0.0, 1000.0),
        doc="Scarcity: patches without for each patch with what is looked for; patches are left "
        "out at random; 0: as in the table.",
    )
    validation_share = param.Number(
        0.15,
        bounds=(0.0, 0.5),
        doc="Share of the pictures whose labelled patches tell when to stop.",
    )
    test_share = param.Number(
        0.25, bounds=(0.0, 0.6), doc="Share of the pictures that only the scores are taken from."
    )
    features = param.Selector(
        default=FEATURES[0],
        objects=FEATURES,
        doc="What the classifier is given. auto: the table's numeric columns where there are such, "
        "else colour, HOG and LBP of the images.",
    )
    n_components = param.Integer(
        20, bounds=(1, 500), doc="Principal components of the features, fitted to the whole pool."
    )
    link = param.Selector(
        default="logistic", objects=["logistic", "probit"], doc="From latent function to p."
    )
    ard = param.Boolean(False, doc="One lengthscale for each component in place of one for all.")
    patience = param.Integer(
        5,
        bounds=(0, 10_000),
        doc="Batches without a better F1 on the validation patches, after which the run stops if "
        "predictions have settled; 0: it goes on to the budget.",
    )
    repeats = param.Integer(
        5,
        bounds=(1, 100),
        doc="Sessions from other starts: of random patches while it runs, of the active methods "
        "afterwards.",
    )
    baselines = param.Boolean(
        True, doc="Compare with other methods on the same budget of labels afterwards."
    )
    picture_width = param.Integer(
        560,
        bounds=(160, 1280),
        doc="Width in pixels at which pictures are kept with the model, to be shown.",
    )

    def check(self) -> None:
        if self.budget < self.start:
            raise BadInput(
                f"Setting 'budget' is {self.budget} and 'start' already takes {self.start} labels; "
                "raise the budget or start with fewer."
            )
        if self.validation_share + self.test_share > 0.9:
            raise BadInput(
                "Settings 'validation_share' and 'test_share' leave no pictures to be asked about; "
                "lower one of them."
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
    making = rows * (0.01 if images else 0.0) * (12 if s.features == "InceptionV3" else 1)
    if not counts and s.seed == 0 and s.features in (FEATURES[0], FEATURES[2]):
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


_SESSION = (
    ArraySpec("labels", "r", "1", "labels given at each round so far"),
    ArraySpec("f1", "m r", "1", "F1 of what is looked for on the held-out patches (validation "
              "where no test is held out): asked actively, and at random (mean)"),
    ArraySpec("precision", "m r", "1", "precision, likewise"),
    ArraySpec("recall", "m r", "1", "recall, likewise"),
    ArraySpec("f1_random_sd", "r", "1", "standard deviation of F1 over the random sessions"),
    ArraySpec("validation_f1", "r", "1", "F1 on the validation patches; NaN where there are none"),
    ArraySpec("evidence", "r", "nats", "log evidence of the labels"),
    ArraySpec("flips", "r", "share", "of the pool's predictions that the round changed"),
    ArraySpec("expected", "r", "patches", "predictions that the next round is expected to change"),
    ArraySpec("pool_xy", "n 2", "1", "the first two principal components of every row"),
    ArraySpec("pool_p", "n", "probability", "of the class that is looked for, of every row"),
    ArraySpec("role", "n", "1", "0: may be asked about, 1: validation, 2: test"),
    ArraySpec("row", "n", "1", "of the table, counted from 0"),
    ArraySpec("truth", "n", "1", "label in the table; -1 where it has none"),
    ArraySpec("asked", "k", "1", "rows labelled, in the order in which they were asked about"),
    ArraySpec("asked_label", "k", "1", "their labels"),
    ArraySpec("queue", "q", "1", "rows to be asked about next"),
    ArraySpec("queue_p", "q", "probability", "of them"),
)  # fmt: skip

ENTRY = Entry(
    name="clamp",
    title="Clamps",
    question="Thousands of patches, one expert's patience: which should be labelled?",
    settings=ClampSettings,
    table=TABLE,
    sources=(
        Source(
            "demo",
            "Pipe joints in trenches",
            "36 invented photographs, 21 patches each; one patch in five holds a clamp",
            generator="scant.studies.clamp.simulate:demo",
            size=(756, COLUMNS),
            kept=True,
        ),
        Source(
            "trenches",
            "More pipe joints",
            "80 invented photographs: enough for one clamp among twenty patches",
            generator="scant.studies.clamp.simulate:large",
            size=(1680, COLUMNS),
            kept=True,
        ),
    ),
    snapshot=_SESSION,
    report=(
        *_SESSION,
        ArraySpec("eigenvalues", "e", "share", "of the features' variance by component"),
        ArraySpec(
            "compare_f1",
            "c r",
            "1",
            "F1 of the methods compared (metadata['compared']), mean over the repeated sessions",
        ),
        ArraySpec("compare_sd", "c r", "1", "its standard deviation over them"),
        ArraySpec(
            "reliability",
            "3 b",
            "share",
            "mean p, share of the class looked for and number of the held-out patches, by bin of p",
        ),
        ArraySpec("picture", "n", "1", "of every row, by its number in metadata['pictures']"),
        ArraySpec("test_row", "t", "1", "held-out rows, of the pool"),
        ArraySpec("test_p", "t", "probability", "of the class that is looked for"),
        ArraySpec("test_label", "t", "1", "their labels"),
    ),
    explore={
        "ask": (
            ArraySpec("queue", "k", "1", "rows to be asked about next, in this order"),
            ArraySpec("queue_p", "k", "probability", "of the class that is looked for"),
            ArraySpec("reason", "k", "words", "why each is asked about"),
            ArraySpec("p", "n", "probability", "of every row"),
            ArraySpec("evidence", "1", "nats", "log evidence of the labels; NaN without any"),
            ArraySpec(
                "f1",
                "1",
                "1",
                "on the held-out patches; of the labels themselves by "
                "cross-validation where none is held out; NaN where neither can be",
            ),
            ArraySpec("precision", "1", "1", "likewise"),
            ArraySpec("recall", "1", "1", "likewise"),
            ArraySpec("held_out", "1", "1", "1 where the scores are of held-out patches, else 0"),
            ArraySpec("flips", "1", "share", "of the pool, changed since the fit before"),
            ArraySpec(
                "expected",
                "1",
                "patches",
                "predictions that the queue's labels are expected to change",
            ),
            ArraySpec("stop", "1", "1", "1 where one may stop"),
            ArraySpec("advice", "1", "words", "whether to go on, and why"),
        ),
        "model": (ArraySpec("file", "n", "bytes", "the model of these labels, as safetensors"),),
        "patch": (ArraySpec("image", "h w 3", "0-255", "the patch; empty where there is none"),),
        "patches": (
            ArraySpec(
                "image",
                "k h w 3",
                "0-255",
                "patches, all of one size; empty where there are no images",
            ),
            ArraySpec("thumb", "k a b 3", "0-255", "the pictures that they are parts of, small"),
            ArraySpec("box", "k 4", "share", "left, top, width and height of each in its picture"),
            ArraySpec("x", "k d", "1", "features of the table where there are no images"),
        ),
        "picture": (
            ArraySpec("image", "h w 3", "0-255", "the whole picture, reduced"),
            ArraySpec("boxes", "b 4", "pixels", "left, top, right, bottom of its patches in it"),
            ArraySpec("p", "b", "probability", "of each"),
            ArraySpec("rows", "b", "1", "of the pool"),
            ArraySpec("truth", "b", "1", "labels in the table; -1 where it has none"),
            ArraySpec("verdict", "1", "probability", "of the picture: the largest of its patches"),
        ),
    },
    presets={
        "demo": {},
        "quick": {"budget": 130, "repeats": 2, "baselines": False},
        "as published": {"start": 126, "budget": 433, "batch_size": 30, "diverse": "none"},
        "one in twenty": {"imbalance": 20.0, "start": 60, "budget": 300},
        "you label": {"expert": "you"},
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
        "The photographs of the publication are confidential; those of the demonstration are "
        "invented, so that its Table 4.1 stands beside ours as another data set's.",
        "An expert is asked between two classes; skipped patches come back until they are "
        "labelled.",
        "Patches overlap, and pictures are held out as a whole; the scores are of other pictures "
        "than those asked about.",
        "The verdict on a picture is that of its most suspicious patch.",
        "Amplitude and lengthscales have a weak prior, which the publication does not speak of: "
        "without it, a few labels told apart without error let the amplitude grow without end.",
        "Laplace's approximation is cubic in the labels: a thousand are quick, five thousand are "
        "not.",
    ),
    objective="log marginal likelihood (nats a label)",
    score="F1 of the validation patches (0 to 1)",
    estimate=estimate,
)

"""Settings of a labeling session, and the names of the methods that it compares."""

from __future__ import annotations

import param

from scant.errors import BadInput
from scant.studies.auto import AUTO, AutoInteger
from scant.studies.base import Settings
from scant.studies.clamp.capacity import COMPONENTS
from scant.tables.images.kinds import HANDMADE, KINDS

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
VALIDATION_F1 = "validation F1"
STOP_RULES = ["predictions", VALIDATION_F1]
FEATURES = ["auto", "columns", *KINDS]
# Start of all presets, so that they do not depend on the packages that are installed.
FIXED = {"n_components": COMPONENTS, "feature_extractor": HANDMADE}
METHODS = ("GP, active", "GP, random")  # during the run
COMPARED = (*METHODS, "logistic regression, active", "linear classifier, all labels")
CNN = "convolutional network, random"
QUEUE = 8  # patches in the queue for display
ROLES = ("pool", "validation", "test")


class ClampSettings(Settings):
    """Settings of a labeling session."""

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
        "names what you look for where no row is labeled yet.",
    )
    class_names = param.String(
        "",
        doc="Names of the classes, separated by commas, the class of interest first, such as "
        '"screw, no screw", where the table has no labels. Empty: the names in the table.',
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
        label="Diversity",
        doc="Diversity of a batch: rows far from one another, the largest determinant of their "
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
        doc="Scarcity: number of other rows for each row of the class of interest. The "
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
        "'count_validation' off, share of the pictures, in addition to the budget.",
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
        doc="Inputs of the classifier. auto: the table's numeric columns if there are any; else "
        "features of the images, by EfficientNet-Lite0 with color, HOG and LBP, or without the "
        "extra 'vision' by color, HOG and LBP alone.",
    )
    n_components = AutoInteger(
        AUTO,
        bounds=(1, 500),
        label="Principal components",
        doc="Principal components of the features, fitted to the whole pool; auto: all for few "
        "columns, 20 for many columns or for images, 50 for a network's features.",
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
        False, label="ARD", doc="Learn one lengthscale for each component instead of one for all."
    )
    hyperprior = param.Boolean(
        True,
        label="Prior of hyperparameters",
        doc="Weak priors of amplitude and lengthscales, without which a few separable labels make "
        "the amplitude diverge; off: maximize the evidence alone, as published.",
    )
    patience = param.Integer(
        8,
        bounds=(0, 10_000),
        doc="Number of batches by which 'stop_rule' decides; 0: continue to the end of the budget.",
    )
    stop_rule = param.Selector(
        objects=STOP_RULES,
        label="Stop by",
        doc="When a session with a simulated expert ends. predictions: where they have settled over"
        " 'patience' batches, by the expected change of F1. validation F1: where 'patience' batches"
        " have not raised it, as published.",
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
        "baseline; for images only.",
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
        """Names in `class_names`, the class of interest first; none if it is empty."""
        text = str(self.class_names)
        return [name.strip() for name in text.split(",")] if text.strip() else []

    @property
    def method(self) -> str:
        """The acquisition function; the default in place of `auto`."""
        return ACQUISITIONS[1] if self.acquisition == AUTO else str(self.acquisition)

    @property
    def split_seed(self) -> int:
        """Seed of the rows that are dropped and held out."""
        return int(self.data_seed if self.fixed_split else self.seed)

    def spent(self, n_labeled: int) -> int:
        """Number of labels of the budget used for validation, if `n_labeled` rows have one."""
        if not self.count_validation:
            return 0
        return min(round(self.validation_share * min(self.budget, n_labeled)), n_labeled // 2)

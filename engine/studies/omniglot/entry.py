"""Omniglot: many outputs, each with its own classes, few examples (Ma 2023, chapters 3 and 4)."""

from __future__ import annotations

import param
from scant.errors import BadInput
from scant.studies.base import Citation, Counts, Entry, Source, array_specs, until_rest
from scant.studies.omniglot.table import TABLE
from scant.studies.predicted_columns import of_classes
from scant.studies.split import SplitCounts, SplitSettings, planned

MODELS = {
    "mogp-ar": "MOGPs-AR",
    "mg-m": "MG-M",
    "g-m": "G-M",
    "g-a": "G-A",
}
COVARIANCES = ["kept", "dropped as published"]
SHOWN = 60  # classes whose coregionalisation travels to the page entry by entry
BLOCK = 120  # classes of a block that is asked for
DIAGRAMS = 8  # latent functions with a Hinton diagram


class OmniglotSettings(SplitSettings):
    """Settings of a fit to outputs with classes (Ma 2023, chapters 3 and 4)."""

    study = "omniglot"
    essential = ("kernel", "shots", "n_outputs", "n_latent", "n_inducing", "max_steps")

    model = param.Selector(
        default="mogp-ar",
        objects=list(MODELS),
        doc="mogp-ar, or a model to compare it with: mg-m uses all classes in each step; g-m and "
        "g-a are one model per output, with the softmax or with augment-and-reduce.",
    )
    kernel = param.Selector(
        objects=["auto", "patch", "rbf-ard"],
        doc="auto: patches if the columns are pixels, else an RBF kernel with a lengthscale for "
        "each feature.",
    )
    shots = param.Integer(
        0,
        bounds=(0, 100_000),
        label="Examples of each class",
        doc="Scarcity: number of training examples of each class; 0: all that are not held out.",
    )
    n_outputs = param.Integer(
        0,
        bounds=(0, 100_000),
        label="Alphabets",
        doc="Scarcity: number of outputs (alphabets) to train together, from the first; 0: all.",
    )
    n_classes = param.Integer(
        0,
        bounds=(0, 100_000),
        label="Classes of each",
        doc="Number of classes of each output, from the first; 0: all.",
    )
    test_share = param.Number(
        0.2, bounds=(0.0, 0.8), doc="Share of held-out examples of each class."
    )
    width = param.Integer(
        0, bounds=(0, 2000), doc="Width of an image in pixels; 0: images are square."
    )
    height = param.Integer(
        0, bounds=(0, 2000), doc="Height of an image in pixels; 0: images are square."
    )
    size = param.Integer(
        20,
        bounds=(4, 105),
        doc="Side in pixels; larger images are reduced to it by area averages.",
    )
    pixels = param.Selector(
        objects=["black and white", "grey"],
        doc="Use black and white pixels, so that equal patches recur and the patch kernel is ten "
        "times faster; otherwise gray levels.",
    )
    patch = param.Integer(3, bounds=(2, 20), doc="Side of a patch in pixels.")
    n_latent = param.Integer(
        16,
        bounds=(1, 100),
        label="Latent functions",
        doc="Number Q of latent functions that the classes mix.",
    )
    rank = param.Integer(1, bounds=(1, 10), doc="Rank of each coregionalization matrix.")
    n_inducing = param.Integer(
        40,
        bounds=(2, 1000),
        label="Inducing points",
        doc="Number of inducing points, or inducing patches, of each latent function.",
    )
    batch_size = param.Integer(
        50, bounds=(1, 100_000), doc="Rows of each output per step, drawn at random each time."
    )
    sampled_classes = param.Integer(
        0,
        bounds=(0, 100_000),
        doc="Number of wrong classes per row and step, drawn at random; 0: all classes of its "
        "output, which learns better at little extra cost. The publication draws 1.",
    )
    covariance = param.Selector(
        objects=COVARIANCES,
        doc="Covariance between classes, which share the latent functions. Keeping it gives a "
        "tighter bound at the same cost; the publication drops it.",
    )
    learning_rate = param.Number(
        0.05, bounds=(1e-5, 1.0), doc="Step size of Adam, with a cosine decay to a hundredth."
    )
    max_steps = param.Integer(100, bounds=(1, 200_000), doc="Maximum number of steps.")
    patience = param.Integer(
        0,
        bounds=(0, 200_000),
        doc="Stop after this number of steps without a better bound; 0: never.",
    )
    calibrate = param.Boolean(
        True,
        doc="Divide the functions by a temperature before the softmax, fitted after the run on "
        "rows held out from a second model. Not in the publication.",
    )
    baselines = param.Boolean(
        True, doc="Fit other classifiers to the same rows after the run, for comparison."
    )
    restarts = param.Integer(
        1, bounds=(1, 20), doc="Number of fits from different starts; the best is kept."
    )

    def check(self) -> None:
        if self.kernel != "rbf-ard" and self.patch > self.size:
            raise BadInput(
                f"Setting 'patch' is {self.patch}, but images are brought to {self.size} x "
                f"{self.size} pixels by 'size'; choose a smaller patch or a larger size."
            )
        if self.n_classes == 1:
            raise BadInput(
                "Setting 'n_classes' is 1, and a classifier needs two classes; set it to 2 or "
                "more, or to 0 for all."
            )
        if self.model == "mg-m" and self.covariance != COVARIANCES[0]:
            raise BadInput(
                "Setting 'covariance' is about the bound of augment-and-reduce, and mg-m uses "
                "another bound; choose the covariance kept, or the model mogp-ar."
            )


def parts(s: OmniglotSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into, of outputs and classes that were not counted as many
    as are guessed."""
    known, outputs, classes = _kinds(s, rows, counts)
    used = round(rows * outputs / known)
    train, _, test, _ = planned(s, used, counts if outputs == known else {})
    return SplitCounts(min(train, round(s.shots * classes) or train), 0, test, rows)


def _kinds(s: OmniglotSettings, rows: int, counts: Counts) -> tuple[int, int, float]:
    """Outputs of the table, outputs and classes that are learned."""
    known = len(counts.get("output", {})) or max(2, rows // 500)
    outputs = min(s.n_outputs or known, known)
    classes = (len(counts.get("label", {})) or rows / 20) * outputs / known
    return known, outputs, min(classes, s.n_classes * outputs) if s.n_classes else classes


def estimate(
    settings: OmniglotSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: every step, of a batch of each output; another model for the temperature; and of up to
    2,000 rows and six outputs two models of single outputs, 250 steps each. Outputs that were not
    counted are guessed: one for 500 rows. Measured, one thread, 16 latent functions and 40 inducing
    points: a step of 100 rows of ten columns takes 4 to 5 ms, of 150 images of 20 x 20 pixels
    60 ms, with four functions 15 ms.
    """
    s = settings
    _, outputs, _ = _kinds(s, rows, counts)
    n = parts(s, rows, counts).train
    m, q, pixels = s.n_inducing, s.n_latent, min(s.size**2, columns)
    batch = min(n, outputs * s.batch_size)
    if s.kernel == "patch" or (s.kernel == "auto" and columns > 100):
        # A sum over 512 patches of ink and paper, or over all that the image has.
        listed = 512 if s.pixels == "black and white" and s.patch == 3 else 18 * pixels
        work = 1e-9 * batch * listed * (m + 20)
    else:
        listed, work = columns, 1.5e-9 * batch * columns * m
    step = 0.0014 + q * (1e-4 + 7e-6 * m + 0.7 * work)
    steps = until_rest(s.max_steps, s.patience, 0.6) * s.restarts * 1.1
    if s.calibrate and n <= 4000:
        steps += 0.8 * min(s.max_steps, 400)
    others = 0.5
    if s.baselines:
        others = 1.0 if n > 2000 or outputs > 6 else 500 * (0.0055 + 0.1 * step)
    held = 8 * (4 * rows * min(columns, 2000) + 3 * q * batch * listed)
    return 0.5 + steps * step + others, 550e6 + held


_MODEL = array_specs("""
    accuracy (d) [share] recall of each output's held-out rows (of some hundred while it trains);
        NaN where an output has none
    latent (q) [1] numbers of the latent functions that are shown: those with the largest share of
        the prior variance, the largest first
    shown_B (q c c) [1] their coregionalization matrices among the shown classes
    correlation (c c) [1] prior correlation of the shown classes: the sum of all B_q, scaled to a
        diagonal of 1
    order (c) [1] the shown classes in an order in which those that are alike stand together
    global (d d) [1] global absolute coregionalization matrix of the outputs, over all classes (Ma
        2023, 3.42-3.43)
    patches (k h w) [ink] the inducing patches of largest influence; none where there are no patches
    patches_weight (k) [1] their influence: the size of the posterior weights
    examples (s h w) [ink] some held-out images; none where there are no images
    examples_true (s) [1] their classes, counted through all outputs
    examples_predicted (s) [1] their predicted classes
    examples_p (s) [probability] of the predicted class
""")
_DRAWN = array_specs("""
    p (c) [probability] of every class within its output
    map (h w) [nats] what each patch adds to the mean of the class in question; empty where there
        are no patches
    class (1) [1] the class that the map is of, counted through all outputs
    image (h w) [ink] the image in question; empty where there are no images
    top (d 3) [1] the three most probable classes of each output, counted through all; -1 where it
        has fewer
    top_image (d 3 h w) [ink] a training image of each
""")

ENTRY = Entry(
    name="omniglot",
    title="Omniglot",
    question="How few examples of a character suffice when other alphabets help?",
    settings=OmniglotSettings,
    table=TABLE,
    sources=(
        Source(
            "demo",
            "Three alphabets of strokes",
            "34 simulated characters by 20 people, 20 x 20 pixels; two alphabets are related",
            generator="scant.studies.omniglot.simulate:demo",
            size=(680, 402),
            counts={"output": {"Anu": 240, "Bel": 240, "Cor": 200}},
        ),
        Source(
            "strokes105",
            "The same at full resolution",
            "the simulated characters at 105 x 105 pixels, reduced before training",
            generator="scant.studies.omniglot.simulate:full",
            size=(680, 11_027),
            counts={"output": {"Anu": 240, "Bel": 240, "Cor": 200}},
        ),
        Source(
            "ojibwe_blackfoot",
            "Ojibwe and Blackfoot",
            "the publication's two alphabets: 28 characters by 20 people (Lake et al. 2015), "
            "20 x 20 pixels",
            kind="fetched",
            size=(560, 402),
        ),
        Source(
            "omniglot",
            "All of Omniglot",
            "50 alphabets, 1,623 characters by 20 people (Lake et al. 2015), 20 x 20 pixels",
            kind="fetched",
            size=(32_460, 402),
        ),
    ),
    snapshot=_MODEL,
    report=(
        *_MODEL,
        *array_specs("""
            confusion (c c) [share] predicted classes of the held-out rows of each shown class,
                within its output; NaN between outputs
            confusion_across (d d) [share] predicted outputs of the held-out rows of each output if
                all classes compete in one softmax (not the training objective)
            test_row (n_test) [1] of the table, counted from 0
            test_class (n_test) [1] its class, counted through all outputs
            test_predicted (n_test) [1] the class it is taken for
            test_p (n_test) [probability] of the true class of each held-out row
            test_confidence (n_test) [probability] of the class it is taken for
            test_right (n_test) [1] 1 where that is the true one
            test_output (n_test) [1] index of its output
            test_entropy (n_test) [nats] of the predicted probabilities
            test_information (n_test) [nats] the part of it that more data would remove: mutual
                information of class and model
            reliability (3 b) [share] mean confidence, accuracy and number of the rows of each bin
                of confidence
            compare_accuracy (m d) [share] recall of each output by each of the baselines, in the
                order of their metrics; NaN where one is left out
        """),
    ),
    predicted=of_classes(),
    explore={
        "draw": _DRAWN,
        "response": _DRAWN,
        "block": array_specs("""
            matrix (c c) [1] B_q of the classes asked for, or the mean of its absolute values by
                output where they are too many
            class (c) [1] the classes, counted through all outputs; or the outputs, where
                `aggregated` is 1
            aggregated (1) [1] 1 where an entry is an output, 0 where a class
        """),
        "shots": array_specs("""
            shots (1) [1] number of training examples of each class
            accuracy (d) [share] recall of each output's held-out rows by the model trained on from
                the run's with those examples alone
            nearest (d) [share] recall by the nearest of the same examples
        """),
    },
    presets={
        "demo": {},
        "quick": {"n_latent": 8, "n_inducing": 30, "max_steps": 60, "baselines": False},
        "as published": {
            "sampled_classes": 1,
            "calibrate": False,
            "covariance": "dropped as published",
            "n_latent": 14,
            "n_inducing": 100,
            "learning_rate": 0.01,
            "max_steps": 4000,
        },
    },
    citations=(
        Citation(
            "C. Ma, Multi-output Gaussian Processes for Large-scale Multi-class Classification and "
            "Hierarchical Data, PhD thesis, University of Sheffield, 2023, chapters 3 and 4."
        ),
        Citation(
            "F. J. R. Ruiz, M. K. Titsias, A. B. Dieng, D. M. Blei, Augment and Reduce: Stochastic "
            "Inference for Large Categorical Distributions, ICML 2018."
        ),
        Citation(
            "M. van der Wilk, C. E. Rasmussen, J. Hensman, Convolutional Gaussian Processes, "
            "NeurIPS 2017."
        ),
        Citation(
            "B. M. Lake, R. Salakhutdinov, J. B. Tenenbaum, Human-level concept learning through "
            "probabilistic program induction, Science 350:1332-1338, 2015.",
            "10.1126/science.aab3050",
        ),
    ),
    limits=(
        "One temperature for all classes calibrates the probabilities, which is not in the "
        "publication; the other classifiers have none.",
        "Each row belongs to a known output and competes among its classes: the model does not "
        "predict the alphabet of a character.",
        "The bound on the log likelihood is loose for many uncertain classes; the predicted "
        "probabilities use the softmax itself.",
        "Images have at most 105 pixels a side and are black and white by default; the publication"
        " subsamples pixels where Scant averages over area.",
        "Predictions have one column per class up to 500 classes.",
    ),
    objective="estimate of the bound from a batch (nats a row)",
    score="bound (nats a row)",
    estimate=estimate,
    parts=parts,
)

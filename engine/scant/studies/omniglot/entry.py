"""Omniglot: many outputs, each with its own classes, few examples (Ma 2023, chapters 3 and 4)."""

from __future__ import annotations

from scant.studies.base import Citation, Entry, Source, array_specs
from scant.studies.omniglot.capacity import capacity, estimate, parts
from scant.studies.omniglot.published import SETTINGS
from scant.studies.omniglot.settings import FIXED, OmniglotSettings
from scant.studies.omniglot.table import TABLE
from scant.studies.predicted_columns import of_classes
from scant.studies.published import values

# A draw near the medians of ten (`scripts/demo_spread.py`); 0 has the second-lowest recall.
DEMO = FIXED | {"data_seed": 3}

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
_RESPONSE = array_specs("""
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
            "ojibwe_blackfoot_nearest",
            "Ojibwe and Blackfoot as published",
            "the same images, each of the 20 x 20 pixels the nearest of the drawing's 105 x 105",
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
        "draw": _RESPONSE,
        "response": _RESPONSE,
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
        "demo": DEMO,
        "quick": DEMO | {"n_latent": 8, "n_inducing": 30, "max_steps": 60, "baselines": False},
        "as published": {"data_seed": DEMO["data_seed"], **values(SETTINGS)},
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
            "D. Keysers, T. Deselaers, C. Gollan, H. Ney, Deformation models for image "
            "recognition, IEEE TPAMI 29(8):1422-1435, 2007.",
            "10.1109/TPAMI.2007.1153",
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
        "The setting 'stack' averages the model with other classifiers; it is on by default for "
        "your own tables of up to 4,000 training rows. With it, recall on Ojibwe and Blackfoot is "
        "far above the published table's. Nearly all of the gain comes from classifiers of "
        "strokes, and a GP on a network's early layers has the largest weight.",
        "Each row belongs to a known output and competes among its classes: the model does not "
        "predict the output of a row, such as the alphabet of a character.",
        "The bound on the log likelihood is loose for many uncertain classes; the predicted "
        "probabilities use the softmax itself.",
        "Images have at most 105 pixels a side and are black and white by default. Larger images "
        "are reduced by averages over area; the publication takes the nearest pixels, as does the "
        "setting 'resize' on request.",
        "Predictions have one column per class up to 500 classes.",
        "The matrix of groups does not show which groups are related: its largest entry is "
        "that of the demonstration's two related groups no more often than by chance.",
    ),
    objective="estimate of the bound from a batch (nats a row)",
    score="bound (nats a row)",
    check="scant.studies.omniglot.preprocessing:check",
    estimate=estimate,
    parts=parts,
    capacity=capacity,
)

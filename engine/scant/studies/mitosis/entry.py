"Mitosis: a rare class with private latent dimensions (Yousefi 2021, chapter 3)."

from __future__ import annotations

from scant.studies.base import Citation, Counts, Entry, Source, array_specs
from scant.studies.mitosis.capacity import capacity
from scant.studies.mitosis.cost import DGPLVM_MAX_ROWS, estimate, parts
from scant.studies.mitosis.published import SETTINGS
from scant.studies.mitosis.settings import FIXED, MitosisSettings
from scant.studies.mitosis.table import TABLE
from scant.studies.predicted_columns import of_classes
from scant.studies.published import values

# The draw nearest to the medians of ten (`scripts/demo_spread.py`).
DEMO = FIXED | {"data_seed": 2, "imbalance": 10.0, "test_share": 0.4}

OTHERS = ("weighted SVM", "weighted logistic regression")  # on principal components


def _slides(number: int, dividing: int, others: int) -> Counts:
    """Counts of a table, given the numbers of slides and of cells per class on each slide."""
    cells = {"mitosis": number * dividing, "other": number * others}
    return {
        "label": cells,
        "group": {f"slide {i}": dividing + others for i in range(1, number + 1)},
    }


SHOWN = 300  # rows whose latent positions are sent to the page
PAIRS = 60  # rows between which covariances are shown
STRIP = 8  # generated images per class, and as many real ones
PRECISIONS = 101  # points of a precision-recall curve
RATIOS = (1, 300)  # range of the imbalance in queries

_MODEL = array_specs("""
    latent_mean (n q) [1] positions of some training rows: shared dimensions first, then private
        ones
    latent_std (n q) [1] their standard deviations under q(X)
    latent_class (n) [1] class of each
    relevance (q) [1] 1 / lengthscale^2 of each dimension; about 0 for an unused dimension
    covariance (3 k k) [1] between some of the rows, sorted by class: the shared part of the kernel,
        the private one, their sum
    covariance_apart (3 k k) [1] the same without what all rows, or of the private part all of a
        class, have in common
    covariance_class (k) [1] class of each of these
    generated (g h w) [grey] new images of each class, drawn from where its rows lie; none where the
        columns are no pixels
    generated_class (g) [1] class of each
    real (g h w) [grey] training images
    real_class (g) [1] class of each
""")
_PLACED = array_specs("""
    p (c) [probability] of each class
    mean (c q) [1] position of the row under this class
    std (c q) [1] how surely
    evidence (c) [nats] bound on its log density under each class, not tempered; the SVM's decision
        where there is no such bound
    reconstruction (c h w) [grey] the model's reconstruction under each class; `c d` features where
        the columns are no pixels
    image (h w) [grey] the image in question; its features, `1 d`, where the columns are no pixels
    label (1) [1] its class if the table has one, else -1
""")

ENTRY = Entry(
    name="mitosis",
    title="Mitosis",
    question="How few examples of dividing cells suffice to recognize one among thousands of "
    "others?",
    settings=MitosisSettings,
    table=TABLE,
    sources=(
        Source(
            "demo",
            "Simulated hard cases",
            "120 dividing cells and 1,200 others, gray, 30 x 30 pixels, on 24 slides",
            generator="scant.studies.mitosis.simulate:demo",
            size=(1320, 902),
            counts=_slides(24, 5, 50),
        ),
        Source(
            "cells_hard",
            "Simulated lookalikes",
            "as many cells; more of the others resemble dividing cells, and slides differ more",
            generator="scant.studies.mitosis.simulate:hard",
            size=(1320, 902),
            counts=_slides(24, 5, 50),
        ),
        Source(
            "cells",
            "Many simulated cells",
            "550 dividing cells and 6,500 others on 50 slides, about as many as published; set "
            "'imbalance' to 0",
            generator="scant.studies.mitosis.simulate:large",
            size=(7050, 902),
            counts=_slides(50, 11, 130),
        ),
        Source(
            "phases",
            "Two phases and the others",
            "three classes: 40 pairs of plates, 100 single plates, 1,000 cells that do not divide",
            generator="scant.studies.mitosis.simulate:phases",
            size=(1140, 902),
            counts={"label": {"other": 1000, "plate": 100, "pair of plates": 40}},
        ),
        Source(
            "breast_cancer",
            "Breast tumors",
            "569 tumors, 212 of them malignant, with 30 measurements of their nuclei (Street et "
            "al. 1993, from scikit-learn)",
            generator="scant.studies.mitosis.table:breast_cancer",
            size=(569, 31),
            counts={"label": {"benign": 357, "malignant": 212}},
        ),
    ),
    snapshot=_MODEL,
    report=(
        *_MODEL,
        *array_specs("""
            test_p (n_test c) [probability] of each class, of the held-out rows
            test_label (n_test) [1] their classes
            test_index (n_test) [1] their rows in the table, counted from 0
            pr (m 3 t) [share] threshold on the rare class's probability, precision and recall of
                each method, in the order of metadata['methods']; NaN in precision where nothing is
                above
            confusion (m 4 t) [rows] at each of these thresholds: rare rows found, others taken for
                rare, rare rows missed, others left
            threshold (m) [probability] of the rare class, from which a row is of it, by each
                method; NaN: a row has its most probable class
            reliability (3 b) [share] of the run's probabilities of the predicted class: mean
                confidence, accuracy and number of rows of each bin
        """),
    ),
    predicted=of_classes(doubt=False),
    explore={
        "decode": array_specs("""
            image (h w) [grey] what the model expects at a latent position; features, `1 d`, where
                the columns are no pixels
            std (h w) [grey] its standard deviation, noise included
        """),
        "place": _PLACED,
        "row": _PLACED,
        "generate": array_specs("""
            generated (g h w) [grey] new images of the class; features, `g d`, where the columns are
                no pixels
        """),
        "redraw": array_specs("""
            rows (g) [1] rows of the class in the table, held-out ones if there are any
            real (g h w) [grey] their images; features, `g d`, where the columns are no pixels
            redrawn (g h w) [grey] what the model makes of each from where it lies under its class,
                likewise
        """),
        "imbalance": array_specs("""
            ratio (1) [1] other rows for each rare one, as learnt from
            rows (2) [rows] of the rare class and of the others, learnt from
            scores (m 4) [share] precision, recall, F1 and average precision of the rare class, by
                each method of metadata['methods']; NaN where it is left out
        """),
    },
    presets={
        "demo": DEMO,
        "quick": {**DEMO, "n_inducing": 20, "max_steps": 100, "baselines": False},
        "as published": {"data_seed": DEMO["data_seed"], **values(SETTINGS)},
    },
    citations=(
        Citation(
            "F. Yousefi, Gaussian Processes for Data Scarcity Challenges, PhD thesis, University "
            "of Sheffield, 2021, chapter 3."
        ),
        Citation(
            "M. K. Titsias, N. D. Lawrence, Bayesian Gaussian Process Latent Variable Model, "
            "AISTATS 2010."
        ),
        Citation(
            "R. Urtasun, T. Darrell, Discriminative Gaussian Process Latent Variable Model for "
            "Classification, ICML 2007."
        ),
        Citation(
            "C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning, MIT "
            "Press, 2006, sections 3.5 and 8.3.1."
        ),
        Citation(
            "M. Saerens, P. Latinne, C. Decaestecker, Adjusting the outputs of a classifier to new "
            "a priori probabilities, Neural Computation 14(1):21-41, 2002.",
            "10.1162/089976602753284446",
        ),
        Citation(
            "C. A. Bertram et al., Histologic Dataset of Normal and Atypical Mitotic Figures on "
            "Human Breast Cancer (AMi-Br), BVM 2025."
        ),
        Citation(
            "W. N. Street, W. H. Wolberg, O. L. Mangasarian, Nuclear feature extraction for breast "
            "tumor diagnosis, SPIE 1905:861-870, 1993.",
            "10.1117/12.148698",
        ),
    ),
    limits=(
        "The publication models every pixel; here the default is principal components, because "
        "most of the variance of pixels carries no information about the class. Set 'n_components'"
        " to 0 for the published setting.",
        "The model treats pixels as independent, which they are not, so a temperature fitted on "
        "held-out rows corrects its probabilities. The publication does not describe its decision "
        "rule.",
        "Principal components fill in a missing pixel before training unless 'n_components' is 0; "
        "in a table of few features the model integrates over the missing ones.",
        "The publication's patches (AMIDA 2013) are not available. Real patches of the same kind "
        "are in the public repository DeepMicroscopy/AMi-Br (atypical and normal mitoses, labeled "
        "by pathologists); its folders can be uploaded here as a ZIP. It states no license, so "
        "Scant neither ships nor downloads it. The cells in our tables that do not divide were cut "
        "from the same pictures and only presumed not to divide: no pathologist labeled them.",
        "A generative model of all columns classifies ordinary tables poorly. The default of the "
        "setting 'classifier' is therefore auto: a mixture of Gaussian process classifiers, with "
        "SCLVM where that helps on rows held back from training. As published, it is 'latent "
        "variables'.",
        "With early layers of a network as inputs (extra 'vision'), the default classifier "
        "recognized mitoses of AMi-Br on other slides better than any method of the full table, "
        "with ten labeled mitoses as well as with 440. It used an estimate of the share of mitoses "
        "on those slides, but none of their labels.",
        "With ten rows of the rare class or fewer, its private dimensions are poorly determined: "
        "the best method then varies between draws of the rows, and it is often the SVM.",
        "The bound measures how well the images are explained, not how well the classes are told "
        "apart: training to its maximum need not give the best classifier.",
        "The publication matches the color histograms of all slides before cutting patches (Snell "
        "2013). Here patches are gray and used as they are; match the histograms of whole slides "
        "before you cut them.",
        f"DGPLVM learns from {DGPLVM_MAX_ROWS:,} rows at most, because its cost is cubic in them.",
    ),
    objective="bound on the log density (nats a row)",
    score="bound on the log density (nats a row)",
    check="scant.studies.mitosis.splits:check",
    estimate=estimate,
    parts=parts,
    capacity=capacity,
)

"Settings of the mitosis study."

from __future__ import annotations

from typing import Any

import param

from scant.errors import BadInput
from scant.studies.auto import AUTO, AutoInteger, set_or
from scant.studies.split import SplitSettings

MODELS = {"sclvm": "SCLVM", "bgplvm": "BGPLVM + SVM", "dgplvm": "DGPLVM + SVM"}
PRIORS = ["as in training", "as in the table", "even", "as held-out rows look"]
OURS = "this run"  # name of the run's method, if it includes a GP classifier
LATENT, GP, BOTH = "latent variables", "GP", "both"
PIXELS, NETWORK = "pixels", "EfficientNet-Lite0"
EARLY = f"{NETWORK}, early layers"
ON_PIXELS = ", pixels alone"  # suffix of method names, if other methods get network features
FIXED: dict[str, Any] = {  # base of the presets: sizes that were chosen on images of cells
    "model": "sclvm",
    "classifier": LATENT,
    "features": PIXELS,
    "prior": PRIORS[0],
    "n_shared_dims": 2,
    "n_private_dims": 8,
    "n_inducing": 30,
    "n_components": 20,
    "max_steps": 800,
    "adam_steps": 160,
    "restarts": 1,
}


class MitosisSettings(SplitSettings):
    "Settings of a latent variable model with a rare class."

    study = "mitosis"
    essential = ("imbalance", "rare_rows", "model", "n_shared_dims", "n_private_dims", "max_steps")

    model = param.Selector(
        default=AUTO,
        objects=[AUTO, *MODELS],
        doc="auto: sclvm. sclvm: dimensions shared by all classes and private dimensions. The "
        "others, to compare it with: bgplvm ignores classes, dgplvm separates them; both use a "
        "weighted SVM on the latent positions.",
    )
    classifier = param.Selector(
        default=AUTO,
        objects=[AUTO, LATENT, GP, BOTH],
        doc="How the class of a row is predicted. latent variables: by the model, as published. "
        "GP: by a mixture of Gaussian process classifiers on the columns, weighted by "
        "cross-validation. both: by the mean of the two probabilities. auto: by the mixture of the "
        "two that predicts held-back rows best.",
    )
    features = param.Selector(
        default=AUTO,
        objects=[AUTO, PIXELS, NETWORK, EARLY],
        doc="Inputs of models and classifiers for images: pixels alone, or pixels with features of "
        "a pretrained network, from its last layer or from early ones. Early layers respond to "
        "textures and are averaged over turned and mirrored copies of the image. auto: early "
        "layers where the extra 'vision' is installed.",
    )
    imbalance = param.Number(
        0.0,
        bounds=(0, 100_000),
        doc="Scarcity: number of rows of the other classes for each row of the rare one; 0: as in "
        "the table. Surplus rows of either are dropped.",
    )
    rare_rows = param.Integer(
        0,
        bounds=(0, 1_000_000),
        doc="Scarcity: maximum number of training rows of the rare class; 0: all.",
    )
    positive_class = param.String(
        "", label="Rare class", doc="Name of the rare class. Empty: the class with the fewest rows."
    )
    n_shared_dims = AutoInteger(
        AUTO,
        bounds=(0, 20),
        label="Shared dimensions",
        doc="Latent dimensions that all classes share.",
    )
    n_private_dims = AutoInteger(
        AUTO,
        bounds=(0, 20),
        label="Private dimensions",
        doc="Latent dimensions private to each class.",
    )
    n_inducing = AutoInteger(
        AUTO,
        bounds=(2, 500),
        label="Inducing points",
        doc="Number of inducing points of each class (bgplvm: twice this number in all).",
    )
    n_components = AutoInteger(
        AUTO,
        bounds=(0, 2000),
        label="Principal components",
        doc="Number of principal components of the columns, which separate a rare class better "
        "than all pixels do; 0: the columns themselves, as published.",
    )
    prior = param.Selector(
        default=PRIORS[3],
        objects=PRIORS,
        doc="Class prior in Bayes' rule: shares in the training rows, shares in the whole table, "
        "equal shares, or the shares under which the held-out rows, and later the rows to predict, "
        "are likeliest, without their labels. A rare class is often collected at another rate than "
        "it occurs at.",
    )
    tempered = param.Boolean(
        True,
        doc="Hold back rows to fit a temperature, because the model treats dependent pixels as "
        "independent and is overconfident, and to fit the decision threshold of the rare class. "
        "All methods are treated alike.",
    )
    test_share = param.Number(
        0.2,
        bounds=(0.0, 0.8),
        doc="Share of held-out rows of each class, in whole groups if the table has groups.",
    )
    size = param.Integer(
        30,
        bounds=(4, 100),
        doc="Side in pixels; larger images are reduced to it by area averages.",
    )
    width = param.Integer(
        0, bounds=(0, 2000), doc="Width of an image in pixels; 0: images are square."
    )
    height = param.Integer(
        0, bounds=(0, 2000), doc="Height of an image in pixels; 0: images are square."
    )
    max_steps = AutoInteger(AUTO, bounds=(1, 100_000), doc="Maximum number of steps.")
    adam_steps = AutoInteger(
        AUTO,
        bounds=(0, 100_000),
        doc="Steps of Adam before L-BFGS, at most two thirds of all steps; DGPLVM uses only "
        "L-BFGS.",
    )
    patience = param.Integer(
        40,
        bounds=(0, 100_000),
        doc="Stop if the bound rises by less than a thousandth of a nat per row in this number of "
        "steps; 0: never.",
    )
    restarts = AutoInteger(
        AUTO, bounds=(1, 20), doc="Number of fits from different starts; the best is kept."
    )
    baselines = param.Boolean(
        True, doc="Fit other classifiers to the same rows after the run, for comparison."
    )

    @property
    def prior_of_rows(self) -> bool:
        """Whether class shares are estimated from rows without their labels."""
        return bool(self.prior == PRIORS[3])

    def check(self) -> None:
        sizes = (self.n_shared_dims, self.n_private_dims, self.n_components)
        shared, private, components = (set_or(size, None) for size in sizes)
        if shared == private == 0:
            raise BadInput(
                "Settings 'n_shared_dims' and 'n_private_dims' are both 0, and the latent space "
                "needs a dimension; set one of them to 1 or more."
            )
        if 0 < self.imbalance < 1:
            raise BadInput(
                f"Setting 'imbalance' is {self.imbalance:g}, so that the rare class would be the "
                "more frequent one; set it to 1 or more, or to 0 for all rows."
            )
        if shared and components and components < shared:
            raise BadInput(
                f"Setting 'n_shared_dims' asks for {shared} latent dimensions, but there are only "
                f"{components} principal components; raise 'n_components', or set fewer dimensions."
            )
        if self.model in (AUTO, "sclvm") and private == 0:
            raise BadInput(
                "Setting 'n_private_dims' is 0, and the model sclvm needs private dimensions to "
                "separate classes; set it to 1 or more, or choose bgplvm."
            )

"""Settings of the mitosis study, below its entry and what its fits cost."""

from __future__ import annotations

import param
from scant.errors import BadInput
from scant.studies.base import Settings

MODELS = {"sclvm": "SCLVM", "bgplvm": "BGPLVM + SVM", "dgplvm": "DGPLVM + SVM"}
PRIORS = ["as in training", "as in the table", "even"]


class MitosisSettings(Settings):
    """Settings of a latent variable model of a few classes, one of them rare."""

    study = "mitosis"
    essential = ("imbalance", "rare_rows", "model", "n_shared_dims", "n_private_dims", "max_steps")

    model = param.Selector(
        default="sclvm",
        objects=list(MODELS),
        doc="sclvm: a space for all classes, one for each. The others, to be looked at in its "
        "place: bgplvm knows no classes, dgplvm pulls them apart; both with a weighted SVM on the "
        "latent positions.",
    )
    imbalance = param.Number(
        10.0,
        bounds=(0, 100_000),
        doc="Scarcity: rows of the other classes for each row of the rare one; 0: all there are. "
        "Where the others do not suffice, rare rows are left out.",
    )
    rare_rows = param.Integer(
        0,
        bounds=(0, 1_000_000),
        doc="Scarcity: at most so many rows of the rare class are learnt from; 0: all.",
    )
    positive_class = param.String(
        "", label="Rare class", doc="The rare class by name; empty: the one with the fewest rows."
    )
    n_shared_dims = param.Integer(
        2,
        bounds=(0, 20),
        label="Shared dimensions",
        doc="Latent dimensions that all classes share.",
    )
    n_private_dims = param.Integer(
        8,
        bounds=(0, 20),
        label="Private dimensions",
        doc="Latent dimensions that each class has alone.",
    )
    n_inducing = param.Integer(
        30,
        bounds=(2, 500),
        doc="Inducing points of each class, which stand in for its rows (of all together for "
        "bgplvm: twice).",
    )
    n_components = param.Integer(
        20,
        bounds=(0, 2000),
        doc="Principal components of the columns that the model is given, which tells a rare class "
        "better than every pixel does; 0: the columns themselves, as published.",
    )
    prior = param.Selector(
        objects=PRIORS,
        doc="Shares of the classes before a row is seen, in Bayes' rule: those of the rows learnt "
        "from, of the whole table, or equal ones.",
    )
    tempered = param.Boolean(
        True,
        doc="Spare rows to temper the probabilities by, since the model takes for independent what "
        "is not and is too sure of itself; and to find the probability from which a row is called "
        "rare. All methods are treated alike.",
    )
    test_share = param.Number(
        0.4,
        bounds=(0.0, 0.8),
        doc="Share of each class's rows that is held out, in whole groups where there are groups.",
    )
    size = param.Integer(
        30,
        bounds=(4, 100),
        doc="Side in pixels to which larger images are brought, by averages over area.",
    )
    width = param.Integer(
        0, bounds=(0, 2000), doc="Pixels of an image's row; 0: images are square."
    )
    height = param.Integer(
        0, bounds=(0, 2000), doc="Pixels of an image's column; 0: images are square."
    )
    max_steps = param.Integer(800, bounds=(1, 100_000), doc="Steps at most.")
    adam_steps = param.Integer(
        160,
        bounds=(0, 100_000),
        doc="Steps of Adam, two thirds of all at most, after which L-BFGS goes on to the maximum; "
        "DGPLVM has L-BFGS alone.",
    )
    patience = param.Integer(
        40,
        bounds=(0, 100_000),
        doc="Steps within which the bound must rise by a thousandth of a nat a row, or it has "
        "converged; 0: as many steps as there may be.",
    )
    restarts = param.Integer(1, bounds=(1, 20), doc="Fits from different starts; the best is kept.")
    baselines = param.Boolean(
        True, doc="Fit other classifiers to the same rows afterwards, for the table beside it."
    )

    def check(self) -> None:
        if self.n_shared_dims + self.n_private_dims < 1:
            raise BadInput(
                "Settings 'n_shared_dims' and 'n_private_dims' are both 0, and rows need a place "
                "to be; give one of them a dimension."
            )
        if 0 < self.imbalance < 1:
            raise BadInput(
                f"Setting 'imbalance' is {self.imbalance:g}, so that the rare class would be the "
                "more frequent one; set it to 1 or more, or to 0 for all rows."
            )
        if 0 < self.n_components < self.n_shared_dims:
            raise BadInput(
                f"Setting 'n_shared_dims' asks for {self.n_shared_dims} latent dimensions of "
                f"{self.n_components} "
                "principal components; raise 'n_components', or set fewer dimensions."
            )
        if self.model == "sclvm" and not self.n_private_dims:
            raise BadInput(
                "Setting 'n_private_dims' is 0, and without a space of its own no class is told "
                "from another by the model sclvm; give it a dimension, or choose bgplvm."
            )

"""Settings of omniglot: outputs, each with its own classes, few examples (Ma 2023)."""

from __future__ import annotations

import param

from scant.errors import BadInput
from scant.studies.auto import AUTO, AutoInteger
from scant.studies.split import SplitSettings

MODELS = {
    "mogp-ar": "MOGPs-AR",
    "mg-m": "MG-M",
    "g-m": "G-M",
    "g-a": "G-A",
}
PIXELS, HOG, NETWORK = "pixels", "HOG", "EfficientNet-Lite0, HOG"
COVARIANCES = ["kept", "dropped as published"]
PATCH_WEIGHTS = ["each function", "shared"]
PATCH_LENGTHSCALES = ["each pixel", "shared"]
SCHEDULES = ["cosine decay", "constant"]
RESIZING = ["area averages", "nearest neighbor"]
SHOWN = 60  # classes with their coregionalization on the page, entry by entry
BLOCK = 120  # maximum number of classes of a block in a query
DIAGRAMS = 8  # latent functions with a Hinton diagram


class OmniglotSettings(SplitSettings):
    """Settings of a fit to outputs with classes (Ma 2023, chapters 3 and 4)."""

    study = "omniglot"
    essential = ("kernel", "shots", "n_outputs", "n_latent", "n_inducing", "max_steps")

    model = param.Selector(
        default="mogp-ar",
        objects=list(MODELS),
        doc="mogp-ar, or a model to compare it with: mg-m has the softmax by Monte Carlo, with all "
        "classes in each step; g-m and g-a are one model per output, with the softmax by Monte "
        "Carlo or with augment-and-reduce.",
    )
    kernel = param.Selector(
        objects=["auto", "patch", "rbf-ard"],
        doc="auto: patches if the columns are pixels, unless the setting 'pixels' is auto and the "
        "images are gray; else an RBF kernel with a lengthscale for each feature.",
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
        label="Groups",
        doc="Scarcity: number of groups, such as alphabets, to train together, from the first; 0: "
        "all.",
    )
    n_classes = param.Integer(
        0,
        bounds=(0, 100_000),
        label="Classes of each output",
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
        doc="Side in pixels; larger images are reduced to it (see 'resize').",
    )
    resize = param.Selector(
        objects=RESIZING,
        doc="How larger images are reduced. Area averages break no stroke; the publication takes "
        "the nearest pixel.",
    )
    pixels = param.Selector(
        objects=["auto", "black and white", "gray"],
        doc="With black and white pixels, equal patches recur, which makes the patch kernel ten "
        "times faster. auto: gray levels if more than a quarter of the inked pixels are gray.",
    )
    patch = param.Integer(3, bounds=(2, 20), doc="Side of a patch in pixels.")
    patch_weights = param.Selector(
        objects=PATCH_WEIGHTS,
        doc="Weights of the patch positions: a set for each latent function, as in the authors' "
        "program, or one set for all, as in the publication.",
    )
    patch_lengthscales = param.Selector(
        objects=PATCH_LENGTHSCALES,
        doc="Lengthscales of the patch kernel: one for each pixel of a patch, as in the "
        "publication, or one for all, as in the authors' program.",
    )
    n_latent = AutoInteger(
        AUTO,
        bounds=(1, 100),
        label="Latent functions",
        doc="Number Q of latent functions that the classes mix; auto: one for each class, 16 at "
        "most.",
    )
    rank = param.Integer(1, bounds=(1, 10), doc="Rank of each coregionalization matrix.")
    n_inducing = AutoInteger(
        AUTO,
        bounds=(2, 1000),
        label="Inducing points",
        doc="Number of inducing points, or inducing patches, of each latent function; auto: by the "
        "training rows and the time budget.",
    )
    batch_size = AutoInteger(
        AUTO,
        bounds=(1, 100_000),
        doc="Rows of each output per step, drawn at random each time; auto: 100 of all outputs "
        "together, and at least 20 of each.",
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
    class_constants = param.Boolean(
        True,
        doc="Add a learned constant to the function of each class. Not in the publication.",
    )
    learning_rate = param.Number(0.05, bounds=(1e-5, 1.0), doc="Initial step size of Adam.")
    learning_rate_schedule = param.Selector(
        objects=SCHEDULES,
        doc="Step size over the steps: a cosine decay to a hundredth, or constant, as published.",
    )
    max_steps = AutoInteger(
        AUTO,
        bounds=(1, 200_000),
        doc="Maximum number of steps; auto: as many as the time budget allows, 600 at most.",
    )
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
    stack = param.Boolean(
        True,
        doc="Average the probabilities with those of an exact GP and of a linear classifier of "
        "each output, weighted by the same held-out rows, if they are calibrated. Not in the "
        "publication.",
    )
    features = param.Selector(
        default=AUTO,
        objects=[AUTO, PIXELS, HOG, NETWORK],
        doc="Inputs of the members of that average, for images: pixels alone; pixels with HOG "
        "features of the images and of slightly turned, sheared, scaled and shifted copies, and "
        "with distances between images that may bend; or all of these with the early layers of a "
        "pretrained network. auto: with the network where the extra 'vision' is installed. Not in "
        "the publication.",
    )
    baselines = param.Boolean(
        True, doc="Fit other classifiers to the same rows after the run, for comparison."
    )
    restarts = AutoInteger(
        AUTO,
        bounds=(1, 20),
        doc="Number of fits from different starts; the best is kept. auto: one.",
    )

    def check(self) -> None:
        if self.kernel != "rbf-ard" and self.patch > self.size:
            raise BadInput(
                f"Setting 'patch' is {self.patch}, but images are resized to {self.size} x "
                f"{self.size} pixels by 'size'; choose a smaller patch or a larger size."
            )
        if self.n_classes == 1:
            raise BadInput(
                "Setting 'n_classes' is 1, and a classifier needs two classes; set it to 2 or "
                "more, or to 0 for all."
            )
        if self.model == "mg-m" and self.covariance != COVARIANCES[0]:
            raise BadInput(
                "Setting 'covariance' applies only to the bound of augment-and-reduce, but mg-m "
                "uses another bound; choose the covariance kept, or the model mogp-ar."
            )


# Fixed sizes in the demonstration, quick runs and the publication's settings.
FIXED = {
    "pixels": "black and white",
    "stack": False,
    "features": PIXELS,
    "n_latent": 16,
    "n_inducing": 40,
    "batch_size": 50,
    "max_steps": 100,
    "restarts": 1,
}

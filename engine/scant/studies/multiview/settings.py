"""Settings of multiview: rows with several views (Kandemir & Hamprecht 2015)."""

from __future__ import annotations

import param

from scant.errors import BadInput
from scant.studies.auto import AUTO, AutoInteger
from scant.studies.split import SplitSettings

TASKS = ["auto", "classification", "regression", "survival"]
MODELS = {
    "dfgp": "DFGP",
    "dfgp-wp": "DFGP-WP",
    "sgp": "SGP",
    "student-t": "Student-t",
}
BOUNDS = ["auto", "published", "closed", "stochastic"]
LAYERED = ("dfgp", "dfgp-wp")
MOST_PROCESS = 1200  # maximum training rows of a compared Student-t process (cubic cost)
PROCESS_STEPS = 20  # maximum steps of L-BFGS of a Student-t process
SHOWN = 300  # held-out rows of a snapshot
# Share of rows or patients for training; with classes and groups, one group.
PUBLISHED_SHARE = {"classification": 0.5, "regression": 0.5, "survival": 0.25}


class MultiviewSettings(SplitSettings):
    "Settings of a fit to rows with several views (Kandemir & Hamprecht 2015)."

    study = "multiview"
    essential = ("task", "model", "views", "training_share", "n_inducing", "max_steps")

    task = param.Selector(
        default="auto",
        objects=TASKS,
        doc="Target: a class (column label), a value (y) or a survival time (time); auto: the "
        "column that the table has.",
    )
    model = param.Selector(
        default="dfgp",
        objects=list(MODELS),
        doc="dfgp, or a model to compare it with: dfgp-wp has a linear output kernel (a Wishart "
        "process), sgp is one sparse GP on all features, student-t is a Student-t process.",
    )
    bound = param.Selector(
        objects=BOUNDS,
        doc="published: the inducing outputs of hidden neurons are points. closed: they are "
        "uncertain, which gives a bound on the evidence. stochastic: each step samples the hidden"
        " values; this bound also learns from censored times. auto: stochastic for survival, else"
        " published.",
    )
    positive_class = param.String(
        "",
        doc="The positive class, or several classes, separated by commas, that count as one. "
        "Empty: the rarer of two.",
    )
    views = param.String("", doc="Views to use, separated by commas. Empty: all.")
    neurons = AutoInteger(
        AUTO,
        bounds=(0, 50),
        doc="Number of hidden neurons, which take the views in turn; 0 and auto: one per view, or "
        "3 for a single view. For the Student-t process: its degrees of freedom, 3 or more.",
    )
    n_inducing = AutoInteger(
        AUTO,
        bounds=(0, 500),
        label="Inducing points",
        doc="Number of inducing points of each neuron; 0: 50 for classes, else 10 as published; "
        "auto: by the training rows and the time budget.",
    )
    inducing_init = param.Selector(
        objects=["auto", "learned", "fixed"],
        label="Inducing inputs",
        doc="Inducing inputs of hidden neurons. fixed: a random subset of the rows, as published. "
        "learned: optimized, which separates classes better and overfits values. auto: learned for "
        "classes.",
    )
    n_components = AutoInteger(
        AUTO,
        bounds=(0, 500),
        label="Principal components",
        doc="Number of principal components of each view, as in the publication for tissue; 0: all"
        " features; auto: all, or of wide views as many as the training rows support.",
    )
    start_width = param.Number(
        0.0,
        bounds=(0.0, 100.0),
        label="Initial lengthscale",
        doc="Initial lengthscales of hidden neurons, in units of the typical distance between rows"
        " of a view. Large values leave less uncertainty in a neuron, which is noise to the "
        "output; 0: 4 for classes, else 1.",
    )
    ard = param.Boolean(
        True, label="ARD", doc="Learn one lengthscale per feature instead of one per view."
    )
    share_kernel = param.Boolean(
        False,
        label="One kernel per view",
        doc="All hidden neurons of a view have the same lengthscales, as published; off: each "
        "neuron learns its own.",
    )
    output_ard = param.Boolean(
        True,
        label="ARD of the output",
        doc="Learn one lengthscale per hidden neuron in the output kernel, or one weight per neuron"
        " for dfgp-wp; off: one lengthscale for all, or the unweighted sum of a Wishart process, "
        "as published.",
    )
    output_metric = param.Boolean(
        False,
        label="Full metric of the output",
        doc="Learn a full matrix J in the RBF output kernel, which combines hidden neurons; "
        "'output_ard' is then unused. Off: J is diagonal, as published.",
    )
    output_scale = param.Boolean(
        True,
        label="Variance of the output",
        doc="Learn the variance of the RBF output kernel; off: it is 1, as published.",
    )
    log_target = param.Selector(
        objects=["auto", "yes", "no"],
        doc="Model the logarithm of 1 + y, for skewed values that are never negative; auto: "
        "decided from the values. Survival times are always modeled as logarithms.",
    )
    training_share = param.Number(
        0.8,
        bounds=(0.0, 0.95),
        doc="Share of rows in the training set: whole groups if the table has groups, whole "
        "patients for survival. The others are held out. 0: as published (one group for classes, "
        "half of the rows, a quarter of the patients).",
    )
    training_size = param.Integer(
        0,
        bounds=(0, 1_000_000),
        doc="Scarcity: maximum number of training groups, patients or rows; 0: all. The held-out "
        "rows stay the same.",
    )
    learning_rate = param.Number(0.05, bounds=(1e-5, 1.0), doc="Step of Adam.")
    rate_falls = param.Boolean(
        True,
        label="Decaying step size",
        doc="Cosine decay of Adam's step size to a hundredth at the last step, where the run "
        "converges; otherwise a constant rate, as published. Unused where L-BFGS takes over.",
    )
    adam_steps = param.Integer(
        0,
        bounds=(0, 100_000),
        doc="Steps of Adam before L-BFGS, if the bound is not stochastic; 0: Adam only. L-BFGS "
        "reaches a maximum and overfits values more easily.",
    )
    max_steps = AutoInteger(
        AUTO,
        bounds=(1, 100_000),
        doc="Maximum number of steps; auto: 150, or 300 for survival, if the time budget allows.",
    )
    patience = param.Integer(
        0,
        bounds=(0, 100_000),
        doc="Stop after this number of steps without a better bound; 0: never.",
    )
    stack = param.Boolean(
        True,
        doc="Average the predictions with those of an exact GP and of a linear model, weighted by "
        "training rows that are left out in turn; where that gains nothing, predict without "
        "inputs. The rare class is predicted from the probability that is best for F1. Not in the "
        "publication.",
    )
    baselines = param.Boolean(
        True, doc="Fit the other models to the same rows after the run, for comparison."
    )
    repeats = AutoInteger(
        AUTO,
        bounds=(1, 50),
        doc="Number of random splits that compare all models after the run, including the run's "
        "own split; auto: as many as the time budget allows, 5 at most.",
    )
    restarts = AutoInteger(
        AUTO,
        bounds=(1, 20),
        doc="Number of fits from different starts; the best is kept. auto: one.",
    )

    def check(self) -> None:
        if self.model == "student-t" and self.task == "classification":
            raise BadInput(
                "Setting 'model' is student-t, which predicts values but no classes; choose "
                "another model or another task."
            )
        if self.bound in BOUNDS[2:] and self.model not in LAYERED:
            raise BadInput(
                f"Setting 'bound' is for networks of two layers, but {self.model} has one layer; "
                "choose the bound auto, or the model dfgp or dfgp-wp."
            )
        if self.log_target == "yes" and self.task == "classification":
            raise BadInput(
                "Setting 'log_target' is yes, but classes have no logarithm; set it to no or auto."
            )
        if self.n_inducing == 1:
            raise BadInput(
                "Setting 'n_inducing' is 1, but a function needs two inducing points; set it to 2 "
                "or more, or to 0 for the default of the task."
            )
        if self.positive_class and self.task in ("regression", "survival"):
            raise BadInput(
                f"Setting 'positive_class' names a class, but the task is {self.task}; leave it "
                "empty, or choose the task classification."
            )


# Fixed sizes, the base of the demonstration, the quick preset and the publication's settings.
FIXED = {
    "neurons": 0,
    "n_inducing": 0,
    "n_components": 0,
    "max_steps": 150,
    "repeats": 5,
    "stack": False,
    "restarts": 1,
}

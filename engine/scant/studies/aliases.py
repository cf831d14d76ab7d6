"""Former names of studies and settings: links, stored runs and commands of 0.1.0 go on working."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STUDIES = {"events": "multiview"}

# Headings of figures in the links of lessons, as `slug` writes them.
HEADINGS = {
    "bands-missing": "inputs-missing",
    "confused-characters": "confused-classes",
    "coupling-of-the-alphabets": "coupling-of-the-groups",
    "draw-a-character": "draw-an-image",
    "held-out-characters": "held-out-images",
    "how-long-will-this-patient-live": "how-long-until-the-event",
    "how-much-of-its-doubt-is-its-own": "uncertainty-of-the-classes",
    "if-all-alphabets-competed": "if-all-groups-competed",
    "patients-predicted-against-true": "survival-times-predicted-against-true",
    "recall-of-each-alphabet": "recall-of-each-group",
    "replicas-seen-and-never-taken": "replicas-observed-and-missing",
    "scores-by-bin-and-by-missing-bands": "scores-by-bin-and-by-missing-inputs",
    "the-pool-and-what-it-was-asked": "the-pool-and-its-queries",
    "what-are-the-other-alphabets-worth": "what-are-the-other-groups-worth",
    "what-if-a-band-were-missing": "what-if-an-input-were-missing",
    "what-it-would-ask-next": "next-queries",
    "what-the-averages-give-away": "posterior-mean-and-deviation",
    "where-to-draw-the-line": "decision-threshold",
    "which-alphabets-go-together": "coupling-of-the-groups",
    "which-characters-are-taken-for-which": "confused-classes",
    "which-characters-the-model-finds-alike": "which-classes-the-model-finds-alike",
}

# By study: the name of 0.1.0 and today's.
SETTINGS: dict[str, dict[str, str]] = {
    "aggregation": {"optimiser": "optimizer", "standardise": "standardize"},
    "clamp": {
        "batch": "batch_size",
        "components": "n_components",
        "features": "feature_extractor",
        "positive": "positive_class",
    },
    "genes": {
        "batch_outputs": "batch_size",
        "inducing_inputs": "n_inducing_inputs",
        "inducing_outputs": "n_inducing_outputs",
        "optimiser": "optimizer",
    },
    "mitosis": {
        "components": "n_components",
        "inducing_points": "n_inducing",
        "private": "n_private_dims",
        "rare": "positive_class",
        "shared": "n_shared_dims",
    },
    "multiview": {
        "components": "n_components",
        "inducing_inputs": "inducing_init",
        "inducing_points": "n_inducing",
        "log_y": "log_target",
        "positive": "positive_class",
        "train_rows": "training_size",
        "train_share": "training_share",
    },
    "omniglot": {"batch_rows": "batch_size", "inducing_points": "n_inducing"},
    "redshift": {"positive": "log_target"},
}

# By study and setting: former values, as words, and today's.
_YES_OR_NO = {"true": "yes", "1": "yes", "false": "no", "0": "no"}
VALUES: dict[str, dict[str, dict[str, str]]] = {
    "mitosis": {"prior": {"as rows held out look": "as held-out rows look"}},
    "multiview": {"inducing_init": {"learnt": "learned"}},
    "omniglot": {"pixels": {"grey": "gray"}},
    "redshift": {
        "features": {"colours": "colors"},
        "log_target": _YES_OR_NO,
        "robust": _YES_OR_NO,
        "weights": {"normalised": "normalized"},
    },
}

# Settings of which links and stored runs say nothing that are older: how these were made.
ADDED: dict[str, dict[str, Any]] = {
    "aggregation": {
        "inference": "variational",
        "stack": False,
        "counts": "rate of the average",
        "isotropic": False,
        "known_noise": False,
        "hyperparameters": "point",
    },
    "clamp": {
        "expert": "simulated",
        "acquisition": "band",
        "kernel": "RBF",
        "validation_share": 0.15,
        "count_validation": False,
        "fixed_split": False,
        "patience": 5,
    },
    "mitosis": {
        "classifier": "latent variables",
        "features": "pixels",
        "prior": "as in training",
    },
    "multiview": {"stack": False},
    "omniglot": {"stack": False, "pixels": "black and white", "features": "pixels"},
    "redshift": {"stack": False, "missing": "integrate", "test_size": 0},
}


def current_study(name: str) -> str:
    """Today's name of a study."""
    return STUDIES.get(name, name)


def current_settings(study: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under today's names; of a setting given by both its names, today's counts."""
    former = SETTINGS.get(current_study(study), {})
    renamed = {former[name]: value for name, value in values.items() if name in former}
    current = {**renamed, **{n: value for n, value in values.items() if n not in former}}
    changed = VALUES.get(current_study(study), {})
    for name in changed.keys() & current.keys():
        current[name] = changed[name].get(str(current[name]).lower(), current[name])
    return current


def recorded_settings(
    study: str, values: Mapping[str, Any], start: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The same of a link or a stored run: one without a `data_seed` is of a version in which the
    seed of a fit drew the demonstration's data as well. What a preset, `start`, says holds over
    what is older than the setting."""
    current = current_settings(study, values)
    drawn = {"data_seed": current["seed"]} if "seed" in current else {}
    older = ADDED.get(current_study(study), {})
    return {**{n: v for n, v in older.items() if n not in (start or {})}, **drawn, **current}


def current_run(run_id: str) -> str:
    """Today's id of a demonstration, whose id names its study; any other id unchanged."""
    prefix, _, study = run_id.partition("-")
    return f"{prefix}-{current_study(study)}" if prefix == "demo" else run_id

"""Automatic sizes of the latent variable model for a table."""

from __future__ import annotations

from scant.studies.auto import Choice, Choices, set_or
from scant.studies.base import Counts
from scant.studies.mitosis.cost import modeled, n_classes, parts, step_seconds
from scant.studies.mitosis.settings import EARLY, FIXED, PIXELS, MitosisSettings
from scant.tables.images.kinds import GAIN, HANDMADE, automatic

STEPS = (60, 300)  # minimum and maximum
SHARE = 0.2  # share of the time budget for steps; the rest is for other methods
OWN_COLUMNS = 40  # maximum number of columns that are learned as they are
COMPONENTS = 20  # principal components of more columns, and of images
POINTS = (4, 20)  # minimum and maximum number of inducing points of a class
ALL_POINTS = 80  # maximum number of inducing points of all classes


def capacity(settings: MitosisSettings, rows: int, columns: int, counts: Counts) -> Choices:
    """Values for settings that are `auto` (see `Entry.capacity`)."""
    s = settings
    label = counts.get("label", {})
    pixels = {"p0", "p1", "p2", "p3"} <= set(counts) if counts else columns > 10 * OWN_COLUMNS
    inputs = max(1, columns - 1 - len({"group", "split"} & set(counts)))
    n_components, components_reason = 0, "columns as they are"
    if pixels or inputs > OWN_COLUMNS:
        n_components = min(COMPONENTS, inputs)
        components_reason = (
            "principal components of pixels" if pixels else f"for {inputs:,} columns"
        )
    n_columns = set_or(s.n_components, n_components) or inputs
    n_train, *_ = parts(s, rows, counts)
    n_train = modeled(s, n_train)
    n_rare = min(label.values(), default=n_train // 12)
    n_class = n_classes(counts)
    n_shared = set_or(s.n_shared_dims, min(FIXED["n_shared_dims"], max(1, n_columns // 2)))
    n_private = set_or(s.n_private_dims, min(FIXED["n_private_dims"], max(2, n_columns - n_shared)))
    min_points, max_points = POINTS
    n_inducing = max(
        min_points, min(max_points, ALL_POINTS // n_class, max(n_rare, n_train // (2 * n_class)))
    )
    n_inducing = set_or(s.n_inducing, n_inducing)
    seconds = step_seconds(n_train, n_inducing * n_class, n_shared + n_private, n_columns)
    min_steps, max_steps = STEPS
    steps = max(min_steps, min(max_steps, int(SHARE * s.time_budget / seconds)))
    steps_reason = f"within {s.time_budget:g} s"
    n_adam = round(FIXED["adam_steps"] / FIXED["max_steps"] * set_or(s.max_steps, steps))
    has_network = automatic() != HANDMADE
    return {
        "features": Choice(EARLY, "of images, beside their pixels")
        if pixels and has_network
        else Choice(PIXELS, GAIN if pixels else "columns are no images"),
        "model": Choice(FIXED["model"], "classes keep dimensions of their own"),
        "n_components": Choice(n_components, components_reason),
        "n_shared_dims": Choice(n_shared, f"for {n_columns} columns"),
        "n_private_dims": Choice(n_private, f"for {n_columns} columns"),
        "n_inducing": Choice(n_inducing, f"for {n_train:,} training rows of {n_class} classes"),
        "max_steps": Choice(steps, "usually enough" if steps == max_steps else steps_reason),
        "adam_steps": Choice(n_adam, "a fifth of all steps"),
        "restarts": Choice(1, "from principal components"),
    }

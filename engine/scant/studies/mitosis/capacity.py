"""Sizes of the latent variable model for a table that nobody tuned it for."""

from __future__ import annotations

from scant.studies.auto import Choice, Choices, set_or
from scant.studies.base import Counts
from scant.studies.mitosis.cost import modeled, n_classes, parts, step_seconds
from scant.studies.mitosis.settings import EARLY, FIXED, PIXELS, MitosisSettings
from scant.tables.images.kinds import GAIN, HANDMADE, automatic

STEPS = (60, 300)  # fewest and most
SHARE = 0.2  # of the time budget that steps may take; the rest is for other methods
OWN_COLUMNS = 40  # up to which columns are learned as they are
COMPONENTS = 20  # of more columns, and of images
POINTS = (4, 20)  # inducing points of a class
ALL_POINTS = 80  # of all classes


def capacity(settings: MitosisSettings, rows: int, columns: int, counts: Counts) -> Choices:
    """Values for settings that are `auto` (see `Entry.capacity`)."""
    s = settings
    label = counts.get("label", {})
    pixels = {"p0", "p1", "p2", "p3"} <= set(counts) if counts else columns > 10 * OWN_COLUMNS
    inputs = max(1, columns - 1 - len({"group", "split"} & set(counts)))
    components, why = 0, "columns as they are"
    if pixels or inputs > OWN_COLUMNS:
        components = min(COMPONENTS, inputs)
        why = "principal components of pixels" if pixels else f"for {inputs:,} columns"
    width = set_or(s.n_components, components) or inputs
    train, *_ = parts(s, rows, counts)
    train = modeled(s, train)
    rare = min(label.values(), default=train // 12)
    classes = n_classes(counts)
    shared = set_or(s.n_shared_dims, min(FIXED["n_shared_dims"], max(1, width // 2)))
    private = set_or(s.n_private_dims, min(FIXED["n_private_dims"], max(2, width - shared)))
    fewest, most = POINTS
    points = max(fewest, min(most, ALL_POINTS // classes, max(rare, train // (2 * classes))))
    points = set_or(s.n_inducing, points)
    seconds = step_seconds(train, points * classes, shared + private, width)
    least, enough = STEPS
    steps = max(least, min(enough, int(SHARE * s.time_budget / seconds)))
    within = f"within {s.time_budget:g} s"
    adam = round(FIXED["adam_steps"] / FIXED["max_steps"] * set_or(s.max_steps, steps))
    there = automatic() != HANDMADE
    return {
        "features": Choice(EARLY, "of images, beside their pixels")
        if pixels and there
        else Choice(PIXELS, GAIN if pixels else "columns are no images"),
        "model": Choice(FIXED["model"], "classes keep dimensions of their own"),
        "n_components": Choice(components, why),
        "n_shared_dims": Choice(shared, f"for {width} columns"),
        "n_private_dims": Choice(private, f"for {width} columns"),
        "n_inducing": Choice(points, f"for {train:,} training rows of {classes} classes"),
        "max_steps": Choice(steps, "usually enough" if steps == enough else within),
        "adam_steps": Choice(adam, "a fifth of all steps"),
        "restarts": Choice(1, "from principal components"),
    }

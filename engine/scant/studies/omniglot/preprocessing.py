"""Preprocessing of omniglot tables: resized images, training rows, shown classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from scant.errors import BadInput
from scant.studies.auto import AUTO, Choice, Choices
from scant.studies.omniglot.settings import RESIZING, SHOWN, OmniglotSettings
from scant.studies.omniglot.table import Characters, area, nearest, of, side
from scant.studies.split import EVERYTHING, TEST, divide, groups, marks
from scant.tables.column_matching import listed

EXAMPLES = 12  # held-out images that a snapshot shows
AT_ONCE = 150  # held-out rows that a snapshot predicts
INK = 0.2  # least share of ink of a black pixel: strokes neither break nor run together
FAINT = 0.02  # largest share of ink of paper
MOST_GREY = 0.25  # share of inked pixels that are gray at the edges of strokes
SHADES = 255  # of a pixel: images are stored as whole parts of this


def chosen(s: OmniglotSettings, observed: Characters) -> tuple[Characters, Int[np.ndarray, " m"]]:
    """Select outputs and classes by the settings; return rows, and their indices in the table.

    Rows without a label are left out.

    Raises:
        BadInput: An output has only one class.
    """
    used = observed.label >= 0
    if s.n_classes:
        used &= observed.label < s.n_classes
    if s.n_outputs:
        used &= observed.output < s.n_outputs
    positions = np.flatnonzero(used)
    classes = [names[: s.n_classes or None] for names in observed.classes]
    outputs = observed.outputs[: s.n_outputs or None]
    single = [d for d in range(len(outputs)) if len(classes[d]) < 2]
    if single:
        name, own = outputs[single[0]], classes[single[0]]
        raise BadInput(
            f"Output {name!r} has only one class ({listed(own)}), and two are needed; add "
            "rows of another, or leave the output out."
        )
    result = replace(observed.take(positions), outputs=outputs, classes=classes[: len(outputs)])
    return result, positions


def shape(s: OmniglotSettings, observed: Characters) -> tuple[int, int] | None:
    """Height and width of the table's images; None if its columns are no pixels.

    Raises:
        BadInput: The kernel needs pixels and there are none, or they fill no image.
    """
    if observed.pixels and s.kernel != "rbf-ard":
        return side(len(observed.features), s.width, s.height)
    if s.kernel == "patch":
        raise BadInput(
            "The kernel 'patch' cuts images to pieces, and this table has no pixels p0, p1, …; "
            "choose rbf-ard, or auto."
        )
    root = round(len(observed.features) ** 0.5)
    if observed.pixels and (s.width or s.height or root * root == len(observed.features)):
        return side(len(observed.features), s.width, s.height)
    return None


def model_inputs(
    s: OmniglotSettings, x: Float[np.ndarray, "n v"], image: tuple[int, int] | None
) -> tuple[Float[np.ndarray, "n e"], tuple[int, int] | None]:
    """Features as they are, or images of at most `size` pixels a side, in whole shades.

    Args:
        s: Settings: `size`, `resize`, and whether pixels are black and white.
        x: Rows of the table.
        image: Height and width of its images; None: there are none.

    Returns:
        Features, and the images' height and width.
    """
    if image is None:
        return x, None
    reduced = area if s.resize == RESIZING[0] else nearest
    images = reduced(x.reshape(-1, *image), s.size)
    return shaded(s, images.reshape(len(x), -1)), (images.shape[1], images.shape[2])


def settled(s: OmniglotSettings, observed: Characters) -> tuple[OmniglotSettings, Choices]:
    """Choose the kind of pixels; return the settings, and the choices.

    Gray patches do not recur as those of ink and paper do, and take ten times as long: the kernel
    then compares whole images.
    """
    if s.pixels != AUTO or not observed.pixels:
        return s, {}
    ink = observed.x[observed.x > FAINT] if observed.pixels else np.empty(0)
    between = ((ink > INK) & (ink < 1 - INK)).mean() if len(ink) else 0.0
    grey, reason = between > MOST_GREY, f"{between:.0%} of the inked pixels are gray"
    choices = {"pixels": Choice("gray" if grey else "black and white", reason)}
    if grey and s.kernel == AUTO:
        choices["kernel"] = Choice("rbf-ard", reason)
    return type(s)(**s.values() | {name: c.value for name, c in choices.items()}), choices


def shaded(s: OmniglotSettings, pixels: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Round pixels to whole parts of `SHADES`, or to ink and paper."""
    if s.pixels == "black and white":
        return (pixels > INK).astype(np.float64)
    return np.asarray(np.round(np.clip(pixels, 0.0, 1.0) * SHADES) / SHADES)


def split(
    s: OmniglotSettings,
    observed: Characters,
    marked: np.ndarray,
    group: Int[np.ndarray, " n"] | None = None,
) -> tuple[Bool[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Masks of training and held-out rows; each class has its share of both.

    Held-out rows do not depend on `shots`, and fewer shots are a subset of more.

    Args:
        s: Settings.
        observed: The table.
        marked: Marks of its rows (`scant.studies.split.marks`).
        group: Group of each row, if groups are held out whole, whatever their classes.

    Raises:
        BadInput: A class has no row to learn from.
    """
    train, test = np.zeros(len(observed), dtype=bool), np.asarray(marked == TEST, dtype=bool)
    if group is not None and not test.any():
        n_test = round(s.test_share * len(observed))
        test[divide(len(observed), s.seed, test=n_test, group=group).test] = True
    fixed, everything = bool(test.any()), s.refit == EVERYTHING
    order = np.argsort(observed.number, kind="stable")
    counts = np.bincount(observed.number, minlength=sum(len(names) for names in observed.classes))
    for number, rows in enumerate(np.split(order, np.cumsum(counts)[:-1])):
        shuffled = np.random.default_rng([s.seed, 11, number]).permutation(rows)
        n_held = min(len(rows) - 1, max(1, round(s.test_share * len(rows)))) if s.test_share else 0
        if not fixed:
            test[shuffled[: max(n_held, 0)]] = True
        train[shuffled if everything else shuffled[~test[shuffled]][: s.shots or None]] = True
    empty = np.flatnonzero(np.bincount(observed.number[train], minlength=len(counts)) == 0)
    if len(empty):
        raise BadInput(
            f"Class {name_of(observed, int(empty[0]))} has no row to learn from; add some."
        )
    return train, test


def few(
    s: OmniglotSettings, observed: Characters, test: Int[np.ndarray, " t"], k: int
) -> Int[np.ndarray, " m"]:
    """k examples of each class from rows that are not held out; all if a class has fewer."""
    available = np.setdiff1d(np.arange(len(observed)), test)
    shuffled = np.random.default_rng([s.seed, 12]).permutation(available)
    order = shuffled[np.argsort(observed.number[shuffled], kind="stable")]
    counts = np.bincount(observed.number[order])
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[rank < k])


def name_of(observed: Characters, number: int) -> str:
    """Name of a class by its number, as `output/label`."""
    d = int(np.searchsorted(observed.offset, number, side="right")) - 1
    return f"{observed.outputs[d]}/{observed.classes[d][number - observed.offset[d]]}"


def shown(observed: Characters) -> Int[np.ndarray, " c"]:
    """Numbers of the classes sent to the page: the first, at most `SHOWN`."""
    return np.arange(min(SHOWN, sum(len(names) for names in observed.classes)))


def some(
    rows: Int[np.ndarray, " n"], output: Int[np.ndarray, " n"], max_rows: int
) -> Int[np.ndarray, " m"]:
    """At most `max_rows` of the rows, the same number of each output, evenly spread."""
    if len(rows) <= max_rows:
        return rows
    outputs = np.unique(output)
    per_output = max(1, max_rows // len(outputs))
    picks = []
    for d in outputs[: max_rows // per_output]:
        output_rows = rows[output == d]
        picks.append(
            output_rows[np.unique(np.linspace(0, len(output_rows) - 1, per_output).astype(int))]
        )
    return np.concatenate(picks)


def accuracy(
    observed: Characters, which: Int[np.ndarray, " n"], predicted: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " d"]:
    """Recall of some rows by output; NaN without rows.

    Args:
        observed: All rows.
        which: Some of them.
        predicted: Their predicted classes, numbered through all outputs.
    """
    correct = predicted == observed.number[which]
    output, d = observed.output[which], len(observed.outputs)
    count = np.bincount(output, minlength=d)
    return np.where(count > 0, np.bincount(output, correct, d) / np.maximum(count, 1), np.nan)


def examples(
    observed: Characters,
    image: tuple[int, int] | None,
    which: Int[np.ndarray, " n"],
    p: Float[np.ndarray, "n c"],
) -> dict[str, np.ndarray]:
    """A few of the rows as images, with their predicted classes."""
    picks = some(np.arange(len(which)), observed.output[which], EXAMPLES)
    best = p[picks].argmax(1) if len(picks) else picks
    chosen, shape = which[picks], image or (0, 0)
    images = observed.x[chosen] if image is not None else np.empty((len(chosen), 0))
    return {
        "examples": images.reshape(len(chosen), *shape),
        "examples_true": observed.number[chosen],
        "examples_predicted": observed.offset[observed.output[chosen]] + best,
        "examples_p": p[picks, best],
    }


def metadata_of(
    s: OmniglotSettings,
    observed: Characters,
    image: tuple[int, int] | None,
    train: Bool[np.ndarray, " n"],
    test: Bool[np.ndarray, " n"],
) -> dict[str, Any]:
    """Labels of the arrays on a page (`events.Started`)."""
    offset = observed.offset
    owner = np.repeat(np.arange(len(observed.outputs)), [len(names) for names in observed.classes])
    return {
        "outputs": list(observed.outputs),
        "classes": [list(names) for names in observed.classes],
        "features": list(observed.features) if image is None else [],
        "shown": [
            [observed.outputs[owner[c]], observed.classes[owner[c]][c - offset[owner[c]]]]
            for c in shown(observed).tolist()
        ],
        "size": list(image or ()),
        "kernel": kernel_of(s, image),
        "shots_most": int(np.bincount(observed.number[~test]).max()),
        "rows": {"training": int(train.sum()), "test": int(test.sum())},
    }


def kernel_of(s: OmniglotSettings, image: tuple[int, int] | None) -> str:
    """The kernel, chosen if it is "auto"."""
    if s.kernel != "auto":
        return str(s.kernel)
    return "rbf-ard" if image is None else "patch"


def notes(
    s: OmniglotSettings,
    observed: Characters,
    drawn: tuple[int, int] | None,
    image: tuple[int, int] | None,
    test: Bool[np.ndarray, " n"],
) -> list[str]:
    """Notes for the user on preprocessing.

    Args:
        s: Settings.
        observed: Preprocessed rows.
        drawn: Height and width of the table's images.
        image: Height and width of the preprocessed images.
        test: True for held-out rows.
    """
    messages = []
    if drawn is not None and image is not None and drawn != image:
        messages.append(
            f"Images of {drawn[1]} x {drawn[0]} pixels were resized to {image[1]} x {image[0]} by "
            "averages over area."
            if s.resize == RESIZING[0]
            else f"Images of {drawn[1]} x {drawn[0]} pixels were resized to {image[1]} x "
            f"{image[0]}, each pixel the nearest of the image."
        )
    if image is not None and observed.x.mean() > 0.5:
        messages.append(
            "Most pixels are closer to 1 than to 0, and 1 means ink: check that light and dark are "
            "not swapped."
        )
    counts = np.bincount(observed.number)
    if (counts == 1).any():
        messages.append(
            f"Classes with a single row: {int((counts == 1).sum()):,}. These are learned, but no "
            "row of them is held out."
        )
    if not test.any():
        messages.append(
            "No row is held out, so there is nothing to score; give classes two rows or more, and "
            "'test_share' above 0."
        )
    return messages


def check(s: OmniglotSettings, table: pd.DataFrame, name: str) -> None:
    """Raise BadInput for a table that these settings cannot learn (`Entry.check`)."""
    observed = of(table, name=name)
    settings, _ = settled(s, observed)
    shape(settings, observed)
    observed, positions = chosen(settings, observed)
    group = groups(table, settings.split_by)
    split(settings, observed, marks(table)[positions], None if group is None else group[positions])

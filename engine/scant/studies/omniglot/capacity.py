"""Cost of an omniglot fit, and values of settings that are `auto`."""

from __future__ import annotations

from typing import Any

from scant.studies.auto import AUTO, Choice
from scant.studies.base import Counts, until_rest
from scant.studies.omniglot.settings import HOG, NETWORK, PIXELS, OmniglotSettings
from scant.studies.split import SplitCounts, planned
from scant.tables.images.kinds import GAIN, HANDMADE, automatic

SHARE = 0.4  # of a time budget, for training; the rest: calibration, report and baselines
MOST_LATENT = 16
MOST_ROWS = 2000  # rows of an output that the exact GP of the average learns from
INDUCING = (100, 60, 40, 30, 20, 10)
ROWS = 100  # rows of a step, all outputs together
STEPS = (100, 600)  # least and greatest number; more change nothing


def parts(s: OmniglotSettings, rows: int, counts: Counts) -> SplitCounts:
    """Numbers of training, validation and test rows; outputs and classes that were not counted are
    guessed."""
    total, outputs, classes = _sizes(s, rows, counts)
    used = round(rows * outputs / total)
    train, _, test, _ = planned(s, used, counts if outputs == total else {})
    return SplitCounts(min(train, round(s.shots * classes) or train), 0, test, rows)


def _sizes(s: OmniglotSettings, rows: int, counts: Counts) -> tuple[int, int, float]:
    """Numbers of outputs in the table, and of outputs and classes to learn."""
    total = len(counts.get("output", {})) or max(2, rows // 500)
    outputs = min(s.n_outputs or total, total)
    classes = (len(counts.get("label", {})) or rows / 20) * outputs / total
    return total, outputs, min(classes, s.n_classes * outputs) if s.n_classes else classes


def estimate(
    settings: OmniglotSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Estimated seconds and bytes of a fit on one core, within a factor of two.

    It includes all steps, each with a batch of every output; another model for the temperature; and
    up to 2,000 rows and six outputs two models of single outputs, 250 steps each. Outputs that were
    not counted are guessed: one for 500 rows. Measured on one thread, 16 latent functions and 40
    inducing points: a step of 100 rows of ten columns takes 4 to 5 ms, of 150 images of 20 x 20
    pixels 60 ms, with four functions 15 ms.
    """
    s = settings
    _, outputs, _ = _sizes(s, rows, counts)
    n, _, test, _ = parts(s, rows, counts)
    step_seconds, step_bytes = _step(s, n, outputs, columns, counts)
    steps = until_rest(s.max_steps, s.patience, 0.6) * s.restarts * 1.1
    other_seconds = 0.5
    if s.calibrate and n <= 4000:
        steps += 0.8 * min(s.max_steps, 400)
    if s.baselines:
        other_seconds = 1.0 if n > 2000 or outputs > 6 else 500 * (0.0055 + 0.1 * step_seconds)
    if s.stack and s.calibrate and n <= 4000:
        other_seconds += 1.0 + 5e-10 * outputs * min(n / outputs, MOST_ROWS) ** 3
        other_seconds += _drawings(s, n, test, outputs, counts, columns)
    return (
        0.5 + steps * step_seconds + other_seconds,
        550e6 + 32.0 * rows * min(columns, 2000) + step_bytes,
    )


def _images(columns: int, counts: Counts) -> bool:
    """Return True if the columns are probably pixels."""
    return "p0" in counts or columns > 100


def _drawings(s: Any, n: int, test: int, outputs: int, counts: Counts, columns: int) -> float:
    """Seconds of classifiers of strokes; no size in `s` is `auto`."""
    if s.features == PIXELS or not _images(columns, counts):
        return 0.0
    rows_of_output = n / outputs
    copied = max(rows_of_output, min(9 * rows_of_output, MOST_ROWS))
    feature_seconds = 0.0005 + (0.003 if s.features == NETWORK else 0.0)  # of an image
    views = 2 if s.features == NETWORK else 1
    learning = outputs * views * 2 * (1.5e-10 * copied**3 + 2e-7 * copied**2)
    bending = 1e-4 * rows_of_output * (test + 200 * outputs)
    return feature_seconds * (n * copied / rows_of_output + 5 * test) + learning + bending


def _step(s: Any, n: int, outputs: int, columns: int, counts: Counts) -> tuple[float, float]:
    """Seconds and bytes of a step; no size in `s` is `auto`."""
    m, q, pixels = s.n_inducing, s.n_latent, min(s.size**2, columns)
    batch = min(n, outputs * s.batch_size)
    if s.kernel == "patch" or (s.kernel == "auto" and _images(columns, counts)):
        # A sum over 512 patches of ink and paper, or over all patches of the image.
        n_terms = 512 if s.pixels != "gray" and s.patch == 3 else 18 * pixels
        work = 1e-9 * batch * n_terms * (m + 20)
    else:
        n_terms, work = columns, 1.5e-9 * batch * columns * m
    return 0.0014 + q * (1e-4 + 7e-6 * m + 0.7 * work), 24.0 * q * batch * n_terms


def capacity(
    settings: OmniglotSettings, rows: int, columns: int, counts: Counts
) -> dict[str, Choice]:
    """Sizes by the number of training rows, with enough steps within the time budget."""
    s = settings
    _, outputs, classes = _sizes(s, rows, counts)
    n = parts(s, rows, counts).train
    seconds = SHARE * s.time_budget
    within = f"within {s.time_budget:g} s"
    # Batches of few outputs are larger: the noise of a step depends on all its rows.
    latent = min(MOST_LATENT, max(2, round(classes)))
    choices = {
        "n_latent": Choice(latent, f"for {classes:,.0f} classes"),
        "batch_size": Choice(max(20, ROWS // outputs), f"{outputs:,} outputs"),
        "restarts": Choice(1, "one start"),
    }
    if not _images(columns, counts):
        choices["features"] = Choice(PIXELS, "columns are no images")
    elif automatic() == HANDMADE:
        choices["features"] = Choice(HOG, GAIN)
    else:
        choices["features"] = Choice(NETWORK, "weighted by training rows left out")
    chosen = {name: c.value for name, c in choices.items() if getattr(s, name) == AUTO}
    for m in INDUCING if s.n_inducing == AUTO else (s.n_inducing,):
        candidate = type(s)(**s.values() | chosen | {"n_inducing": m})
        n_steps = seconds / (_step(candidate, n, outputs, columns, counts)[0] * candidate.restarts)
        if m <= n / 3 and n_steps >= 2 * STEPS[0]:
            break
    choices["n_inducing"] = Choice(m, f"{n:,} training rows, {within}")
    choices["max_steps"] = Choice(round(min(max(n_steps, STEPS[0]), STEPS[1])), within)
    return choices

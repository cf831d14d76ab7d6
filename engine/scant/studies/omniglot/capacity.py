"""What a fit of omniglot costs, and values for the settings that were left to the program."""

from __future__ import annotations

from typing import Any

from scant.studies.auto import AUTO, Choice
from scant.studies.base import Counts, until_rest
from scant.studies.omniglot.settings import HOG, NETWORK, PIXELS, OmniglotSettings
from scant.studies.split import SplitCounts, planned
from scant.tables.images.kinds import GAIN, HANDMADE, automatic

SHARE = 0.4  # of a time budget, for training; the rest is for calibration, report and rivals
MOST_LATENT = 16
MOST_ROWS = 2000  # of an output, that the exact GP beside the model learns from
INDUCING = (100, 60, 40, 30, 20, 10)
ROWS = 100  # of a step, of all outputs
STEPS = (100, 600)  # at least; beyond the last, more change nothing


def parts(s: OmniglotSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into, of outputs and classes that were not counted as many
    as are guessed."""
    known, outputs, classes = _kinds(s, rows, counts)
    used = round(rows * outputs / known)
    train, _, test, _ = planned(s, used, counts if outputs == known else {})
    return SplitCounts(min(train, round(s.shots * classes) or train), 0, test, rows)


def _kinds(s: OmniglotSettings, rows: int, counts: Counts) -> tuple[int, int, float]:
    """Outputs of the table, outputs and classes that are learned."""
    known = len(counts.get("output", {})) or max(2, rows // 500)
    outputs = min(s.n_outputs or known, known)
    classes = (len(counts.get("label", {})) or rows / 20) * outputs / known
    return known, outputs, min(classes, s.n_classes * outputs) if s.n_classes else classes


def estimate(
    settings: OmniglotSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: every step, of a batch of each output; another model for the temperature; and of up to
    2,000 rows and six outputs two models of single outputs, 250 steps each. Outputs that were not
    counted are guessed: one for 500 rows. Measured, one thread, 16 latent functions and 40 inducing
    points: a step of 100 rows of ten columns takes 4 to 5 ms, of 150 images of 20 x 20 pixels
    60 ms, with four functions 15 ms.
    """
    s = settings
    _, outputs, _ = _kinds(s, rows, counts)
    n, _, test, _ = parts(s, rows, counts)
    step, held = _step(s, n, outputs, columns, counts)
    steps = until_rest(s.max_steps, s.patience, 0.6) * s.restarts * 1.1
    others = 0.5
    if s.calibrate and n <= 4000:
        steps += 0.8 * min(s.max_steps, 400)
    if s.baselines:
        others = 1.0 if n > 2000 or outputs > 6 else 500 * (0.0055 + 0.1 * step)
    if s.stack and s.calibrate and n <= 4000:
        others += 1.0 + 5e-10 * outputs * min(n / outputs, MOST_ROWS) ** 3
        others += _drawings(s, n, test, outputs, counts, columns)
    return 0.5 + steps * step + others, 550e6 + 32.0 * rows * min(columns, 2000) + held


def _images(columns: int, counts: Counts) -> bool:
    """Whether columns are pixels, as far as is known."""
    return "p0" in counts or columns > 100


def _drawings(s: Any, n: int, test: int, outputs: int, counts: Counts, columns: int) -> float:
    """Seconds of classifiers of strokes, with settings that are numbers."""
    if s.features == PIXELS or not _images(columns, counts):
        return 0.0
    own = n / outputs
    copied = max(own, min(9 * own, MOST_ROWS))
    look = 0.0005 + (0.003 if s.features == NETWORK else 0.0)  # of an image
    views = 2 if s.features == NETWORK else 1
    learning = outputs * views * 2 * (1.5e-10 * copied**3 + 2e-7 * copied**2)
    bending = 1e-4 * own * (test + 200 * outputs)
    return look * (n * copied / own + 5 * test) + learning + bending


def _step(s: Any, n: int, outputs: int, columns: int, counts: Counts) -> tuple[float, float]:
    """Seconds of a step, and the bytes that it holds, with settings that are numbers."""
    m, q, pixels = s.n_inducing, s.n_latent, min(s.size**2, columns)
    batch = min(n, outputs * s.batch_size)
    if s.kernel == "patch" or (s.kernel == "auto" and _images(columns, counts)):
        # A sum over 512 patches of ink and paper, or over all that the image has.
        listed = 512 if s.pixels != "gray" and s.patch == 3 else 18 * pixels
        work = 1e-9 * batch * listed * (m + 20)
    else:
        listed, work = columns, 1.5e-9 * batch * columns * m
    return 0.0014 + q * (1e-4 + 7e-6 * m + 0.7 * work), 24.0 * q * batch * listed


def capacity(
    settings: OmniglotSettings, rows: int, columns: int, counts: Counts
) -> dict[str, Choice]:
    """Sizes by the rows to learn from, as large as leave steps enough within the time budget."""
    s = settings
    _, outputs, classes = _kinds(s, rows, counts)
    n = parts(s, rows, counts).train
    seconds = SHARE * s.time_budget
    within = f"within {s.time_budget:g} s"
    # Batches of few outputs are larger: a step's noise is that of all its rows.
    latent = min(MOST_LATENT, max(2, round(classes)))
    found = {
        "n_latent": Choice(latent, f"for {classes:,.0f} classes"),
        "batch_size": Choice(max(20, ROWS // outputs), f"{outputs:,} outputs"),
        "restarts": Choice(1, "one start"),
    }
    if not _images(columns, counts):
        found["features"] = Choice(PIXELS, "columns are no images")
    elif automatic() == HANDMADE:
        found["features"] = Choice(HOG, GAIN)
    else:
        found["features"] = Choice(NETWORK, "weighted by training rows left out")
    given = {name: c.value for name, c in found.items() if getattr(s, name) == AUTO}
    for m in INDUCING if s.n_inducing == AUTO else (s.n_inducing,):
        made = type(s)(**s.values() | given | {"n_inducing": m})
        fit = seconds / (_step(made, n, outputs, columns, counts)[0] * made.restarts)
        if m <= n / 3 and fit >= 2 * STEPS[0]:
            break
    found["n_inducing"] = Choice(m, f"{n:,} training rows, {within}")
    found["max_steps"] = Choice(round(min(max(fit, STEPS[0]), STEPS[1])), within)
    return found

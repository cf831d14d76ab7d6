"""The publication's experiments (Almosallam 2017), reproduced."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

from scant.studies.redshift.reproduce import (
    basis_functions,
    missing_bands,
    noise_and_gaps,
    survey,
)
from scant.studies.reproduction import Fit, Runs

PARTS: tuple[Callable[[bool, Path | None, Fit], Runs], ...] = (
    survey.runs,
    missing_bands.runs,
    basis_functions.runs,
    noise_and_gaps.runs,
)

compared = survey.advantages


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Scores of every experiment, chapter after chapter of the publication.

    Args:
        quick: Whether to run few and small experiments.
        data: A folder with `photoz_sdss/galaxies.parquet` (see `survey.boss`); None: the simulated
            survey.
        fit: `scant.fit`.
    """
    return chain.from_iterable(part(quick, data, fit) for part in PARTS)

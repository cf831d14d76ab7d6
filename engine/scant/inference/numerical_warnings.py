"""GPyTorch's warnings of added jitter, collected as notes of a run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from linear_operator.utils.warnings import NumericalWarning


@contextmanager
def collect_numerical_warnings(notes: list[str]) -> Iterator[None]:
    """Add what is said inside to `notes`, each sentence once; other warnings are passed on."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", NumericalWarning)
        yield
    for warning in said:
        text = str(warning.message)
        if not issubclass(warning.category, NumericalWarning):
            warnings.warn_explicit(text, warning.category, warning.filename, warning.lineno)
        elif text not in notes:
            notes.append(text)

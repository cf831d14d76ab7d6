"""Collection of GPyTorch's numerical warnings (added jitter) as notes of a run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from linear_operator.utils.warnings import NumericalWarning


@contextmanager
def collect_numerical_warnings(notes: list[str]) -> Iterator[None]:
    """Append each numerical warning raised in the block to `notes` once; re-emit others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NumericalWarning)
        yield
    for warning in caught:
        text = str(warning.message)
        if not issubclass(warning.category, NumericalWarning):
            warnings.warn_explicit(text, warning.category, warning.filename, warning.lineno)
        elif text not in notes:
            notes.append(text)

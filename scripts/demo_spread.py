"""The spread of a demonstration's scores over draws of its data, for the sentence in `limits`.

    python scripts/demo_spread.py genes

Fits the demonstration to ten draws of its data (data seeds 0 to 9) and prints each score, so that
the recorded seed can be a typical one.
"""

from __future__ import annotations

import sys

import numpy as np

import scant
from scant.events import Finished
from scant.studies import STUDIES, entry

DRAWS = 10


def main(studies: list[str]) -> None:
    """Print the scores of these studies' demonstrations, or of all."""
    for study in studies or STUDIES:
        quiet = {"baselines": False} if "baselines" in entry(study).settings.names() else {}
        scores: dict[str, list[float]] = {}
        for seed in range(DRAWS):
            *_, end = scant.fit(study, data_seed=seed, **quiet)
            assert isinstance(end, Finished), "the last event of a fit says how it ended"
            for metric in end.report.metrics:
                if metric.source == "run":
                    scores.setdefault(metric.name, []).append(metric.value)
        for name, values in scores.items():
            low, median, high = np.quantile(values, [0, 0.5, 1])
            each = " ".join(f"{value:.3g}" for value in values)
            print(f"{study} {name}: {median:.3g} ({low:.3g} to {high:.3g}); {each}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

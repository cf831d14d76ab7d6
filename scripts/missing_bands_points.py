"""Points of Figure 6.18 (Almosallam 2017): predictions with one to four bands missing.

    python scripts/missing_bands_points.py FOLDER      # data/results/a17_figure_6.18.csv

The folder has `photoz_sdss/galaxies.parquet`. The points are the first 200 test rows, which are in
random order, of the run with seed 0 of `scant.studies.redshift.reproduce.missing_bands`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from scant.studies.redshift.reproduce.missing_bands import divided, tested
from scant.studies.redshift.reproduce.survey import SIZES
from scant.training.api import fit

OUT = Path(__file__).parents[1] / "data" / "results" / "a17_figure_6.18.csv"
ROWS = 200


def main(folder: str) -> None:
    parts = []
    for count, test, answers in tested(fit, divided(Path(folder), SIZES, 0), 200):
        for method, mean, variance in answers if count else ():
            values = {"x": test["z"].to_numpy(), "value": mean, "spread": np.sqrt(variance)}
            part = pd.DataFrame(values).head(ROWS).round(4)
            parts.append(
                part.assign(panel=f"{method.removesuffix(', as published')}, {count} missing")
            )
    table = pd.concat(parts)[["panel", "x", "value", "spread"]]
    table.to_csv(OUT, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])

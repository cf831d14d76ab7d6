"""The publication's experiments (Ma 2023, section 5.4): every model on the same splits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.catalog.genes import MODELS
from engine.datasets import motion, replicas_toy
from engine.datasets.expression import read_folder
from engine.events import Finished, Report
from engine.fitting import fit

HALF, REPLICA = "half of the points", "one replica of each output"
# Subject 7 stands for 8, of which two trials are at hand. Of each trial a sixth or less of the
# publication's times, so that all models can be compared.
MOTION = {
    "run, subject 9": ("subject09_centred.npz", motion.RUN, 6),
    "walk, subject 7": ("subject07.npz", motion.WALK, 4),
}
FRAMES = 16
SCORES = ("NMSE", "NLPD", "coverage of the 95% interval")
# The publication shows bars and gives no figures. These were measured on other draws of the same
# split: the authors' program for HMOGP-LV (1,000 steps of Adam) and LVMOGP, GPy and GPflow else.
THEIRS = {
    ("HMOGP-LV", "NMSE"): 0.039,
    ("HMOGP-LV", "NLPD"): -0.173,
    ("LVMOGP", "NMSE"): 0.040,
    ("LVMOGP", "NLPD"): 0.147,
    ("DHGP", "NMSE"): 0.039,
    ("DHGP", "NLPD"): -0.214,
    ("LMC", "NMSE"): 0.045,
    ("LMC", "NLPD"): -0.096,
    ("HGP", "NMSE"): 0.047,
    ("HGP", "NLPD"): 0.007,
    ("pooled GP", "NMSE"): 0.049,
}
MEASURED = "four genes, half of the points"


def reproduce(quick: bool, data: str | None) -> pd.DataFrame:
    """NMSE, NLPD and coverage of every model in every experiment, over three repeats.

    Args:
        quick: One repeat, and no motion capture: a minute or so.
        data: A folder with `gene_kalinka2010` and `mocap_cmu`, as `engine.datasets.expression` and
            `engine.datasets.motion` read them; None: simulated genes stand in, nothing for motion.

    Returns:
        Columns `experiment`, `method`, `metric`, `ours`, `spread` (deviation over repeats),
        `theirs` (measured with other programs on other draws of the split; see `THEIRS`).
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    for seed in range(1 if quick else 3):
        for experiment, table, values in _cases(seed, quick, None if data is None else Path(data)):
            for m in run(table, {**values, "seed": seed}).metrics:
                if m.name in SCORES:
                    method = MODELS["hmogp-lv"] if m.source == "run" else m.method
                    found.setdefault((experiment, method, m.name), []).append(m.value)
    return pd.DataFrame(
        [
            {
                "experiment": experiment,
                "method": method,
                "metric": metric,
                "ours": round(float(np.mean(values)), 4),
                "spread": round(float(np.std(values)), 4) if len(values) > 1 else None,
                "theirs": THEIRS.get((method, metric)) if experiment == MEASURED else None,
            }
            for (experiment, method, metric), values in found.items()
        ]
    )


def _cases(
    seed: int, quick: bool, folder: Path | None
) -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Experiment, table and settings."""
    many = {"inducing_outputs": 5, "inducing_inputs": 40}
    yield "synthetic 1", replicas_toy.synthetic(seed, replicas=3), {**many, "split": HALF}
    yield "synthetic 2", replicas_toy.synthetic(seed, replicas=4), {**many, "split": REPLICA}
    genes, name = replicas_toy.genes(seed), "six simulated genes"
    if folder is not None:
        genes, name = read_folder(folder / "gene_kalinka2010"), "four genes"
    for split in (HALF, REPLICA):
        yield f"{name}, {split}", genes, {"inducing_inputs": 40, "split": split}
    if folder is None or quick:
        return
    for name, (file, joints, trials) in MOTION.items():
        table = motion.read(
            folder / "mocap_cmu" / file, joints, frames=FRAMES, replicas=trials, seed=seed
        )
        yield name, table, {**many, "inducing_inputs": 60, "split": REPLICA}


def run(table: pd.DataFrame, values: dict[str, Any]) -> Report:
    """HMOGP-LV trained on a table as the settings say, and the other models beside it."""
    *_, last = fit("genes", table, **values)
    assert isinstance(last, Finished)
    return last.report

"""The publication's experiments (Ma 2023, section 5.4): every model on the same splits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from scant.events import Finished, Report
from scant.studies.genes import cmu_mocap, simulate
from scant.studies.genes.drosophila import read_folder
from scant.studies.genes.settings import FIXED, MODELS
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score

HALF, REPLICA = "half of the points", "one replica of each output"
# Subject 7 stands for 8, of which two trials are at hand. Of each trial a sixth or less of the
# publication's times, so that all models can be compared.
MOTION = {
    "run, subject 9": ("subject09_centred.npz", cmu_mocap.RUN, 6, "motion capture, CMU"),
    "walk, subject 7": (
        "subject07.npz",
        cmu_mocap.WALK,
        4,
        "CMU, subject 7, stand-in for subject 8",
    ),
}
FRAMES = 16
DRAWN, SPLITS = "drawn as published", "splits and starts"
SIMULATED = "simulated, stand-in for the four genes of Kalinka 2010"
KALINKA = "Kalinka 2010, the publication's"
SCORES = ("NMSE", "NLPD", "coverage of the 95% interval")


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """NMSE, NLPD and coverage of every model in every experiment, over three repeats.

    Args:
        quick: One repeat, and no motion capture.
        data: A folder with `gene_kalinka2010` and `mocap_cmu`, as `drosophila` and `cmu_mocap` read
            them; None: simulated genes stand in for the first, nothing for the second.
        fit: `scant.fit`.
    """
    for seed in range(1 if quick else 3):
        for experiment, table, values in _cases(seed, quick, data):
            case = (fit, experiment, table, {**values, "seed": seed})
            yield Run(f"{experiment.name}, seed {seed}", partial(_scores, *case))


def _scores(
    fit: Fit, experiment: Experiment, table: pd.DataFrame, values: dict[str, Any]
) -> list[Score]:
    return [
        Score(experiment, MODELS["hmogp-lv"] if m.source == "run" else m.method, m.name, m.value)
        for m in run(fit, table, values).metrics
        if m.name in SCORES
    ]


def _cases(
    seed: int, quick: bool, folder: Path | None
) -> Iterator[tuple[Experiment, pd.DataFrame, dict[str, Any]]]:
    """Experiment, table and settings."""
    many = {"n_inducing_outputs": 5, "n_inducing_inputs": 40}
    three, four = (simulate.synthetic(seed, replicas=count) for count in (3, 4))
    drawn = "draws, splits and starts"
    yield Experiment("synthetic 1", DRAWN, drawn), three, {**many, "split": HALF}
    yield Experiment("synthetic 2", DRAWN, drawn), four, {**many, "split": REPLICA}
    genes, name, about = simulate.genes(seed), "six simulated genes", (SIMULATED, drawn)
    if folder is not None:
        genes = read_folder(folder / "gene_kalinka2010")
        name, about = "four genes", (KALINKA, SPLITS)
    for split in (HALF, REPLICA):
        few = {"n_inducing_outputs": 4, "n_inducing_inputs": 40}
        yield Experiment(f"{name}, {split}", *about), genes, {**few, "split": split}
    if folder is None or quick:
        return
    for name, (file, joints, trials, source) in MOTION.items():
        table = cmu_mocap.read(
            folder / "mocap_cmu" / file, joints, frames=FRAMES, replicas=trials, seed=seed
        )
        experiment = Experiment(name, source, "frames, splits and starts")
        yield experiment, table, {**many, "n_inducing_inputs": 60, "split": REPLICA}


def run(fit: Fit, table: pd.DataFrame, values: dict[str, Any]) -> Report:
    """HMOGP-LV trained on a table as the settings say, and the other models beside it."""
    *_, last = fit("genes", table, own=False, **{**FIXED, **values})
    assert isinstance(last, Finished)
    return last.report

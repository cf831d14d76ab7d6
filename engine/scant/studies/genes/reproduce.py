"""The publication's experiments (Ma 2023, section 5.4): every model on the same splits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scant.events import Finished, Report
from scant.studies.genes import cmu_mocap, simulate
from scant.studies.genes.drosophila import read_folder
from scant.studies.genes.neural_network import neural_network_nmse
from scant.studies.genes.published import SETTINGS
from scant.studies.genes.settings import FIXED, MODELS
from scant.studies.genes.table import held_out, of
from scant.studies.published import values
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
TABLE_5_1 = {"run, subject 9": (5, 5), "walk, subject 7": (2, 6)}  # M_H and M_X
DRAWN, SPLITS = "drawn as published", "splits and starts"
SIMULATED = "simulated, stand-in for the four genes of Kalinka 2010"
KALINKA = "Kalinka 2010, the publication's"
SCORES = ("NMSE", "NLPD", "coverage of the 95% interval")
HMOGP_LV, NETWORK = MODELS["hmogp-lv"], "neural network, as published"
AS_PUBLISHED = f"{HMOGP_LV}, as published"
# In the authors' program M_X is a share of the rows of all outputs, which section 5.4.1 calls a
# number "in each output"; of genes and motion the publication does not say which it means.
EACH_OUTPUT = f"{AS_PUBLISHED}, M_X of each output"
QUICK_STEPS = 200


class Case(NamedTuple):
    """One draw of an experiment.

    Attributes:
        experiment: The experiment.
        table: Its table.
        split: Which rows are held out.
        few: Our M_H and M_X.
        published: M_H and M_X of the publication, by the name of the method's row.
    """

    experiment: Experiment
    table: pd.DataFrame
    split: str
    few: tuple[int, int]
    published: dict[str, tuple[int, int]]


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """NMSE, NLPD and coverage of every model in every experiment, over three repeats.

    HMOGP-LV is trained by L-BFGS with q(U) in closed form as the other models are, and as
    published. A neural network has NMSE alone.

    Args:
        quick: One repeat, fewer steps as published, and no motion capture.
        data: A folder with `gene_kalinka2010` and `mocap_cmu`, as `drosophila` and `cmu_mocap` read
            them; None: simulated genes stand in for the first, nothing for the second.
        fit: `scant.fit`.
    """
    steps = {"max_steps": QUICK_STEPS} if quick else {}
    for seed in range(1 if quick else 3):
        for case in _cases(seed, quick, data):
            name = case.experiment.name
            split = {"split": case.split, "seed": seed}
            ours = {**FIXED, **sizes(*case.few), **split}
            yield Run(f"{name}, seed {seed}", partial(_scores, fit, case, HMOGP_LV, ours))
            for method, numbers in case.published.items():
                literal = {**values(SETTINGS), **sizes(*numbers), **split, **steps}
                do = partial(_scores, fit, case, method, {**literal, "baselines": False})
                yield Run(f"{name}, {method}, seed {seed}", do)
            yield Run(f"{name}, {NETWORK}, seed {seed}", partial(_network, case, seed, quick))


def sizes(outputs: int, inputs: int) -> dict[str, int]:
    """Settings of M_H and M_X."""
    return {"n_inducing_outputs": outputs, "n_inducing_inputs": inputs}


def _scores(fit: Fit, case: Case, method: str, options: dict[str, Any]) -> list[Score]:
    return [
        Score(case.experiment, method if m.source == "run" else m.method, m.name, m.value)
        for m in run(fit, case.table, options).metrics
        if m.name in SCORES
    ]


def _network(case: Case, seed: int, quick: bool) -> list[Score]:
    steps = {"steps": QUICK_STEPS} if quick else {}
    value = neural_network_nmse(of(case.table), case.split, seed, **steps)
    return [Score(case.experiment, NETWORK, "NMSE", value)]


def _cases(seed: int, quick: bool, folder: Path | None) -> Iterator[Case]:
    three, four = (simulate.synthetic(seed, replicas=count) for count in (3, 4))
    drawn = "draws, splits and starts"
    for number, table, split, each in ((1, three, HALF, 3), (2, four, REPLICA, 6)):
        published = {AS_PUBLISHED: (5, each * table["output"].nunique())}
        experiment = Experiment(f"synthetic {number}", DRAWN, drawn)
        yield Case(experiment, table, split, (5, 40), published)
    genes, name, about = simulate.genes(seed), "six simulated genes", (SIMULATED, drawn)
    if folder is not None:
        genes = read_folder(folder / "gene_kalinka2010")
        name, about = "four genes", (KALINKA, SPLITS)
    outputs = genes["output"].nunique()
    train = len(genes) - int(held_out(of(genes), REPLICA, seed).sum())
    for split, published in (
        (HALF, {AS_PUBLISHED: (2, 14), EACH_OUTPUT: (2, 14 * outputs)}),
        (REPLICA, {AS_PUBLISHED: (2, train // 2)}),
    ):
        yield Case(Experiment(f"{name}, {split}", *about), genes, split, (4, 40), published)
    if folder is None or quick:
        return
    for name, (file, joints, trials, source) in MOTION.items():
        table = cmu_mocap.read(
            folder / "mocap_cmu" / file, joints, frames=FRAMES, replicas=trials, seed=seed
        )
        experiment = Experiment(name, source, "frames, splits and starts")
        few, each = TABLE_5_1[name]
        published = {
            AS_PUBLISHED: (few, each),
            EACH_OUTPUT: (few, each * table["output"].nunique()),
        }
        yield Case(experiment, table, REPLICA, (5, 60), published)


def run(fit: Fit, table: pd.DataFrame, options: dict[str, Any]) -> Report:
    """HMOGP-LV trained on a table as the settings say, and the other models beside it."""
    *_, last = fit("genes", table, own=False, **{**FIXED, **options})
    assert isinstance(last, Finished)
    return last.report

"""Label efficiency on pictures that are not confidential, beside Table 4.1 (Yousefi 2021)."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from PIL import Image

from scant.errors import BadInput
from scant.studies.clamp import simulate
from scant.studies.clamp.capacity import DEEP
from scant.studies.clamp.published import SETTINGS
from scant.studies.clamp.report import LIKE, SCORES, area, compare
from scant.studies.clamp.settings import CNN, COMPARED, FIXED, ClampSettings
from scant.studies.clamp.table import TABLE
from scant.studies.protocol import study_class
from scant.studies.published import values as as_published
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score
from scant.tables.images.kinds import JOINED, automatic
from scant.tables.read import read_frame

if TYPE_CHECKING:
    from scant.studies.clamp.study import Study

SEEDS, QUICK_SEEDS = 10, 2
HOLE, SCREW = "hole", "screw"
EACH_SEED: dict[str, Any] = {
    "repeats": 1,
    "fixed_split": False,  # held-out pictures change with the seed, too
}
SESSION = EACH_SEED | {"start": 30, "budget": 230, "patience": 0}
VARIES = "pictures held out and starts"  # between repeats
SOURCES = {
    "trenches": "invented pictures, stand-in for those of the publication",
    "screws": "photographs of a board, stand-in for those of the publication",
}
NETWORK = {"feature_extractor": JOINED, "n_components": DEEP}
GAIN = "mean gain of F1"  # area between the curves over the range of labels


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Four methods on the same labels, over seeds that change starts and pictures held out.

    Table 4.1 is for non-clamps at one picture without a clamp to four with one, with queries in the
    band alone. One experiment does the same, with a network trained on as many random patches; its
    sessions end by the validation F1, as published. The others have clamps as the class of
    interest, the current acquisition, and sessions of one length; if the extra "vision" is
    installed, those of simulated pictures are repeated with a network's features as inputs.

    Args:
        quick: Two seeds and 24 simulated pictures in place of ten seeds and 80.
        data: Folder with `clamp_standin_screws`: photographs of four places with a screw or a
            hole. None: simulated pictures alone.
        fit: Not used.
    """
    kind: Any = study_class("clamp")
    cases = list(experiments(quick, data))
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        for name, table, values in cases:
            experiment = Experiment(name, SOURCES[name.partition(",")[0]], VARIES)
            chosen = {**SESSION, **values, "seed": seed}
            yield Run(f"{name}, seed {seed}", partial(_scores, experiment, kind, table, chosen))


def _scores(
    experiment: Experiment, kind: type[Study], table: pd.DataFrame, values: dict[str, Any]
) -> list[Score]:
    return [Score(experiment, *one) for one in figures(kind, table, values)]


def experiments(
    quick: bool, folder: Path | None
) -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Names, tables and settings."""
    trenches = simulate.patches(0, 24 if quick else 80)
    less = {"start": 20, "budget": 60} if quick else {}
    published = {**as_published(SETTINGS), **EACH_SEED, "network": True}
    if quick:
        published |= {"start": 20, "budget": 74, "batch_size": 10}
    yield LIKE, trenches, published
    for others in (4, 20):
        name, values = f"trenches, 1 : {others}", {"imbalance": float(others), **less}
        yield name, trenches, values
        if automatic() == JOINED:
            yield f"{name}, {JOINED}", trenches, {**values, **NETWORK}
    if folder is not None:
        less = (
            {"start": 10, "budget": 60} if quick else {"start": 10, "budget": 130, "batch_size": 5}
        )
        yield "screws, 1 : 4", screws(folder), {"imbalance": 4.0, "positive_class": HOLE, **less}


def figures(
    kind: type[Study], table: pd.DataFrame, values: dict[str, Any]
) -> Iterator[tuple[str, str, float]]:
    """Method, metric and value of one seed."""
    labels, curves = session(kind, table, values)
    for name, curve in zip((*COMPARED, CNN), curves):
        for i, score in enumerate(SCORES):
            yield name, score, float(curve[-1, i])
    for name, curve in zip(COMPARED[1:3], curves[1:3]):
        yield COMPARED[0], f"{GAIN} over {name}", area(labels, curves[0][:, 0] - curve[:, 0])


def session(
    kind: type[Study], table: pd.DataFrame, values: dict[str, Any]
) -> tuple[list[int], np.ndarray]:
    """Numbers of labels, and F1, precision and recall of every method at each: [method, round, 3].

    Args:
        kind: The study.
        table: Patches.
        values: Settings; one session per seed.
    """
    settings = ClampSettings.parse(FIXED | values)
    assert isinstance(settings, ClampSettings)
    study = kind(settings, read_frame(table, TABLE).frame, torch.device("cpu"))
    study.start_restart(0, 0, None)
    for _ in range(study.max_steps):
        study.step()
        if study.patience:  # the session ends
            break
    _, scores, _ = compare(study.data, study.history.values)
    return [int(v) for v in study.history.values["labels"]], scores.mean(1)


def curves(kind: type[Study], table: pd.DataFrame, seeds: int, **values: Any) -> pd.DataFrame:
    """F1 by number of labels: columns `method`, `labels`, `F1`, `spread` over the seeds."""
    runs = [session(kind, table, {**SESSION, **values, "seed": seed}) for seed in range(seeds)]
    rounds = min(len(labels) for labels, _ in runs)
    f1 = np.stack([scores[:, :rounds, 0] for _, scores in runs])
    labels = np.mean([labels[:rounds] for labels, _ in runs], axis=0).round().astype(int)
    return pd.DataFrame(
        [
            {"method": name, "labels": n, "F1": f1[:, m, r].mean(), "spread": f1[:, m, r].std()}
            for m, name in enumerate(COMPARED)
            for r, n in enumerate(labels.tolist())
        ]
    )


def screws(folder: Path) -> pd.DataFrame:
    """400 places on 100 photographs of a board; holes without screws are of interest.

    Args:
        folder: Folder of `clamp_standin_screws/site_crops_48.npz`.

    Raises:
        BadInput: The file is missing.
    """
    path = folder / "clamp_standin_screws" / "site_crops_48.npz"
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in {path.parent}; name another folder.")
    data = np.load(path, allow_pickle=False)
    side, site = data["images"].shape[1], data["site"].astype(int)
    return pd.DataFrame(
        {
            "label": np.where(data["screw_present"].astype(bool), SCREW, HOLE),
            "picture": [f"photograph {n:03}" for n in data["image_number"]],
            # Side by side; between them is only board.
            "left": side * (site % 2).astype(float),
            "top": side * (site // 2).astype(float),
            "size": float(side),
            "image": [_png(image) for image in data["images"]],
        }
    )


def _png(image: np.ndarray) -> str:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()

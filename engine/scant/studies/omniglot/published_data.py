"""The data of the publication's classification experiments (Ma 2023, sections 3.3 and 4.3).

Some data are generated: Balance by a rule, S-20 as clusters of normal points, and alphabets of
random strokes in place of Ojibwe and Blackfoot. The others are not shipped with Scant: `real` reads
them from a folder, given by `SCANT_REAL_DATA` in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification

from scant.errors import BadInput
from scant.studies.omniglot import simulate
from scant.studies.omniglot.preprocessing import INK

PER_FLOOR = 200


@dataclass(frozen=True)
class Case:
    """An experiment: its rows, and the common settings of its models.

    Attributes:
        outputs: Names of the outputs.
        source: Source of the rows.
        x: Rows to classify, standardized by the kernel.
        output: Index into `outputs`.
        label: Class within the output.
        side: Side of square images, in pixels; 0: the columns are no pixels.
        n_latent: Q, one of the publication's candidates.
        folds: Number of folds of the cross-validation.
        inducing: M of RBF-ARD.
        steps: Steps of Adam at a rate falling from .05 (the publication: 4,000 at .01).
        batch: Rows of each output in a step.
        splits: Rows to train on and to test in each fold, if they come with the data.
    """

    outputs: tuple[str, ...]
    source: str
    x: Float[np.ndarray, "n v"]
    output: Int[np.ndarray, " n"]
    label: Int[np.ndarray, " n"]
    n_latent: int
    folds: int = 5
    side: int = 0
    inducing: int = 100
    steps: int = 400
    batch: int = 200
    splits: tuple[tuple[np.ndarray, np.ndarray], ...] = ()


def published(folder: Path | None) -> Iterator[tuple[str, Case]]:
    """The data of the runs with the publication's settings, those with cheap runs first.

    Args:
        folder: See `real`; also holds `bibtex/bibtex.npz`. None: only generated data.

    Raises:
        BadInput: A file is missing.
    """
    yield "two classes", two_classes()
    yield from generated()
    if folder is not None:
        yield next(alphabets(folder))
        yield from columns(folder)
        yield "Bibtex", bibtex(folder)


def generated() -> Iterator[tuple[str, Case]]:
    """The experiments that need no file."""
    yield "Balance", balance()
    yield "S-20", s20()


def drawn(seed: int = 0) -> Case:
    """Two related alphabets of random strokes, 14 characters by 20 drawers each."""
    characters = simulate.alphabets(seed, sizes={"first": (0, 14), "second": (0, 14)})
    x = (characters.x > INK).astype(np.float64)
    source = "random simulate, stand-in for Ojibwe and Blackfoot"
    return _images(tuple(characters.outputs), source, x, characters.output, characters.label)


def two_classes(seed: int = 0) -> Case:
    """2,000 inputs between -10 and 10 of two classes, f ~ N(0, B (x) K) (section 3.3.1).

    K is RBF with lengthscale .1, and the printed B has rank one: both functions are one draw u,
    times 3.35 and -3.45. The distribution of the inputs is not stated, and is uniform here.
    """
    random = np.random.default_rng(seed)
    x = random.uniform(-10.0, 10.0, 2000)
    K = np.exp(-0.5 * ((x[:, None] - x) / 0.1) ** 2) + 1e-8 * np.eye(len(x))  # jitter
    u = np.linalg.cholesky(K) @ random.standard_normal(len(x))
    label = (u < 0).astype(int)  # the first class where 3.35 u is larger
    return _single("two classes", "drawn as published", x[:, None], label, n_latent=1)


def balance() -> Case:
    """All 625 settings of a balance: it tips to where weight times distance is larger."""
    x = np.array(list(product(range(1, 6), repeat=4)), dtype=np.float64)
    label = 1 + np.sign(x[:, 0] * x[:, 1] - x[:, 2] * x[:, 3]).astype(int)
    return _single("Balance", "all 625 settings of the balance", x, label, n_latent=2)


def s20() -> Case:
    """20 classes of 100 points about corners of a cube in five dimensions, as the authors have."""
    x, label = make_classification(
        n_samples=2000, n_classes=20, n_features=5, n_redundant=0, n_informative=5,
        n_clusters_per_class=1, random_state=1,
    )  # fmt: skip
    return _single("S-20", "drawn as published", x, label, n_latent=10)


def real(folder: Path, seed: int = 0) -> Iterator[tuple[str, Case]]:
    """The experiments on measured data.

    Args:
        folder: Holds `cnae9/cnae9.npz`, `uji_indoor_loc/training.parquet` and `validation.parquet`,
            and `omniglot/ojibwe_blackfoot.npz`.

    Raises:
        BadInput: A file is missing.
    """
    yield from columns(folder, seed)
    yield from alphabets(folder)


def columns(folder: Path, seed: int = 0) -> Iterator[tuple[str, Case]]:
    """CNAE-9 and UJIIndoorLoc."""
    cnae = _arrays(folder / "cnae9" / "cnae9.npz")
    counts = csr_matrix((cnae["data"], cnae["indices"], cnae["indptr"]), shape=cnae["shape"])
    counted = np.asarray(counts.todense(), dtype=np.float64)
    yield "CNAE-9", _single("CNAE-9", "CNAE-9 (UCI)", counted, cnae["label"].astype(int) - 1, 9)
    yield "UJIIndoorLoc", _floors(folder / "uji_indoor_loc", seed)


def alphabets(folder: Path) -> Iterator[tuple[str, Case]]:
    """Ojibwe and Blackfoot in black and white, reduced as by the authors, and by averages."""
    result = _arrays(folder / "omniglot" / "ojibwe_blackfoot.npz")
    names = tuple(str(name).split("_")[0] for name in result["alphabet_names"])
    output, label = result["alphabet"].astype(int), result["character"].astype(int) - 1
    pixels = {
        "as published": result["nearest20"] > 0,
        "area averages": result["area20"] > 255 * INK,
    }
    for how, ink in pixels.items():
        x = ink.reshape(len(ink), -1).astype(np.float64)
        yield (
            f"Ojibwe and Blackfoot, {how}",
            _images(names, f"Omniglot at 20 x 20, {how}", x, output, label),
        )


def bibtex(folder: Path) -> Case:
    """7,395 publications by 1,836 words, the first of the labels of each, in three fixed splits."""
    stored = _arrays(folder / "bibtex" / "bibtex.npz")
    ones = np.ones(len(stored["indices"]))
    words = csr_matrix((ones, stored["indices"], stored["indptr"]), shape=stored["shape"])
    case = _single("Bibtex", "Bibtex, first labels", words.toarray()[:, :1836], stored["label"], 10)
    pairs = zip(stored["train_rows"].T[:3].astype(int), stored["test_rows"].T[:3].astype(int))
    return replace(case, label=case.label.astype(int), folds=3, splits=tuple(pairs))


def _single(name: str, source: str, x: np.ndarray, label: np.ndarray, n_latent: int) -> Case:
    return Case((name,), source, x, np.zeros(len(x), dtype=int), label, n_latent)


def _images(
    names: tuple[str, ...], source: str, x: np.ndarray, output: np.ndarray, label: np.ndarray
) -> Case:
    side = round(x.shape[1] ** 0.5)
    return Case(names, source, x, output, label, 10, side=side, inducing=40, steps=300, batch=50)


def _floors(folder: Path, seed: int) -> Case:
    """Signals received at 200 places on each floor of three buildings."""
    for name in ("training.parquet", "validation.parquet"):
        if not (folder / name).is_file():
            raise BadInput(f"There is no file {name} in {folder}; put it there.")
    parts = [pd.read_parquet(folder / f"{name}.parquet") for name in ("training", "validation")]
    table = pd.concat(parts, ignore_index=True)
    table = table.groupby(["buildingid", "floor"]).sample(PER_FLOOR, random_state=seed)
    x = table.filter(regex=r"^WAP\d+$").to_numpy(np.float64, copy=True)
    output, label = table["buildingid"].to_numpy(int), table["floor"].to_numpy(int)
    for d in range(3):  # standardized building by building, as published
        signals = x[output == d]
        spread = signals.std(0)
        x[output == d] = (signals - signals.mean(0)) / np.where(spread > 0, spread, 1.0)
    names = ("Building I", "Building II", "Building III")
    return Case(names, "UJIIndoorLoc (UCI)", x, output, label, n_latent=8, folds=3)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in {path.parent}; put it there.")
    with np.load(path) as file:
        return dict(file)

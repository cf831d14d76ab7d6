"""Omniglot: 1,623 characters of 50 alphabets, each drawn once by 20 people (Lake et al. 2015).

Two ZIPs of the public repository (MIT license) hold `part/alphabet/character01/*.png`: 105 x 105
pixels of one bit, paper 1. Here images have 20 x 20 pixels by box averages, ink 1, as whole 255ths;
the publication's two alphabets also by the nearest pixel, as in Ma 2023, which breaks strokes and
leaves 15 images of all alphabets blank. Sizes and SHA-256 of both files are from TensorFlow
Datasets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from PIL import Image

from scant.errors import BadInput
from scant.tables.images.archives import read_images

SIZE = 20
DRAWERS = 20
_BASE = (
    "https://raw.githubusercontent.com/brendenlake/omniglot/"
    "057f034baf2ecb8530bc5710e5a23584d2a519cc/python/"
)
# Address, SHA-256 and bytes of each part; then the images in both.
BACKGROUND = (
    f"{_BASE}images_background.zip",
    "ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640",
    9_464_212,
)
EVALUATION = (
    f"{_BASE}images_evaluation.zip",
    "1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee",
    6_462_886,
)
IMAGES = (19_280, 13_180)
PUBLISHED = (
    "Ojibwe_(Canadian_Aboriginal_Syllabics)",
    "Blackfoot_(Canadian_Aboriginal_Syllabics)",
)


def read_all(background: bytes, evaluation: bytes, name: str) -> pd.DataFrame:
    """Read all alphabets from the bytes of both files.

    Returns:
        32,460 rows in order of alphabet, character and drawer: `output`, `label` ("character01" …),
        `p0 … p399` in float32.

    Raises:
        BadInput: A file is no such archive, or lacks images.
    """
    files = (background, evaluation)
    parts = [_part(data, name, count) for data, count in zip(files, IMAGES)]
    return _checked(pd.concat(parts, ignore_index=True), name)


def read_two(
    background: bytes, name: str, resampling: Image.Resampling = Image.Resampling.BOX
) -> pd.DataFrame:
    """Read the publication's two alphabets, Ojibwe and Blackfoot, from the first file."""
    table = _part(background, name, IMAGES[0], resampling)
    absent = [alphabet for alphabet in PUBLISHED if alphabet not in set(table["output"])]
    if absent:
        raise BadInput(f"The file of {name!r} lacks the alphabet {absent[0]}; try later.")
    return _checked(table[table["output"].isin(PUBLISHED)].reset_index(drop=True), name)


def of_images(
    images: Float[np.ndarray, "n h w"], outputs: Sequence[str], labels: Sequence[str]
) -> pd.DataFrame:
    """Table of given images, in the format of the downloads.

    Args:
        images: Ink in [0, 1].
        outputs: Alphabet of each.
        labels: Character of each.
    """
    pixels = images.reshape(len(images), -1).astype(np.float32)
    names = pd.DataFrame({"output": list(outputs), "label": list(labels)}, dtype=object)
    columns = [f"p{i}" for i in range(pixels.shape[1])]
    return pd.concat([names, pd.DataFrame(pixels, columns=columns)], axis=1)


def _part(
    data: bytes, name: str, count: int, resampling: Image.Resampling = Image.Resampling.BOX
) -> pd.DataFrame:
    """Read the images of one file, with paper as 0."""
    file = f"the file of {name!r}"
    table = read_images(data, size=(SIZE, SIZE), resampling=resampling, name=file)
    if len(table) != count:
        raise BadInput(
            f"The file of {name!r} holds {len(table):,} images where there should be {count:,}; "
            "fetch it again."
        )
    paper = table.drop(columns=["output", "label"]).to_numpy(np.float64).reshape(-1, SIZE, SIZE)
    return of_images(1.0 - paper, table["output"].tolist(), table["label"].tolist())


def _checked(table: pd.DataFrame, name: str) -> pd.DataFrame:
    counts = table.groupby(["output", "label"], sort=False).size()
    wrong = counts[counts != DRAWERS]
    if len(wrong):
        alphabet, character = wrong.index[0]
        raise BadInput(
            f"The file of {name!r} has {int(wrong.iloc[0])} images of {character} of {alphabet} "
            f"where there should be {DRAWERS}; fetch it again."
        )
    return table

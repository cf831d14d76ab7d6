"""The studies that suit a file, by its content alone."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.data_sources.ranking import ranked
from scant.errors import BadInput

N = 120


def csv(**columns: object) -> bytes:
    return pd.DataFrame(columns).to_csv(index=False).encode()


def images(*folders: str) -> bytes:
    packed, picture = io.BytesIO(), io.BytesIO()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(picture, "PNG")
    with zipfile.ZipFile(packed, "w") as archive:
        for folder in folders:
            archive.writestr(f"{folder}/a.png", picture.getvalue())
    return packed.getvalue()


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_number_and_a_class_go_to_different_pages(draw: np.random.Generator) -> None:
    values = draw.normal(size=(3, N))
    number = ranked(csv(rain=values[0], ph=values[1], yield_pct=values[2]), "farm.csv")
    assert [(s.study, s.target) for s in number] == [("redshift", "yield_pct")]
    kind = np.where(values[2] > 0, "finch", "wren")
    of_class = ranked(csv(wing=values[0], beak=values[1], species=kind), "birds.csv")
    assert [(s.study, s.target) for s in of_class] == [("mitosis", "species")]


def test_each_study_is_named_once_and_the_form_of_a_table_goes_first(
    draw: np.random.Generator,
) -> None:
    x = np.tile(np.arange(10.0), 12)
    table = csv(
        output=np.repeat(["a", "b"], 60), replica=np.tile(np.repeat(["r", "s"], 30), 2), x=x,
        y=draw.normal(size=N),
    )  # fmt: skip
    found = [suit.study for suit in ranked(table, "genes.csv")]
    assert found[0] == "genes"
    assert len(set(found)) == len(found)


def test_a_zip_of_images_goes_by_the_number_of_its_folders() -> None:
    few = ranked(images("cat", "dog"), "pets.zip")
    many = ranked(images(*(f"letter{i}" for i in range(20))), "letters.zip")
    assert [s.study for s in (*few, *many)] == ["mitosis", "omniglot"]


def test_a_table_without_anything_to_learn_has_no_page() -> None:
    assert ranked(csv(row=np.arange(N)), "rows.csv") == []


def test_what_is_no_table_is_refused_with_a_sentence() -> None:
    with pytest.raises(BadInput, match=r"broken\.csv holds binary data, not text"):
        ranked(b"\x00\x01\x02nothing", "broken.csv")

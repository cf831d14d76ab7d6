"""A ZIP of images as a table: ink is 1, classes are checked, what is wrong is a sentence."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from scant.errors import BadInput
from scant.studies.omniglot.table import TABLE as CHARACTERS
from scant.tables.images.image_table import is_archive, read_image_table
from scant.tables.schema import Column, TableSchema

TABLE = TableSchema(
    columns=(Column("output", "label"), Column("label", "label", target=True, minimum_levels=2)),
    features=True,
    images=True,
    minimum_rows=2,
)


def archive(paper: int, ink: int, labels: tuple[str, ...] = ("alpha", "beta")) -> bytes:
    """Two images of each character; each has one row of ink."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for row, label in enumerate(labels):
            for drawer in range(2):
                pixels = np.full((8, 8), paper, np.uint8)
                pixels[row] = ink
                file = io.BytesIO()
                Image.fromarray(pixels).save(file, "PNG")
                packed.writestr(f"Greek/{label}/{drawer}.png", file.getvalue())
    return out.getvalue()


@pytest.mark.parametrize(("paper", "ink"), [(255, 0), (0, 255)])
def test_ink_is_one_whichever_way_the_images_came(paper: int, ink: int) -> None:
    table = read_image_table(archive(paper, ink), TABLE, size=4, name="up.zip")
    assert table.features == tuple(f"p{i}" for i in range(16))
    assert table.frame["label"].tolist() == ["alpha"] * 2 + ["beta"] * 2
    pixels = table.frame[list(table.features)].to_numpy().reshape(4, 4, 4)
    np.testing.assert_allclose(pixels[0, 0], 0.5, atol=0.01)  # one of two rows, of 256 greys
    np.testing.assert_allclose(pixels[:, 1:], 0)  # paper, of which constant columns are kept
    assert any("dark pixels were read as ink" in note for note in table.notes) == (ink == 0)
    assert any("4 x 4 pixels" in note for note in table.notes)


def test_a_size_that_the_model_was_not_trained_on_is_refused() -> None:
    features = [f"p{i}" for i in range(25)]
    with pytest.raises(BadInput, match="lacks the column 'p16'"):
        read_image_table(archive(0, 255), TABLE, size=4, purpose="predict", features=features)


def test_what_is_taken_for_an_archive() -> None:
    content = archive(0, 255)
    assert is_archive("mine.ZIP", b"anything")
    assert is_archive("mine", content)
    assert not is_archive("book.xlsx", content)
    assert not is_archive("table.csv", b"output,label,p0\n")


def test_class_folders_need_no_folder_around() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive(255, 0))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name.removeprefix("Greek/"), old.read(name))
    around = read_image_table(archive(255, 0), CHARACTERS, size=8)
    alone = read_image_table(out.getvalue(), CHARACTERS, size=8)
    assert set(around.frame["output"]) == {"Greek"}
    assert set(alone.frame["output"]) == {"all"}
    assert alone.frame["label"].tolist() == around.frame["label"].tolist()

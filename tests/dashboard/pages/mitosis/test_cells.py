"""The mitosis page's new cells: what is drawn, made anew and kept."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.studies.mitosis.table import LabeledImages
from scant.tables.images.archives import read_images
from scant_dashboard.pages.mitosis.generate import HELP, Generate
from tests.dashboard.fakes import Asker

METADATA: dict[str, Any] = {"classes": ["mitosis", "a/b"], "rare": "mitosis", "size": [2, 3]}
DRAWN = np.linspace(0, 1, 12).reshape(2, 2, 3)


class Frame(Asker):
    def __init__(self) -> None:
        super().__init__()
        self.answered: dict[str, Callable[[Any], None]] = {}

    def take(self, question: str, then: Callable[[Any], None]) -> None:
        self.answered[question] = then


def opened(frame: Frame, **metadata: Any) -> Generate:
    view = Generate(frame)  # type: ignore[arg-type]
    view.open(SimpleNamespace(metadata=METADATA | metadata, recorded=False))  # type: ignore[arg-type]
    return view


def test_cells_are_drawn_by_class_number_and_seed() -> None:
    frame = Frame()
    view = opened(frame)
    same = {"label": "mitosis", "seed": 0}
    assert frame.asked == [("generate", {"count": 16, **same}), ("redraw", {"count": 8, **same})]
    assert view.alt == HELP
    frame.answered["generate"]({"generated": DRAWN})
    assert view.alt == "2 new rows of the class mitosis, generated with seed 0."
    real = {"rows": np.array([4]), "real": DRAWN[:1], "redrawn": DRAWN[:1] + 0.1}
    frame.answered["redraw"](real)
    assert "error is 0.10 of the gray scale" in view.alt
    assert len(view.redrawn.frames.data["left"]) == 2  # the cell, and it anew
    view._next()
    assert frame.asked[-1][1]["seed"] == 1
    view.of.value = "a/b"
    assert frame.asked[-1][1] == {"label": "a/b", "seed": 1, "count": 8}
    view.clear(None)  # type: ignore[arg-type]
    assert all(file.disabled for file in view.files)
    assert view.alt == HELP


def test_a_crowd_draws_nothing_unasked() -> None:
    frame = Frame()
    frame.owns_run = False
    view = opened(frame)
    assert frame.asked == []
    view._next()  # the first press draws with the seed that stands there
    assert frame.asked[0][1]["seed"] == 0


def test_new_cells_are_kept_as_images_and_rows_that_can_be_brought_back() -> None:
    frame = Frame()
    view = opened(frame)
    view.of.value = "a/b"  # no folder of another
    frame.answered["generate"]({"generated": DRAWN})
    kept = view.zip()
    assert kept == view.zip()
    with zipfile.ZipFile(io.BytesIO(kept)) as archive:
        assert archive.namelist() == ["a_b/new_0_01.png", "a_b/new_0_02.png"]
        gray = np.asarray(Image.open(io.BytesIO(archive.read(archive.namelist()[1]))))
    assert np.abs(gray / 255 - DRAWN[1]).max() <= 0.5 / 255 + 1e-9
    back = read_images(kept, levels=("label",), size=(3, 2), name="new_rows.zip")
    assert set(back["label"]) == {"a_b"}
    table = pd.read_csv(io.BytesIO(view.csv()))
    cells = LabeledImages.of(table)
    assert cells.pixels
    assert cells.classes == ["a/b"]
    np.testing.assert_allclose(cells.x, DRAWN.reshape(2, 6), atol=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("order", [("generate", "redraw"), ("redraw", "generate")])
def test_without_images_features_are_listed_and_kept(order: tuple[str, str]) -> None:
    frame = Frame()
    view = opened(frame, size=[], features=["radius", "area"])
    real = np.array([[2.0, 21.0]])
    answers = {
        "generate": {"generated": np.array([[1.0, 20.0], [3.0, 20.0]])},
        "redraw": {"rows": np.array([4]), "real": real, "redrawn": real - 0.5},
    }
    for question in order:
        assert not view.numbers.visible
        frame.answered[question](answers[question])
    assert not view.container.visible
    assert not view.files[0].visible
    assert "2 <span class='spread'>± 1<" in view.numbers.object
    assert "0.5" in view.numbers.object
    assert list(pd.read_csv(io.BytesIO(view.csv()))) == ["label", "radius", "area"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_class_of_which_nothing_was_held_out_has_no_reconstructions() -> None:
    frame = Frame()
    view = opened(frame)
    frame.answered["redraw"]({"rows": np.array([], int), "real": DRAWN[:0], "redrawn": DRAWN[:0]})
    assert view.alt == HELP

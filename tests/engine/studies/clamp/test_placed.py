"""Patches that are placed in a picture: their numbers, images, and what is learned from them."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.errors import BadInput
from scant.studies.clamp.placed import CENTER_TOLERANCE, POSITIONS, PlacedPatches, image_of
from scant.studies.clamp.study import Study
from scant.tables.images.cutting import grid
from scant.tables.images.kinds import HANDMADE
from scant.tables.images.pixels import pixels
from tests.engine.studies.clamp.pools import CPU, settings
from tests.engine.studies.studying import run

SIDE, STEP, WIDE, HIGH = 64, 32, 160, 128  # of patches, and of the pictures that they cover
CORNERS = [(x, y) for y in range(0, HIGH - SIDE + 1, STEP) for x in range(0, WIDE - SIDE + 1, STEP)]
EACH = len(CORNERS)


def png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()


def photographs(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (count, HIGH // 8, WIDE // 8, 3)).astype(np.uint8)
    return [np.asarray(Image.fromarray(one).resize((WIDE, HIGH))) for one in coarse]


def cut(photograph: np.ndarray, x: int, y: int) -> np.ndarray:
    return photograph[y : y + SIDE, x : x + SIDE]


def table(count: int) -> pd.DataFrame:
    """Patches of pictures that overlap by half; none is labeled."""
    rows = [
        {"label": None, "picture": f"p{k}", "left": x, "top": y, "size": SIDE,
         "image": base64.b64encode(png(cut(one, x, y))).decode()}
        for k, one in enumerate(photographs(count))
        for x, y in CORNERS
    ]  # fmt: skip
    return pd.DataFrame(rows)


def placed(place: np.ndarray, offered: bool = True) -> PlacedPatches:
    return PlacedPatches(np.zeros(len(place), dtype=np.int64), place, offered)


def of_one_picture() -> np.ndarray:
    return np.array([(x, y, SIDE, SIDE) for x, y in CORNERS])


@pytest.mark.parametrize("size", [(1280, 720), (720, 1280), (4032, 3024), (900, 299), (310, 300)])
def test_every_place_has_one_number_from_which_it_is_read(size: tuple[int, int]) -> None:
    own = placed(grid(size))
    n, positions = len(own.boxes), own.positions(0)
    assert positions is not None
    numbers = {n + iy * POSITIONS + ix
               for ix in {0, int(positions.last[0]) // 2, int(positions.last[0])}
               for iy in {0, int(positions.last[1]) // 3, int(positions.last[1])}}  # fmt: skip
    for number in numbers:
        box = own.box(number)
        assert number in own
        assert (box[:2] >= 0).all()
        assert (box[:2] + box[2:] <= size).all()
        back = own.patch_at(0, box[:2] + box[2:] / 2)
        assert back is not None
        assert np.abs(own.box(back)[:2] - box[:2]).max() <= CENTER_TOLERANCE * box[2:].max()
        assert back == number or back < n
    assert (positions.step < CENTER_TOLERANCE * positions.size).all()
    beyond = n + int(positions.last[0]) + 1
    assert beyond not in own or positions.last[0] == POSITIONS - 1
    assert own.last + 1 not in own
    with pytest.raises(BadInput, match="no patch -1 in this pool"):
        own.box(-1)


def test_a_click_selects_a_patch_by_its_center_or_places_one_within_the_border() -> None:
    own = placed(of_one_picture())
    n = len(own.boxes)
    assert own.patch_around(0, np.array([CENTER_TOLERANCE, 0.0])) == 0
    new = own.patch_around(0, np.array([0.25, 0.3]))
    assert new >= n
    assert own.box(new).tolist() == [16, 19, SIDE, SIDE]
    assert own.patch_around(new, np.array([0.05, -0.05])) == new
    assert own.patch_around(new, np.array([0.25, 0.2])) == CORNERS.index((32, 32))
    assert own.patch_around(0, np.array([-0.5, 0.25])) == own.patch_at(0, np.array([-99.0, 48.0]))
    edge = own.patch_at(0, np.array([1e6, 48.0]))
    assert edge is not None
    assert own.box(edge).tolist() == [WIDE - SIDE, 16, SIDE, SIDE]


@pytest.mark.parametrize("why", ["not offered", "one patch", "no place", "a gap", "sizes", "holes"])
def test_where_no_image_is_known_of_every_place_none_is_offered(why: str) -> None:
    place = of_one_picture()
    if why == "one patch":
        place = place[:1]
    elif why == "no place":
        place[:] = 0
    elif why == "a gap":
        place = place[place[:, 0] % 96 == 0]
    elif why == "sizes":
        place[3, 2:] += 5
    elif why == "holes":
        place = np.delete(place, 5, axis=0)
    own = placed(place, why != "not offered")
    assert own.positions(0) is None
    assert own.patch_around(0, np.array([0.3, 0.3])) == 0
    assert len(place) not in own


def test_its_image_is_put_together_from_the_patches_around_it() -> None:
    (one,) = photographs(1)
    files, place = [png(cut(one, x, y)) for x, y in CORNERS], of_one_picture()
    for x, y in ((0, 0), (32, 64), (7, 13), (WIDE - SIDE, 29)):
        made = image_of(files, place, np.array([x, y, SIDE, SIDE]))
        np.testing.assert_array_equal(pixels(made), cut(one, x, y))
    halved = [png(pixels(file, SIDE // 2)) for file in files]  # patches of fewer pixels
    made = pixels(image_of(halved, place, np.array([8, 12, SIDE, SIDE])))
    expected = pixels(png(cut(one, 8, 12)), SIDE // 2)
    np.testing.assert_array_equal(made, expected)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Study:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCANT_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        chosen = {"feature_extractor": HANDMADE, "n_components": 4, "check_share": 0.0}
        study = Study(settings(expert="you", **chosen), table(2), CPU)
        run(study)
    return study


@pytest.fixture
def study(prepared: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A worker that has the model of the prepared run, and no images."""
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    return Study.restore(prepared.settings, *prepared.fitted(), CPU)


def image(study: Study, number: int) -> bytes:
    own = study.data.placed
    x, y = own.box(number)[:2]
    return png(cut(photographs(2)[own.picture_of(number)], x, y))


def ask(study: Study, labels: list[list[int]], **query: Any) -> dict[str, np.ndarray]:
    """As the page asks: images of placed patches are sent where they are wanted."""
    answer = study.explore("ask", labels=labels, **query)
    if len(answer["missing_images"]):
        images = {int(number): image(study, int(number)) for number in answer["missing_images"]}
        answer = study.explore("ask", labels=labels, images=images, **query)
    assert len(answer["missing_images"]) == 0
    return answer


@pytest.mark.slow
def test_a_placed_patch_teaches_as_much_as_the_row_of_its_place(
    study: Study, prepared: Study
) -> None:
    n, second = len(study.data.x), EACH  # the first row of the second picture
    same = n + POSITIONS**2  # at its left upper corner
    others = [[1, 0], [5, 1], [EACH + 4, 0]]
    by_row = ask(study, [*others, [second, 1]])
    by_number = ask(study, [*others, [same, 1]])
    np.testing.assert_allclose(study.data.placed_x[same], study.data.x[second], atol=1e-5)
    np.testing.assert_allclose(by_number["p"], by_row["p"], atol=1e-3)
    assert by_number["evidence"] == pytest.approx(by_row["evidence"], abs=1e-4)
    assert len(by_number["p"]) == len(by_number["predicted"]) == n
    assert second in study.data.rows.askable
    assert by_number["queue"].max() < n


@pytest.mark.slow
def test_until_its_image_is_sent_the_session_stays_as_it_is(study: Study) -> None:
    n = len(study.data.x)
    new = study.data.placed.patch_at(1, np.array([70.0, 50.0]))
    assert new is not None
    assert new >= n
    before = ask(study, [[1, 0], [5, 1]])
    waiting = study.explore("ask", labels=[[1, 0], [5, 1], [new, 1]])
    assert waiting["missing_images"].tolist() == [new]
    np.testing.assert_array_equal(waiting["p"], before["p"])
    model = study.explore("model", labels=[[1, 0], [5, 1], [new, 1]])
    assert model["missing_images"].tolist() == [new]
    assert not len(model["file"])
    after = ask(study, [[1, 0], [5, 1], [new, 1]])
    assert np.abs(after["p"] - before["p"]).max() > 0.01
    assert study.active.rows == [1, 5, new]

    told = study.explore("picture", row=EACH)
    assert told["rows"].tolist() == [*range(EACH, 2 * EACH), new]
    assert told["boxes"][-1].tolist() == [38, 18, 38 + SIDE, 18 + SIDE]
    assert len(told["p"]) == len(told["truth"]) == EACH + 1
    assert told["truth"][-1] == -1
    assert study.explore("picture", row=new)["rows"].tolist() == told["rows"].tolist()
    assert study.explore("picture", row=0)["rows"].tolist() == list(range(EACH))
    shown = study.explore("patch", row=new)["image"]
    np.testing.assert_array_equal(shown, told["image"][18 : 18 + SIDE, 38 : 38 + SIDE])
    both = study.explore("patches", rows=[EACH, new])
    assert both["box"][1] == pytest.approx([38 / WIDE, 18 / HIGH, SIDE / WIDE, SIDE / HIGH])
    for wrong in (new + 10 * POSITIONS**2, n + POSITIONS - 1):
        with pytest.raises(BadInput, match=r"no patch|whole number"):
            study.explore("ask", labels=[[wrong, 1]])

    undone = ask(study, [[1, 0], [5, 1]])
    np.testing.assert_allclose(undone["p"], before["p"], atol=0.02)


@pytest.mark.slow
def test_a_restored_worker_answers_alike_and_keeps_placed_patches(
    study: Study, prepared: Study
) -> None:
    new = study.data.placed.patch_at(0, np.array([55.0, 77.0]))
    assert new is not None
    labels = [[1, 0], [5, 1], [new, 1], [EACH + 4, 0]]
    cold, warm = ask(study, labels), ask(prepared, labels)
    for name in cold:
        np.testing.assert_array_equal(cold[name], warm[name], err_msg=name)
    again = Study.restore(study.settings, *study.fitted(), CPU)
    assert again.active.rows == [1, 5, new, EACH + 4]
    assert not len(again.explore("ask", labels=labels)["missing_images"])
    np.testing.assert_allclose(again.active.p, study.active.p, atol=1e-9)


@pytest.mark.slow
def test_a_run_stored_without_placed_patches_goes_on_with_its_rows(study: Study) -> None:
    tensors, meta = study.fitted()
    metadata = {name: value for name, value in meta["words"].items() if name != "placed"}
    old = Study.restore(study.settings, tensors, {"words": metadata}, CPU)
    answer = old.explore("ask", labels=[[1, 0], [5, 1]])
    assert len(answer["p"]) == len(old.data.x)
    with pytest.raises(BadInput, match="whole number from 0 to 23"):
        old.explore("ask", labels=[[24, 1]])

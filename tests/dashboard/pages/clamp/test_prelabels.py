"""Labels out to a file of each format and in again as pre-labels."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from scant.errors import BadInput
from scant.store import Store
from scant.store.label_agreement import standing
from scant.store.records import IMPORTED, UNSURE, Label
from scant.studies.clamp.labels_out import Places, annotations_of
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.formats import FORMATS, Format, read, write
from scant_dashboard.pages.clamp.prelabels import MAX_LABELS, prelabels

CLASSES = ["sound", "crack", "rust"]
PICTURES, EACH, SIDE = 50, 20, 60


def places() -> Places:
    """1,000 patches, 20 of a photograph, in a grid."""
    row = np.arange(PICTURES * EACH)
    left, top = SIDE * (row % 5), SIDE * (row % EACH // 5)
    size = np.full(len(row), SIDE)
    whole = np.full(len(row), 5 * SIDE), np.full(len(row), 4 * SIDE)
    names = [f"trench {k}/photo {k}.jpg" for k in range(PICTURES)]
    return Places(names, row // EACH, np.stack([left, top, size, size, *whole], axis=1))


def given() -> list[Label]:
    """A label of each, by three people; some are unsure."""
    rng = np.random.default_rng(0)
    made = []
    for row in range(PICTURES * EACH):
        unsure = bool(rng.random() < 0.05)
        word = UNSURE if unsure else CLASSES[int(rng.integers(3))]
        who = ["ada", "bo", "cy"][row % 3]
        made.append(Label(row, word, who, 1.7e9 + row / 8, who, "", unsure))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_thousand_labels_make_the_round_unchanged(form: Format, store: Store) -> None:
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    labels = given()
    sent = [v for v in labels if not v.unsure] if form.carries else labels
    content = write(form.name, annotations_of(places(), sent), lambda _: file.getvalue())
    found = prelabels(read(content, form.file), places(), CLASSES, [], "me", 5.0)
    assert (found.unmatched, found.unlabeled, sum(found.others.values())) == (0, 0, 0)
    store.add_labels("other", found.labels)
    stand = standing(store.labels("other"))
    assert {r: (v.label, v.unsure) for r, v in stand.items()} == {
        v.item: (v.label, v.unsure) for v in sent
    }
    if not form.carries:  # nothing is lost
        assert {r: (v.labeler, v.created) for r, v in stand.items()} == {
            v.item: (v.labeler, v.created) for v in sent
        }
    assert {v.role for v in stand.values()} == {IMPORTED}
    again = prelabels(read(content, form.file), places(), CLASSES, list(stand.values()), "me", 5.0)
    assert (again.labels, again.duplicates) == ([], len(sent))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_labels_of_rows_and_of_placed_patches_come_back_to_the_same(form: Format) -> None:
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    pool = replace(places(), offered=True)
    rng = np.random.default_rng(0)
    items = list(range(2 * EACH))
    for x, y in rng.uniform(0, 5 * SIDE, (60, 2)):
        picture = int(rng.integers(2))
        item = pool.placed.patch_at(picture, np.array([x, y]))
        assert item is not None
        items += [item] if item not in items else []
    assert sum(item >= PICTURES * EACH for item in items) > 40
    labels = [Label(item, CLASSES[item % 3], "ada", 1.7e9) for item in items]
    content = write(form.name, annotations_of(pool, labels), lambda _: file.getvalue())
    found = prelabels(read(content, form.file), pool, CLASSES, [], "me", 5.0)
    assert found.unmatched == 0
    assert {v.item: v.label for v in found.labels} == {v.item: v.label for v in labels}


def test_a_box_of_another_size_is_of_a_row_and_never_of_a_placed_patch() -> None:
    pool = replace(places(), offered=True)
    n = PICTURES * EACH

    def found(*box: float) -> list[int]:
        one = Annotation("photo 0.jpg", "crack", box)  # type: ignore[arg-type]
        return [v.item for v in prelabels([one], pool, CLASSES, [], "me", 5.0).labels]

    assert found(20, 10, 60, 60)[0] >= n
    assert found(1, 1, 60, 60) == [0]
    assert found(10, 0, 60, 50) == [0]
    assert found(30, 30, 50, 50) == []  # of no row by half
    assert found(-50, 0, 60, 60) == []


def test_a_file_that_says_otherwise_now_replaces_its_labels() -> None:
    box = (0.0, 0.0, 60.0, 60.0)
    first = Annotation("photo 0.jpg", "crack", box)
    (kept,) = prelabels([first], places(), CLASSES, [], "me", 5.0).labels
    assert (kept.labeler, kept.created) == (IMPORTED, 5.0)
    other = Annotation("photo 0.jpg", "rust", box)
    (new,) = prelabels([other], places(), CLASSES, [kept], "me", 6.0).labels
    assert standing([kept, new])[0].label == "rust"


def test_too_many_labels_are_refused() -> None:
    many = [Annotation("photo 0.jpg", "crack")] * (MAX_LABELS + 1)
    with pytest.raises(BadInput, match="split it"):
        prelabels(many, places(), CLASSES, [], "me", 5.0)

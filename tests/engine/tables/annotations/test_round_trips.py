"""Annotations written and read again: unchanged, as far as each format can carry them."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scant.errors import BadInput
from scant.tables.annotations.annotation import Annotation, rounded
from scant.tables.annotations.entries import picture_name, text
from scant.tables.annotations.formats import FORMATS, read, write

PNG = b"\x89PNG\r\n\x1a\n"  # enough of a picture for what never looks into it
NAMES = [one.name for one in FORMATS]


def carried(name: str, annotations: Sequence[Annotation]) -> list[Annotation]:
    """What a format says that it keeps."""
    if name == "YOLO":
        bare = [replace(a, labeler="", created=None, unsure=False) for a in annotations if a.label]
        sizes = {a.picture: a.size for a in annotations if a.size}
        every = (0.0, 0.0)
        return [
            replace(a, size=sizes.get(a.picture),
                    box=None if a.box and a.size == a.box[2:] and a.box[:2] == every else a.box)
            for a in bare
        ]  # fmt: skip
    if name == "ImageFolder":
        bare = [replace(a, labeler="", created=None, unsure=False, size=None) for a in annotations]
        return list(dict.fromkeys(bare))  # a picture lies in a folder once
    return list(annotations)


def assert_same(name: str, annotations: Sequence[Annotation]) -> None:
    notes: list[str] = []
    again = read(write(name, annotations, lambda _: PNG), "labels", notes)
    assert Counter(again) == Counter(carried(name, annotations))
    assert notes == []


def thousand() -> list[Annotation]:
    """Labels of 50 photographs by four people, some of whole pictures, some in doubt."""
    rng, made = random.Random(0), []
    for i in range(1000):
        box = rounded((rng.uniform(0, 3000), rng.uniform(0, 2000), rng.uniform(1, 1000), 299.0))
        made.append(
            Annotation(
                f"site {i % 50}/photo {i % 50:03}.jpg",
                rng.choice(["clamp", "no clamp", "=HYPERLINK(1)", 'Ü, ö; "quoted"', "-", "'=x"]),
                None if i % 10 == 0 else box,
                (4032, 3024),
                rng.choice(["Ada", "b@example.org", "7", ""]),
                round(1.7e9 + rng.random() * 1e8, 6),
                rng.random() < 0.1,
            )
        )
    return made


@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_labels_come_back_unchanged(name: str) -> None:
    assert_same(name, thousand())


def plain(longest: int) -> st.SearchStrategy[str]:
    """Text as it is kept: on one line, without signs that cannot be seen."""
    return (
        st.text(max_size=longest)
        .map(lambda word: text(word, "")[:longest].strip())
        .filter(lambda word: text(word, "") == word)
    )


@st.composite
def annotations(draw: st.DrawFn) -> Annotation:
    width, height = draw(st.integers(1, 20_000)), draw(st.integers(1, 20_000))
    box = None
    if draw(st.booleans()):
        left, top = draw(st.integers(0, width * 10 - 1)), draw(st.integers(0, height * 10 - 1))
        wide = draw(st.integers(1, width * 10 - left))
        high = draw(st.integers(1, height * 10 - top))
        box = rounded((left / 10, top / 10, wide / 10, high / 10))
    name = draw(plain(40).map(lambda word: f"x{word}.png").filter(lambda word: "://" not in word))
    return Annotation(
        picture_name(name, ""),
        draw(plain(30)),
        box,
        (width, height),
        draw(plain(20)),
        draw(st.none() | st.integers(0, 9 * 10**15).map(lambda micro: micro / 1e6)),
        draw(st.booleans()),
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@pytest.mark.parametrize("name", ["CSV", "Label Studio", "COCO"])
@given(made=st.lists(annotations(), min_size=1, max_size=6))
def test_anything_comes_back_unchanged(name: str, made: list[Annotation]) -> None:
    assert_same(name, made)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@pytest.mark.parametrize("name", ["YOLO", "ImageFolder"])
@given(made=st.lists(annotations(), min_size=1, max_size=6, unique_by=lambda a: a.picture))
def test_anything_comes_back_as_far_as_archives_carry_it(name: str, made: list[Annotation]) -> None:
    if not carried(name, made):
        with pytest.raises(BadInput, match="holds no labels"):
            read(write(name, made, lambda _: PNG), "labels")
    else:
        assert_same(name, made)


@pytest.mark.parametrize("name", ["CSV", "COCO"])
def test_what_is_not_known_stays_unknown(name: str) -> None:
    assert_same(name, [Annotation("a.png", "x"), Annotation("a.png", "", (1.0, 2.0, 3.0, 4.0))])


@pytest.mark.parametrize("name", ["Label Studio", "YOLO"])
def test_boxes_in_shares_need_the_size_of_the_picture(name: str) -> None:
    with pytest.raises(BadInput, match=r"a\.png: .* its size is not known; choose CSV or COCO"):
        write(name, [Annotation("a.png", "x", (1.0, 2.0, 3.0, 4.0))])


def test_formats_say_what_they_are() -> None:
    assert NAMES == ["CSV", "Label Studio", "COCO", "YOLO", "ImageFolder"]
    assert len({one.file for one in FORMATS}) == len(FORMATS)
    with pytest.raises(BadInput, match="There is no format 'VOC' of labels; there are CSV"):
        write("VOC", [])
    with pytest.raises(BadInput, match="ImageFolder needs images"):
        write("ImageFolder", [])


def test_pictures_of_the_same_stem_are_told_apart() -> None:
    made = [Annotation(f"a.{end}", end, (0.0, 0.0, 5.0, 5.0), (9, 9)) for end in ("jpg", "png")]
    assert_same("YOLO", made)


def test_a_labeler_is_known_as_label_studio_knows_its_users() -> None:
    given_by = ["b@example.org", "7", "Ada"]
    made = [Annotation(f"{i}.png", "x", labeler=who) for i, who in enumerate(given_by)]
    tasks = json.loads(write("Label Studio", made))
    said = [task["annotations"][0] for task in tasks]
    assert said[0]["completed_by"] == {"email": "b@example.org"}
    assert said[1]["completed_by"] == 7
    assert "completed_by" not in said[2]  # an unknown user would be refused there


def test_coco_has_what_other_programs_ask_for() -> None:
    value = json.loads(write("COCO", [Annotation("a.png", "x", (1.0, 2.0, 3.0, 4.0), (10, 20))]))
    assert value["images"] == [{"id": 1, "file_name": "a.png", "width": 10, "height": 20}]
    assert value["categories"] == [{"id": 1, "name": "x"}]
    (one,) = value["annotations"]
    assert (one["bbox"], one["area"], one["iscrowd"]) == ([1, 2, 3, 4], 12, 0)


def test_yolo_has_what_other_programs_ask_for() -> None:
    content = write("YOLO", [Annotation("in/a.png", "x", (2.0, 4.0, 4.0, 8.0), (10, 20))])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.read("labels/in/a.txt") == b"0 0.4 0.4 0.4 0.4\n"
        assert archive.read("classes.txt") == b"x\n"
        assert b"names:\n  0: x\n" in archive.read("data.yaml")


def test_the_same_labels_are_the_same_bytes() -> None:
    for name in NAMES:
        first, second = (write(name, thousand(), lambda _: PNG) for _ in range(2))
        assert first == second

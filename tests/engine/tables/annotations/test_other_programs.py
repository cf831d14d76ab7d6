"""Files as other programs write them, and matching of their names and boxes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.formats import read
from scant.tables.annotations.matching import Names, overlaps
from tests.engine.files import packed


def rectangle(x: float, y: float, w: float, h: float, *labels: str, **more: Any) -> dict[str, Any]:
    value = {"x": x, "y": y, "width": w, "height": h, "rotation": 0}
    return {
        "original_width": 200, "original_height": 100, "type": "rectanglelabels", "id": "a",
        "from_name": "label", "to_name": "image",
        "value": value | {"rectanglelabels": list(labels)} | more,
    }  # fmt: skip


def test_an_export_of_label_studio() -> None:
    tasks = [
        {
            "id": 7,
            "data": {"image": "/data/upload/3/0a1b2c3d-IMG%201.jpg"},
            "annotations": [
                {"completed_by": {"id": 1, "email": "a@example.org"},
                 "created_at": "2021-03-09T22:16:08.728353Z",
                 "result": [rectangle(10, 20, 30, 40, "clamp", "ring")]},
                {"was_cancelled": True, "result": [rectangle(0, 0, 1, 1, "no")]},
            ],
            "predictions": [{"result": [rectangle(0, 0, 50, 50, "guess")]}],
        },
        {
            "id": 8,
            "data": {"image": "https://example.org/x/b.png?sig=1"},
            "annotations": [],
            "predictions": [{"model_version": "m1", "result": [
                {"type": "choices", "value": {"choices": ["whole"]}},
                {"type": "polygonlabels", "value": {"points": [[1, 2]]}},
            ]}],
        },
    ]  # fmt: skip
    notes: list[str] = []
    made = read(json.dumps(tasks).encode(), "x.json", notes)
    when = 1615328168.728353
    assert made == [
        Annotation("IMG 1.jpg", "clamp", (20, 20, 60, 40), (200, 100), "a@example.org", when),
        Annotation("IMG 1.jpg", "ring", (20, 20, 60, 40), (200, 100), "a@example.org", when),
        Annotation("x/b.png", "whole", None, None, "m1"),
    ]
    assert notes == ["x.json: skipped results of the type 'polygonlabels', which are not boxes: 1."]


def test_a_rectangle_with_a_choice_of_its_own_is_one_label() -> None:
    drawn = rectangle(0, 0, 50, 50)
    chosen = drawn | {"type": "choices", "value": {**drawn["value"], "choices": ["clamp"]}}
    drawn |= {"type": "rectangle"}
    task = {"data": {"image": "a.png"}, "annotations": [{"result": [drawn, chosen]}]}
    (one,) = read(json.dumps([task]).encode(), "x.json")
    assert (one.label, one.box) == ("clamp", (0, 0, 100, 50))


def test_a_turned_rectangle_is_the_upright_one_around_it() -> None:
    task = {"data": {"image": "a.png"},
            "annotations": [{"result": [rectangle(50, 50, 10, 40, "x", rotation=90)]}]}  # fmt: skip
    (one,) = read(json.dumps(task).encode(), "x.json")
    assert one.box == pytest.approx((60, 50, 40, 20))  # 20 x 40 about its corner at (100, 50)


def test_the_minimal_export_of_label_studio() -> None:
    region = {"x": 10, "y": 20, "width": 30, "height": 40, "rectanglelabels": ["clamp"],
              "original_width": 200, "original_height": 100}  # fmt: skip
    tasks = [
        {"id": 1, "image": "/data/upload/a.png", "label": [region], "annotator": 4,
         "annotation_id": 2, "created_at": "2021-03-09T22:16:08Z"},
        {"id": 2, "image": "/data/upload/b.png", "choice": "none", "annotator": 4,
         "annotation_id": 3},
    ]  # fmt: skip
    first, second = read(json.dumps(tasks).encode(), "x.json")
    assert (first.picture, first.label, first.labeler) == ("a.png", "clamp", "4")
    assert first.box == (20, 20, 60, 40)
    assert (second.picture, second.label, second.box) == ("b.png", "none", None)


def test_yolo_as_others_pack_it() -> None:
    content = packed({
        "set/data.yaml": "names: [clamp, ring]\n",
        "set/images/train/a.jpg": "",
        "set/labels/train/a.txt": "1 0.5 0.5 0.2 0.4\n0 0.1 0.1 0.3 0.1 0.3 0.5 0.1 0.5\n",
        "set/labels/train/b.txt": "0 0.5 0.5 0.5 0.5 0.93\n",
        "set/README.txt": "hello",
    })  # fmt: skip
    made = read(content, "x.zip")
    assert [(a.picture, a.label) for a in made] == [
        ("set/images/train/a.jpg", "ring"), ("set/images/train/a.jpg", "clamp"),
        ("train/b", "clamp"),
    ]  # fmt: skip
    assert made[0].on((100, 50)).box == (40, 15, 20, 20)
    assert made[1].on((100, 50)).box == (10, 5, 20, 20)  # the box around a polygon
    (unnamed,) = read(packed({"labels/a.txt": "3 .5 .5 .2 .2"}), "x.zip")
    assert unnamed.label == "3"


@pytest.mark.parametrize(
    ("table", "box", "size"),
    [
        ("filename,width,height,class,xmin,ymin,xmax,ymax\na.png,200,100,x,1,2,4,6\n",
         (1, 2, 3, 4), (200, 100)),
        ("picture;left;top;width;height;label\na.png;1;2;3;4;x\n", (1, 2, 3, 4), None),
        ("image\tx\ty\tw\th\tcategory\na.png\t1\t2\t3\t4\tx\n", (1, 2, 3, 4), None),
        ("file,left,top,size,label\na.png,1,2,3,x\n", (1, 2, 3, 3), None),
        ("picture,label\na.png,x\n", None, None),
    ],
)  # fmt: skip
def test_tables_as_others_write_them(
    table: str, box: tuple[float, ...] | None, size: tuple[int, int] | None
) -> None:
    assert read(table.encode(), "x.csv") == [Annotation("a.png", "x", box, size)]  # type: ignore[arg-type]


def test_what_reaches_out_of_the_picture_is_cut_off() -> None:
    table = (
        b"picture,left,top,width,height,label,picture_width,picture_height\na,-5,8,10,10,x,20,12\n"
    )
    (one,) = read(table, "x.csv")
    assert one.box == (0, 8, 5, 4)


def test_a_time_that_cannot_be_read_is_left_out_and_said() -> None:
    notes: list[str] = []
    (one,) = read(b"picture,label,created\na.png,x,yesterday\n", "x.csv", notes)
    assert one.created is None
    assert notes == ["x.csv: unreadable times, which were left out: 1."]


def test_folders_of_pictures() -> None:
    content = packed({"a/1.png": "", "b/2%20x.png": "", "b/3.jpg@1,2,3,4.png": "", "4.gif": ""})
    assert read(content, "x.zip") == [
        Annotation("1.png", "a"),
        Annotation("2 x.png", "b"),
        Annotation("3.jpg", "b", (1, 2, 3, 4)),
        Annotation("4.gif", ""),
    ]


def test_pictures_are_found_with_fewer_folders_or_another_ending() -> None:
    names = Names(["set/images/a.jpg", "set/images/b.jpg", "set/other/b.jpg", "c.png"])
    assert names.find("a.jpg") == names.find("images/A.JPG") == names.find("x/y/a.jpg") == 0
    assert names.find("a") == names.find("a.png") == 0
    assert names.find("b.jpg") is None  # of which there are two
    assert names.find("other/b.jpg") == 2
    assert names.find("d.jpg") is None


def test_overlaps_are_intersection_over_union() -> None:
    rng = np.random.default_rng(0)
    boxes = np.hstack([rng.integers(0, 20, (6, 2)), rng.integers(1, 20, (6, 2))]).astype(float)
    made = overlaps(boxes, boxes)
    for i, a in enumerate(boxes.astype(int)):
        for j, b in enumerate(boxes.astype(int)):
            planes = np.zeros((2, 50, 50), dtype=bool)
            for plane, (x, y, w, h) in zip(planes, (a, b)):
                plane[y : y + h, x : x + w] = True
            brute = (planes[0] & planes[1]).sum() / (planes[0] | planes[1]).sum()
            assert made[i, j] == pytest.approx(brute)

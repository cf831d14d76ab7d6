"""Files that are no annotations, or mean harm: refused in one sentence, with file and entry."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scant.errors import BadInput
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.formats import read, write
from tests.engine.files import packed


def coco(**one: Any) -> bytes:
    base = {"id": 5, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5]}
    return json.dumps({
        "images": [{"id": 1, "file_name": "a.png", "width": 10, "height": 10}],
        "annotations": [base | one],
        "categories": [{"id": 1, "name": "x"}],
    }).encode()  # fmt: skip


def task(**value: Any) -> bytes:
    box = {"x": 0, "y": 0, "width": 5, "height": 5, "rectanglelabels": ["x"]} | value
    result = {"type": "rectanglelabels", "original_width": 9, "original_height": 9, "value": box}
    return json.dumps(
        [{"id": 3, "data": {"image": "a.png"}, "annotations": [{"result": [result]}]}]
    ).encode()


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{n}: &{n} [{', '.join([f'*{m}'] * 9)}]\n" for m, n in zip("abcdefgh", "bcdefghi")
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"9" * 10_000 + b"]", "endless number|not of Label Studio"),
        (b"\xff\xfe[\xff", "no column 'picture'"),
        (b'{"a": 1}', "is JSON, but not of Label Studio"),
        (b'[{"data": 3}]', "'data' is not an object"),
        (b'[{"data": {"image": 3}}]', "no picture is named"),
        (b'[{"data": {"image": "a.png"}, "annotations": 3}]', "a list of objects is expected"),
        (task(x=float("nan")), "x.json, task 3, result 1, x: got 'nan'; give a number"),
        (task(width=-5), "task 3, result 1: the box .* has no width"),
        (task(x=None), "task 3, result 1, x: got 'None'"),
        (task(x=1e300), "task 3, result 1, x: got '1e[+]300'"),
        (task(x=200), "lies outside of the picture"),
        (coco(bbox=[0, 0, float("inf"), 5]), "x.json, annotation 5: got 'inf'"),
        (coco(bbox=[0, 0, 0, 5]), "annotation 5: the box 0, 0, 0, 5 has no width or no height"),
        (coco(bbox=[0, 0, 5]), "annotation 5: a box of 3 numbers"),
        (coco(bbox=[0, 0, True, 5]), "annotation 5: got 'True'"),
        (coco(bbox=[0, 0, 10**400, 5]), "annotation 5: got '1000"),
        (coco(image_id=2), "annotation 5: there is no image '2'"),
        (coco(category_id=[]), "annotation 5: there is no category"),
        (coco().replace(b'"x"', b'["x"]'), "annotation 5, class: got"),
        (coco().replace(b'"a.png"', b'"../.."'), "annotation 5: no picture is named"),
        (coco().replace(b'"x"', b'"' + b"x" * 5_000 + b'"'), "a name of over 200 characters"),
        (b"row,label\n1,a\n", "x.json has no column 'picture'; give this name"),
        (b"picture,note\na.png,b\n", "names pictures but has no labels|holds no labels"),
        (b"picture,left,top,width,height\na.png,1,2,,4\n", "row 2: the box has no width"),
        (b"picture,left,top,width,height\na.png,1,2,nan,4\n", "row 2: got 'nan'"),
        (b"picture,left,top,width,height\na.png,1,2,=1+1,4\n", "row 2: got '=1"),
        (b"picture,xmin,ymin,xmax,ymax\na.png,9,2,1,4\n", "row 2: the box .* has no width"),
        (b"picture,label\na.png,b,c\n", "row 2: 3 cells where the header has 2"),
        (b"picture,label\n,b\n", "row 2: no picture is named"),
        (b"picture,label\n", "holds no labels"),
        (b"PK\x03\x04 broken", "damaged ZIP"),
        (packed({"a.txt": "x"}), "holds no labels: no JSON"),
        (packed({"../labels/a.txt": "0 .5 .5 .5 .5"}), "leads out of the archive"),
        (packed({"C:\\labels\\a.txt": "0 .5 .5 .5 .5"}), "leads out of the archive"),
        (packed({"labels/a.txt": "0 .5 .5 .5"}), "'labels/a.txt', line 1: 4 numbers"),
        (packed({"labels/a.txt": "\n-1 .5 .5 .5 .5"}), "line 2: the class is '-1'"),
        (packed({"labels/a.txt": "0 .5 nan .5 .5"}), "line 1: got 'nan'"),
        (packed({"labels/a.txt": "0 50 50 10 10"}), "line 1: 50 is not a share of the picture"),
        (packed({"labels/a.txt": "0 .5 .5 -.5 .5"}), "line 1: the box .* has no width"),
        (packed({"labels/a.txt": "1 .5 .5 .5 .5", "classes.txt": "x\n"}),
         "there is no class 1 among 1 names"),
        (packed({"labels/a.txt": "0 .5 .5 .5 .5", "data.yaml": "names: [*x"}), "is not YAML"),
        (packed({"labels/a.txt": "0 .5 .5 .5 .5", "data.yaml": BOMB + "names: [*i]\n"}),
         "'names' is not a list of names"),
        (packed({"labels/a.txt": "0 .5 .5 .5 .5",
                   "data.yaml": "names: !!python/object/apply:os.system [ls]\n"}), "is not YAML"),
        (packed({"labels.csv": b"picture,label\n" + b"a.png,x\n" * 8_000_000}),
         "unpacks to 64 MB and the limit is 50 MB"),
        (packed({"a/b.png": bytes(3_000_000)}), "times its size and the limit is 100"),
        (packed({"x.json": "{"}), r"x\.json, 'x\.json' is not JSON"),
    ],
)  # fmt: skip
def test_hostile_files_end_in_a_sentence(content: bytes, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read(content, "x.json")


def test_names_that_lead_up_lead_nowhere() -> None:
    for name in ("../../etc/passwd.png", "/etc/passwd.png", "..\\etc\\passwd.png"):
        table = f"picture,label\n{name},x\n".encode()
        (one,) = read(table, "x.csv")
        assert one.picture == "etc/passwd.png"


@pytest.mark.parametrize("name", ["YOLO", "ImageFolder"])
def test_no_name_leads_out_of_an_archive_that_is_written(name: str) -> None:
    bad = ["../../x.png", "/etc/x.png", "C:\\x.png", "a/../../x.png", "CON\x00.png", "..", "."]
    made = [Annotation(word, word, (0.0, 0.0, 1.0, 1.0), (9, 9)) for word in bad]
    with zipfile.ZipFile(io.BytesIO(write(name, made, lambda _: b"\x89PNG"))) as archive:
        for path in archive.namelist():
            assert not path.startswith("/")
            assert not {"..", ".", ""} & set(path.split("/"))
            assert not set('\\:\x00*?"<>|') & set(path)


def test_no_cell_is_a_formula() -> None:
    words = ["=1+1", "+1+1", "-x", "@x", "=cmd|' /C calc'!A0"]
    made = [Annotation("a.png", word, labeler=word) for word in words]
    content = write("CSV", made)
    assert not [c for line in content.decode().splitlines() for c in line.split(",")
                if c.startswith(("=", "+", "@", "-"))]  # fmt: skip
    assert read(content, "x.csv") == made


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scant.tables.annotations.entries.MOST", 2)
    with pytest.raises(BadInput, match="more than 2 annotations"):
        read(b"picture,label\n" + b"a.png,x\n" * 3, "x.csv")


def assert_read_or_refused(content: bytes) -> None:
    made, sentence = list[Annotation](), ""
    try:
        made = read(content, "file of mine")
    except BadInput as error:
        sentence = str(error)
    assert made or "file of mine" in sentence


@settings(max_examples=150, deadline=None)
@given(junk=st.binary(max_size=200), start=st.sampled_from([b"", b"[", b"{", b"PK\x03\x04"]))
def test_junk_ends_in_a_sentence_or_in_labels(junk: bytes, start: bytes) -> None:
    assert_read_or_refused(start + junk)


@settings(max_examples=150, deadline=None)
@given(value=st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["data", "image", "annotations", "predictions", "result", "value", "images", "id", "bbox",
         "categories", "name", "x", "y", "width", "height", "rectanglelabels", "completed_by",
         "image_id", "category_id", "file_name", "attributes", "annotation_id", "meta"]),
        inner, max_size=5), max_leaves=30))  # fmt: skip
def test_json_of_any_shape_ends_in_a_sentence_or_in_labels(value: Any) -> None:
    assert_read_or_refused(json.dumps(value).encode())

"""COCO's JSON of object detection: images, annotations with `bbox`, categories.

Segmentations are passed over where a `bbox` is there. `iscrowd` boxes are of many things: passed
over. What COCO has no place for stands in `attributes` of each annotation, as CVAT does it:
labeler, created, unsure, and whether a label is of the whole picture. Nothing is lost.

Source: https://cocodataset.org/#format-data (2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scant.errors import BadInput
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.entries import Entries, moment
from scant.tables.annotations.json_text import dumped, objects, parsed

_UNLABELED = "unlabeled"  # the category of boxes that wait for a label


def is_like(value: Any) -> bool:
    """Whether a JSON value is one of COCO's."""
    return isinstance(value, dict) and "images" in value and "annotations" in value


def read(content: bytes, file: str) -> Entries:
    """The annotations of a file.

    Raises:
        BadInput: Not such a file; the annotation is named.
    """
    value, entries = parsed(content, file), Entries(file)
    if not is_like(value):
        raise BadInput(f"{file} is not COCO: it needs 'images' and 'annotations'.")
    images = {_key(v): v for v in objects(value["images"], f"{file}, images")}
    categories = {
        _key(v): v.get("name") for v in objects(value.get("categories"), f"{file}, categories")
    }
    for number, one in enumerate(objects(value["annotations"], f"{file}, annotations"), 1):
        where = f"annotation {one.get('id', number)}"
        image = images.get(repr(one.get("image_id")))
        if image is None:
            raise BadInput(
                f"{file}, {where}: there is no image {str(one.get('image_id'))[:40]!r}; export the "
                "labels again."
            )
        category = repr(one.get("category_id"))
        if category not in categories:
            raise BadInput(
                f"{file}, {where}: there is no category {str(one.get('category_id'))[:40]!r}; "
                "export the labels again."
            )
        if one.get("iscrowd"):
            entries.passed_over["annotations are of crowds: passed over"] += 1
            continue
        more = one["attributes"] if isinstance(one.get("attributes"), dict) else {}
        box = one.get("bbox")
        if not more.get("whole") and not isinstance(box, list):
            entries.passed_over["annotations have no 'bbox': passed over"] += 1
            continue
        size = [image.get("width"), image.get("height")]
        entries.add(
            where,
            image.get("file_name"),
            "" if more.get(_UNLABELED) else categories[category],
            None if more.get("whole") else box,
            None if None in size or 0 in size else size,
            labeler=more.get("labeler", ""),
            created=more.get("created"),
            unsure=more.get("unsure", False),
        )
    return entries


def write(annotations: Sequence[Annotation]) -> bytes:
    """A file with the pictures and classes that the annotations name."""
    images: dict[tuple[str, tuple[int, int] | None], int] = {}
    categories: dict[str, int] = {}
    made = []
    for number, one in enumerate(annotations, 1):
        image = images.setdefault((one.picture, one.size), len(images) + 1)
        category = categories.setdefault(one.label, len(categories) + 1)
        box = one.box or (0.0, 0.0, *(one.size or (0, 0)))
        more: dict[str, Any] = {"whole": True} if one.box is None else {}
        if not one.label:
            more[_UNLABELED] = True
        if one.labeler:
            more["labeler"] = one.labeler
        if one.created is not None:
            more["created"] = moment(one.created)
        if one.unsure:
            more["unsure"] = True
        made.append(
            {
                "id": number,
                "image_id": image,
                "category_id": category,
                "bbox": list(box),
                "area": box[2] * box[3],
                "iscrowd": 0,
                "segmentation": [],
            }
            | ({"attributes": more} if more else {})
        )
    return dumped(
        {
            "info": {"description": "Labels of pictures"},
            "images": [_image(key, *of) for of, key in images.items()],
            "annotations": made,
            "categories": [{"id": k, "name": n or _UNLABELED} for n, k in categories.items()],
        }
    )


def _image(key: int, name: str, size: tuple[int, int] | None) -> dict[str, Any]:
    known = {} if size is None else {"width": size[0], "height": size[1]}
    return {"id": key, "file_name": name, **known}


def _key(entry: dict[str, Any]) -> str:
    """An id of any JSON type as a key: 1 is not "1"."""
    return repr(entry.get("id"))

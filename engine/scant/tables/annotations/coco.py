"""COCO format for object detection: JSON with images, annotations with `bbox`, and categories.

Segmentations and boxes with `iscrowd` are ignored. Fields that COCO lacks are stored in
`attributes` of each annotation, as in CVAT: labeler, created, unsure, and whether the label is of
the whole picture. The format is therefore lossless.

Source: https://cocodataset.org/#format-data (2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scant.errors import BadInput
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.entries import Entries, moment
from scant.tables.annotations.json_text import dumped, objects, parsed

_UNLABELED = "unlabeled"  # category of boxes without a label


def is_like(value: Any) -> bool:
    """Return True if a JSON value has the structure of COCO."""
    return isinstance(value, dict) and "images" in value and "annotations" in value


def read(content: bytes, file: str) -> Entries:
    """Read the annotations of a file.

    Raises:
        BadInput: The file has another format or an invalid annotation, which is named.
    """
    value, entries = parsed(content, file), Entries(file)
    if not is_like(value):
        raise BadInput(f"{file} is not COCO: it needs 'images' and 'annotations'.")
    images = {_key(v): v for v in objects(value["images"], f"{file}, images")}
    categories = {
        _key(v): v.get("name") for v in objects(value.get("categories"), f"{file}, categories")
    }
    for number, raw in enumerate(objects(value["annotations"], f"{file}, annotations"), 1):
        where = f"annotation {raw.get('id', number)}"
        image = images.get(repr(raw.get("image_id")))
        if image is None:
            raise BadInput(
                f"{file}, {where}: there is no image {str(raw.get('image_id'))[:40]!r}; export the "
                "labels again."
            )
        category = repr(raw.get("category_id"))
        if category not in categories:
            raise BadInput(
                f"{file}, {where}: there is no category {str(raw.get('category_id'))[:40]!r}; "
                "export the labels again."
            )
        if raw.get("iscrowd"):
            entries.passed_over["skipped annotations of crowds"] += 1
            continue
        attributes = raw["attributes"] if isinstance(raw.get("attributes"), dict) else {}
        box = raw.get("bbox")
        if not attributes.get("whole") and not isinstance(box, list):
            entries.passed_over["skipped annotations without 'bbox'"] += 1
            continue
        size = [image.get("width"), image.get("height")]
        entries.add(
            where,
            image.get("file_name"),
            "" if attributes.get(_UNLABELED) else categories[category],
            None if attributes.get("whole") else box,
            None if None in size or 0 in size else size,
            labeler=attributes.get("labeler", ""),
            created=attributes.get("created"),
            unsure=attributes.get("unsure", False),
        )
    return entries


def write(annotations: Sequence[Annotation]) -> bytes:
    """Encode annotations with their pictures and categories."""
    images: dict[tuple[str, tuple[int, int] | None], int] = {}
    categories: dict[str, int] = {}
    entries = []
    for number, annotation in enumerate(annotations, 1):
        image = images.setdefault((annotation.picture, annotation.size), len(images) + 1)
        category = categories.setdefault(annotation.label, len(categories) + 1)
        box = annotation.box or (0.0, 0.0, *(annotation.size or (0, 0)))
        attributes: dict[str, Any] = {"whole": True} if annotation.box is None else {}
        if not annotation.label:
            attributes[_UNLABELED] = True
        if annotation.labeler:
            attributes["labeler"] = annotation.labeler
        if annotation.created is not None:
            attributes["created"] = moment(annotation.created)
        if annotation.unsure:
            attributes["unsure"] = True
        entries.append(
            {
                "id": number,
                "image_id": image,
                "category_id": category,
                "bbox": list(box),
                "area": box[2] * box[3],
                "iscrowd": 0,
                "segmentation": [],
            }
            | ({"attributes": attributes} if attributes else {})
        )
    return dumped(
        {
            "info": {"description": "Labels of pictures"},
            "images": [_image(key, *of) for of, key in images.items()],
            "annotations": entries,
            "categories": [{"id": k, "name": n or _UNLABELED} for n, k in categories.items()],
        }
    )


def _image(key: int, name: str, size: tuple[int, int] | None) -> dict[str, Any]:
    dimensions = {} if size is None else {"width": size[0], "height": size[1]}
    return {"id": key, "file_name": name, **dimensions}


def _key(entry: dict[str, Any]) -> str:
    """Return a key for an id of any JSON type, which distinguishes 1 and "1"."""
    return repr(entry.get("id"))

"""Label Studio format: JSON tasks with annotations or predictions in percent of the picture.

Reading supports the exports "JSON" and "JSON-MIN" and tasks for import. Rectangles
(RectangleLabels, or Rectangle with Choices of the region) and Choices of the whole picture are
read; polygons, brushes and other regions are counted and ignored. A rotated rectangle is replaced
by its upright bounding box. Predictions are used only for tasks without annotations, with
`model_version` as the labeler.

Writing yields one task per picture and one annotation per labeler, without loss: `unsure` and the
time of a label are in `meta` of its region. A labeler that is an email address or a number is
written to `completed_by`, the user in Label Studio; other names, which the import would reject
there, are written to `labeler`.

Source: https://labelstud.io/guide/task_format (2026).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from scant.errors import BadInput
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.entries import Entries, moment, number
from scant.tables.annotations.json_text import dumped, objects, parsed

_OF_BOX = ("x", "y", "width", "height")
_IMAGES = ("image", "img", "image_url", "url", "picture", "photo")
_UNSURE = "unsure"


def is_like(value: Any) -> bool:
    """Return True if a JSON value has the structure of Label Studio."""
    if isinstance(value, dict):
        return isinstance(value.get("data"), dict)
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and ("data" in first or _is_minimal(first))


def read(content: bytes, file: str) -> Entries:
    """Read the annotations of an export.

    Raises:
        BadInput: The file has another format or an invalid entry, which is named.
    """
    value, entries = parsed(content, file), Entries(file)
    for number_, task in enumerate(objects(value if isinstance(value, list) else [value], file), 1):
        where = f"task {task.get('id', number_)}"
        if "data" in task:
            _task(entries, task, where)
        else:
            _minimal(entries, task, where)
    return entries


def write(annotations: Sequence[Annotation]) -> bytes:
    """Encode tasks for Label Studio, with `RectangleLabels` named label and `Choices` named choice.

    Raises:
        BadInput: The size of a picture with a box is unknown, since boxes are in percent.
    """
    tasks: dict[str, dict[str, list[Annotation]]] = {}
    for annotation in annotations:
        tasks.setdefault(annotation.picture, {}).setdefault(annotation.labeler, []).append(
            annotation
        )
    encoded = []
    for i, (picture, by_labeler) in enumerate(tasks.items(), 1):
        entries = []
        for labeler, own in by_labeler.items():
            times = [a.created for a in own]
            entry: dict[str, Any] = {
                "result": [_result(a, f"r{k}") for k, a in enumerate(own, 1)],
                "was_cancelled": False,
            }
            if None not in times:  # else it would be read as the time of all labels
                entry["created_at"] = moment(max(t for t in times if t is not None))
            entries.append(entry | _completed_by(labeler))
        encoded.append({"id": i, "data": {"image": picture}, "annotations": entries})
    return dumped(encoded)


def _task(entries: Entries, task: dict[str, Any], where: str) -> None:
    data = task["data"]
    if not isinstance(data, dict):
        raise BadInput(f"{entries.file}, {where}: 'data' is not an object; export the tasks again.")
    picture = _picture(data, f"{entries.file}, {where}")
    annotations = objects(
        task.get("annotations", task.get("completions")), f"{entries.file}, {where}, annotations"
    )
    completed = [a for a in annotations if not a.get("was_cancelled")]
    if completed:
        for annotation in completed:
            _results(entries, picture, annotation, where, _labeler(annotation))
        return
    predictions = objects(task.get("predictions"), f"{entries.file}, {where}, predictions")
    for prediction in predictions[-1:]:  # of the latest model
        _results(entries, picture, prediction, where, prediction.get("model_version") or "")


def _results(
    entries: Entries, picture: Any, annotation: dict[str, Any], where: str, labeler: Any
) -> None:
    """Add the regions of an annotation; a box and its Choices are one label."""
    results = objects(annotation.get("result"), f"{entries.file}, {where}, result")
    with_choices = {
        r["id"]
        for r in results
        if _value(r).get("choices") and "x" in _value(r) and isinstance(r.get("id"), str)
    }
    for k, result in enumerate(results, 1):
        value, location = _value(result), f"{where}, result {k}"
        labels = _labels(value)
        size = [result.get("original_width"), result.get("original_height")]
        dimensions = None if None in size else size
        if result.get("type") not in ("rectanglelabels", "rectangle", "choices", "labels", None):
            kind = str(result.get("type"))[:30]
            entries.passed_over[f"skipped results of the type {kind!r}, which are not boxes"] += 1
            continue
        box = None
        if "x" in value:
            if not labels and result.get("id") in with_choices:
                continue
            box, dimensions = _box(value, dimensions, f"{entries.file}, {location}")
        elif not labels:
            continue
        meta = result.get("meta") if isinstance(result.get("meta"), dict) else {}
        assert isinstance(meta, dict)
        texts = meta.get("text")
        for label in labels or [""]:
            entries.add(
                location,
                picture,
                label,
                box,
                dimensions,
                labeler=labeler,
                created=meta.get("created", annotation.get("created_at")),
                unsure=texts == _UNSURE or (isinstance(texts, list) and _UNSURE in texts),
            )


def _is_minimal(task: dict[str, Any]) -> bool:
    """Return True for an entry of an export "JSON-MIN"."""
    return "annotation_id" in task or "annotator" in task


def _minimal(entries: Entries, task: dict[str, Any], where: str) -> None:
    if not _is_minimal(task):
        raise BadInput(
            f"{entries.file}, {where} has neither 'data' nor 'annotation_id'; export from Label "
            "Studio as JSON."
        )
    picture = _picture(task, f"{entries.file}, {where}")
    origin = {"labeler": task.get("annotator"), "created": task.get("created_at")}
    for name, value in task.items():
        if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            for k, region in enumerate(value, 1):
                location = f"{where}, {name} {k}"
                if "x" not in region:
                    entries.passed_over["skipped regions that are not boxes"] += 1
                    continue
                size = [region.get("original_width"), region.get("original_height")]
                box, dimensions = _box(
                    region, None if None in size else size, f"{entries.file}, {location}"
                )
                for label in _labels(region) or [""]:
                    entries.add(location, picture, label, box, dimensions, **origin)
        elif name in ("choice", "choices", "label", "class") and isinstance(value, str):
            entries.add(where, picture, value, **origin)


def _picture(data: dict[str, Any], where: str) -> str:
    names = [data[n] for n in _IMAGES if isinstance(data.get(n), str)]
    names = names or [v for v in data.values() if isinstance(v, str) and "." in v]
    if not names:
        raise BadInput(f"{where}: no picture is named in 'data'; add its name as 'image'.")
    return str(names[0])


def _value(result: dict[str, Any]) -> dict[str, Any]:
    value = result.get("value")
    return value if isinstance(value, dict) else {}


def _labels(value: dict[str, Any]) -> list[Any]:
    for name in ("rectanglelabels", "choices", "labels"):
        if isinstance(value.get(name), list) and value[name]:
            return list(value[name])
    return []


def _labeler(annotation: dict[str, Any]) -> Any:
    user = annotation.get("completed_by")
    if isinstance(user, dict):
        user = user.get("email") or user.get("id")
    return annotation.get("labeler") or user


def _box(
    value: dict[str, Any], size: list[Any] | None, where: str
) -> tuple[list[float], list[Any]]:
    """Convert a box from percent to pixels; an unknown size of the picture is 1 x 1."""
    w, h = (1.0, 1.0) if size is None else (number(v, where) for v in size)
    x, y, width, height = (number(value.get(n), f"{where}, {n}") for n in _OF_BOX)
    left, top, box_width, box_height = (
        x * w / 100, y * h / 100, width * w / 100, height * h / 100
    )  # fmt: skip
    angle = math.radians(number(value.get("rotation") or 0, f"{where}, rotation"))
    if angle:  # clockwise about the top left corner
        corners = [
            (a * box_width * math.cos(angle) - b * box_height * math.sin(angle),
             a * box_width * math.sin(angle) + b * box_height * math.cos(angle))
            for a in (0, 1) for b in (0, 1)
        ]  # fmt: skip
        xs, ys = zip(*corners)
        left, top = left + min(xs), top + min(ys)
        box_width, box_height = max(xs) - min(xs), max(ys) - min(ys)
    return [left, top, box_width, box_height], [1, 1] if size is None else size


def _completed_by(labeler: str) -> dict[str, Any]:
    if not labeler:
        return {}
    if labeler.isascii() and labeler.isdigit() and str(int(labeler)) == labeler:
        return {"completed_by": int(labeler)}
    return {"completed_by": {"email": labeler}} if "@" in labeler else {"labeler": labeler}


def _result(one: Annotation, key: str) -> dict[str, Any]:
    result: dict[str, Any] = {"id": key, "to_name": "image"}
    if one.size is not None:
        result |= {"original_width": one.size[0], "original_height": one.size[1]}
        result["image_rotation"] = 0
    if one.box is None:
        result |= {"type": "choices", "from_name": "choice", "value": {"choices": [one.label]}}
    elif one.size is None:
        raise BadInput(
            f"{one.picture}: Label Studio has boxes in percent of the picture, and its size is not "
            "known; choose CSV or COCO."
        )
    else:
        sides = [*one.size, *one.size]
        value: dict[str, Any] = {n: 100 * v / s for n, v, s in zip(_OF_BOX, one.box, sides)}
        value |= {"rotation": 0, "rectanglelabels": [one.label] if one.label else []}
        result |= {"type": "rectanglelabels", "from_name": "label", "value": value}
    meta: dict[str, Any] = {"text": [_UNSURE]} if one.unsure else {}
    if one.created is not None:
        meta["created"] = moment(one.created)
    return result | ({"meta": meta} if meta else {})

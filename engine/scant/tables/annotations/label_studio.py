"""Label Studio's JSON: tasks with annotations, or predictions, in percent of each picture.

Read: exports "JSON" and "JSON-MIN", and tasks that are made for import. Rectangles
(RectangleLabels, or Rectangle with Choices of the region) and Choices for the whole picture are
taken; polygons, brushes and other regions are counted and passed over. A rotated rectangle is read
as the upright box around it. Predictions count only where nobody has annotated the task; their
`model_version` is the labeler.

Written: a task a picture, an annotation a labeler. Nothing is lost: `unsure` and the time of each
label stand in the region's `meta`, which Label Studio shows or ignores. A labeler that is an
address or a number goes into `completed_by`, as Label Studio knows its users; any other name would
be refused on import there, and goes into `labeler` beside it.

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
    """Whether a JSON value is one of Label Studio's."""
    if isinstance(value, dict):
        return isinstance(value.get("data"), dict)
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and ("data" in first or _is_minimal(first))


def read(content: bytes, file: str) -> Entries:
    """The annotations of an export.

    Raises:
        BadInput: Not such a file; the task and result are named.
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
    """Tasks for Label Studio, with a `RectangleLabels` called label and `Choices` called choice.

    Raises:
        BadInput: A box in a picture whose size is not known: the format is in percent.
    """
    tasks: dict[str, dict[str, list[Annotation]]] = {}
    for one in annotations:
        tasks.setdefault(one.picture, {}).setdefault(one.labeler, []).append(one)
    made = []
    for i, (picture, by_labeler) in enumerate(tasks.items(), 1):
        given = []
        for labeler, own in by_labeler.items():
            times = [a.created for a in own]
            annotation: dict[str, Any] = {
                "result": [_result(a, f"r{k}") for k, a in enumerate(own, 1)],
                "was_cancelled": False,
            }
            if None not in times:  # else it would be taken for the time of all
                annotation["created_at"] = moment(max(t for t in times if t is not None))
            given.append(annotation | _completed_by(labeler))
        made.append({"id": i, "data": {"image": picture}, "annotations": given})
    return dumped(made)


def _task(entries: Entries, task: dict[str, Any], where: str) -> None:
    data = task["data"]
    if not isinstance(data, dict):
        raise BadInput(f"{entries.file}, {where}: 'data' is no object; export the tasks again.")
    picture = _picture(data, f"{entries.file}, {where}")
    given = objects(
        task.get("annotations", task.get("completions")), f"{entries.file}, {where}, annotations"
    )
    kept = [a for a in given if not a.get("was_cancelled")]
    if kept:
        for annotation in kept:
            _results(entries, picture, annotation, where, _labeler(annotation))
        return
    predictions = objects(task.get("predictions"), f"{entries.file}, {where}, predictions")
    for prediction in predictions[-1:]:  # the latest model's
        _results(entries, picture, prediction, where, prediction.get("model_version") or "")


def _results(
    entries: Entries, picture: Any, annotation: dict[str, Any], where: str, labeler: Any
) -> None:
    """The regions of one annotation; a box and the choice of it are one."""
    results = objects(annotation.get("result"), f"{entries.file}, {where}, result")
    chosen = {
        r["id"]
        for r in results
        if _value(r).get("choices") and "x" in _value(r) and isinstance(r.get("id"), str)
    }
    for k, result in enumerate(results, 1):
        value, at = _value(result), f"{where}, result {k}"
        labels = _labels(value)
        size = [result.get("original_width"), result.get("original_height")]
        known = None if None in size else size
        if result.get("type") not in ("rectanglelabels", "rectangle", "choices", "labels", None):
            kind = str(result.get("type"))[:30]
            entries.passed_over[f"results of the type {kind!r} are no boxes: passed over"] += 1
            continue
        box = None
        if "x" in value:
            if not labels and result.get("id") in chosen:
                continue
            box, known = _box(value, known, f"{entries.file}, {at}")
        elif not labels:
            continue
        meta = result.get("meta") if isinstance(result.get("meta"), dict) else {}
        assert isinstance(meta, dict)
        texts = meta.get("text")
        for label in labels or [""]:
            entries.add(
                at,
                picture,
                label,
                box,
                known,
                labeler=labeler,
                created=meta.get("created", annotation.get("created_at")),
                unsure=texts == _UNSURE or (isinstance(texts, list) and _UNSURE in texts),
            )


def _is_minimal(task: dict[str, Any]) -> bool:
    """Whether this is an entry of an export "JSON-MIN"."""
    return "annotation_id" in task or "annotator" in task


def _minimal(entries: Entries, task: dict[str, Any], where: str) -> None:
    if not _is_minimal(task):
        raise BadInput(
            f"{entries.file}, {where} has neither 'data' nor 'annotation_id'; export from Label "
            "Studio as JSON."
        )
    picture = _picture(task, f"{entries.file}, {where}")
    said = {"labeler": task.get("annotator"), "created": task.get("created_at")}
    for name, value in task.items():
        if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            for k, region in enumerate(value, 1):
                at = f"{where}, {name} {k}"
                if "x" not in region:
                    entries.passed_over["regions are no boxes: passed over"] += 1
                    continue
                size = [region.get("original_width"), region.get("original_height")]
                box, known = _box(region, None if None in size else size, f"{entries.file}, {at}")
                for label in _labels(region) or [""]:
                    entries.add(at, picture, label, box, known, **said)
        elif name in ("choice", "choices", "label", "class") and isinstance(value, str):
            entries.add(where, picture, value, **said)


def _picture(data: dict[str, Any], where: str) -> str:
    named = [data[n] for n in _IMAGES if isinstance(data.get(n), str)]
    named = named or [v for v in data.values() if isinstance(v, str) and "." in v]
    if not named:
        raise BadInput(f"{where}: no picture is named in 'data'; add its name as 'image'.")
    return str(named[0])


def _value(result: dict[str, Any]) -> dict[str, Any]:
    value = result.get("value")
    return value if isinstance(value, dict) else {}


def _labels(value: dict[str, Any]) -> list[Any]:
    for name in ("rectanglelabels", "choices", "labels"):
        if isinstance(value.get(name), list) and value[name]:
            return list(value[name])
    return []


def _labeler(annotation: dict[str, Any]) -> Any:
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("id")
    return annotation.get("labeler") or by


def _box(
    value: dict[str, Any], size: list[Any] | None, where: str
) -> tuple[list[float], list[Any]]:
    """A box in percent as pixels, and the size of the picture: 1 x 1 where nobody says."""
    across, down = (1.0, 1.0) if size is None else (number(v, where) for v in size)
    x, y, width, height = (number(value.get(n), f"{where}, {n}") for n in _OF_BOX)
    left, top, wide, high = (
        x * across / 100, y * down / 100, width * across / 100, height * down / 100
    )  # fmt: skip
    turn = math.radians(number(value.get("rotation") or 0, f"{where}, rotation"))
    if turn:  # clockwise about the corner at left and top
        corners = [
            (a * wide * math.cos(turn) - b * high * math.sin(turn),
             a * wide * math.sin(turn) + b * high * math.cos(turn))
            for a in (0, 1) for b in (0, 1)
        ]  # fmt: skip
        xs, ys = zip(*corners)
        left, top = left + min(xs), top + min(ys)
        wide, high = max(xs) - min(xs), max(ys) - min(ys)
    return [left, top, wide, high], [1, 1] if size is None else size


def _completed_by(labeler: str) -> dict[str, Any]:
    if not labeler:
        return {}
    if labeler.isascii() and labeler.isdigit() and str(int(labeler)) == labeler:
        return {"completed_by": int(labeler)}
    return {"completed_by": {"email": labeler}} if "@" in labeler else {"labeler": labeler}


def _result(one: Annotation, key: str) -> dict[str, Any]:
    made: dict[str, Any] = {"id": key, "to_name": "image"}
    if one.size is not None:
        made |= {"original_width": one.size[0], "original_height": one.size[1]}
        made["image_rotation"] = 0
    if one.box is None:
        made |= {"type": "choices", "from_name": "choice", "value": {"choices": [one.label]}}
    elif one.size is None:
        raise BadInput(
            f"{one.picture}: Label Studio has boxes in percent of the picture, and its size is not "
            "known; choose CSV or COCO."
        )
    else:
        sides = [*one.size, *one.size]
        value: dict[str, Any] = {n: 100 * v / s for n, v, s in zip(_OF_BOX, one.box, sides)}
        value |= {"rotation": 0, "rectanglelabels": [one.label] if one.label else []}
        made |= {"type": "rectanglelabels", "from_name": "label", "value": value}
    meta: dict[str, Any] = {"text": [_UNSURE]} if one.unsure else {}
    if one.created is not None:
        meta["created"] = moment(one.created)
    return made | ({"meta": meta} if meta else {})

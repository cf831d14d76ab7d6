"""The labels of a session as files: annotations of pictures, and the history of labels."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from scant.data_sources.open import open_table
from scant.errors import BadInput, NotFound
from scant.store import Store
from scant.store.records import Label
from scant.studies import entry
from scant.studies.clamp.labels_out import Places, annotations_of
from scant.studies.clamp.placed import image_of
from scant.studies.clamp.table import PatchPool
from scant.tables.annotations.annotation import Annotation
from scant.tables.annotations.formats import format_named, write
from scant_dashboard.live.run_state import RunState
from scant_dashboard.pages.clamp.progress import Answer
from scant_dashboard.pages.clamp.session_labels import (
    SessionLabels,
    classes_of,
    positive_class,
)
from scant_dashboard.translate import tr


class PoolFiles:
    """The table of a run, for the positions of its patches and their images.

    The table is read on first use, which blocks.

    Args:
        run: The run; it must have a report.
        store: Store that holds its table.
    """

    def __init__(self, run: RunState, store: Store) -> None:
        assert run.report is not None, "labels are given once a run has prepared its pool"
        self.run, self._store, self._arrays = run, store, run.report.arrays
        self._table: PatchPool | None = None
        self._places: Places | None = None

    @property
    def table(self) -> PatchPool:
        """The table as patches.

        Raises:
            NotFound: It has been deleted.
        """
        if self._table is None:
            data, metadata = self.run.record.data, self.run.metadata
            if data.startswith("upload:"):
                frame = self._store.upload_table(data.removeprefix("upload:"))
            else:
                study = entry("clamp")
                settings = study.settings.parse(self.run.record.settings)
                frame = open_table(study, data, settings)
            columns = [str(name) for name in metadata.get("columns", ())]
            self._table = PatchPool.of(frame, classes=classes_of(metadata), features=columns)
        return self._table

    @property
    def rows(self) -> np.ndarray:
        """Row of the table for each row of the pool."""
        count = len(self._arrays["pool_p"])
        return np.asarray(self._arrays.get("row", np.arange(count)), dtype=np.int64)

    @property
    def places(self) -> Places:
        """Positions of the patches in their pictures, read from the table if not in the report."""
        if self._places is None:
            arrays = dict(self._arrays)
            if "place" not in arrays and self.run.metadata.get("pictures"):
                arrays["place"] = self.table.place[self.rows]
            self._places = Places.of(self.run.metadata, arrays)
        return self._places

    def name(self, row: int) -> str:
        """Return what sentences call a row or placed patch."""
        return self.placed_names([row]).get(row) or tr("row {row}", row=row)

    def placed_names(self, rows: Iterable[int]) -> dict[int, str]:
        """Names of the placed patches among rows.

        The first placed patch reads the table, which blocks; without the table there are no names.
        """
        names = dict[int, str]()
        beyond = [row for row in rows if row >= len(self._arrays["pool_p"])]
        try:
            placed = [row for row in beyond if row in self.places.placed] if beyond else []
        except (BadInput, NotFound):
            return names
        for row in placed:
            left, top, width, height = map(int, self.places.placed.box(row))
            center = {"x": left + width // 2, "y": top + height // 2}
            picture = self.places.name(row)
            names[row] = tr("patch at {x}, {y} of {picture}", picture=picture, **center)
        return names

    def image(self, row: int) -> bytes:
        """Return the image file of a row or placed patch.

        Raises:
            BadInput: The table has no images, or there is no such patch.
            NotFound: The table has been deleted.
        """
        if not self.table.images:
            raise BadInput(
                tr("The rows of this pool are numbers, not images; choose another format.")
            )
        files, rows, positions = self.table.images, self.rows, self.places
        if row < len(rows):
            return files[int(rows[row])]
        own = np.flatnonzero(positions.picture == positions.placed.picture_of(row))
        box = positions.placed.box(row)
        return image_of([files[int(r)] for r in rows[own]], positions.place[own, :4], box)

    def _images(self, rows: Sequence[int]) -> dict[int, bytes]:
        return {row: self.image(row) for row in rows}

    async def explore(self, service: Any, question: str, query: Mapping[str, Any]) -> Answer:
        """Query the model with labels, and send the images of placed patches that its worker lacks.

        Labels of placed patches are left out if the table has been deleted.

        Args:
            service: The `scant.runs.RunService`.
            question: "ask" or "model".
            query: Query with `labels`.

        Raises:
            BadInput, Unavailable: As `RunService.explore`.
        """
        while True:
            answer: Answer = await service.explore(self.run.id, question, query)
            missing = [int(row) for row in answer.get("missing_images", ())]
            if not missing:
                return answer
            try:
                query = {**query, "images": await asyncio.to_thread(self._images, missing)}
            except NotFound:
                rest = [pair for pair in query["labels"] if pair[0] not in missing]
                query = {**query, "labels": rest}


def labels_file(pool: PoolFiles, stand: Mapping[int, Label], name: str) -> bytes:
    """Write current labels as a file of a format, unsure ones included.

    Args:
        pool: Files of the run.
        stand: The labels, by row of the pool.
        name: Name of the format.

    Raises:
        BadInput: There is no such format, or it cannot hold these labels.
        NotFound: The table has been deleted.
    """
    positions = pool.places
    if format_named(name).carries:  # the format cannot mark labels as unsure
        stand = {row: label for row, label in stand.items() if not label.unsure}
    row_of = {(positions.name(row), positions.box(row)): row for row in stand}

    def image(one: Annotation) -> bytes:
        return pool.image(row_of[one.picture, one.box])

    return write(name, annotations_of(positions, stand.values()), image)


def history_csv(pool: PoolFiles, labels: SessionLabels) -> str:
    """Return all labels in order; `stands` marks current ones, and an empty `label` a removal.

    A placed patch has no `row`.
    """
    positions, rows, stand = pool.places, pool.rows, labels.standing
    made = [
        {
            "row": int(rows[v.item]) if v.item < len(rows) else "",
            "picture": positions.name(v.item),
            **dict(zip(("left", "top", "width", "height"), positions.box(v.item) or [""] * 4)),
            "label": v.label,
            "labeler": v.labeler,
            "time": datetime.fromtimestamp(v.created, UTC).isoformat(),
            "role": v.role,
            "unsure": v.unsure,
            "stands": stand.get(v.item) is v,
        }
        for v in labels.every
        if v.item in positions.placed
    ]
    names = ["row", "picture", "left", "top", "width", "height", "label", "labeler", "time",
             "role", "unsure", "stands"]  # fmt: skip
    return _csv(pd.DataFrame(made, columns=names))


def pool_csv(pool: PoolFiles, labels: SessionLabels, answer: Answer) -> str:
    """Return all rows of the pool with predicted class and probability, given the current labels.

    With two classes the probability is that of the predicted class, otherwise that of the class of
    interest, as the column's name states.
    """
    if not answer:
        return "row,given,label,probability\n"
    run, rows, stand, p = pool.run, pool.rows, labels.standing, np.asarray(answer["p"], float)
    classes, sought = classes_of(run.metadata), positive_class(run.metadata)
    predicted = [classes[k] for k in predicted_classes(answer, run.metadata)]
    two = len(classes) == 2
    table = {
        "row": rows,
        "given": [stand[i].label if i in stand else "" for i in range(len(p))],
        "label": predicted,
        ("probability" if two else f"probability of {sought}"): (
            np.where(np.array(predicted) == sought, p, 1 - p) if two else p
        ),
    }
    return _csv(pd.DataFrame(table))


def predicted_classes(answer: Answer, metadata: Any) -> np.ndarray:
    """Return the index of the most probable class of each row."""
    if "predicted" in answer:
        return np.asarray(answer["predicted"], dtype=np.int64)
    sought = int(metadata.get("positive", 1))
    return np.where(np.asarray(answer["p"], float) > 0.5, sought, 1 - sought)


def _csv(table: pd.DataFrame) -> str:
    from scant.tables.csv_safety import safe_for_spreadsheet

    return str(safe_for_spreadsheet(table).to_csv(index=False))

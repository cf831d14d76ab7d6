"""Labels of classes in a column of numbers: codes in their place, labels in a column beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from scant.tables.cells import Cells
from scant.tables.dates import are_dates

MAX_CLASSES = 20  # of a task; more different words are probably names
ROWS_EACH = 2  # mean number of rows of a class; words that do not recur are no classes


def coded(cells: Cells, task: Cells | None, name: str) -> tuple[Cells, Cells | None]:
    """Replace labels by the codes 0, 1, … of all labels in alphabetical order.

    A task's cells are labels if none of them is a number and words recur; a word among numbers
    stays an error.

    Args:
        cells: The column.
        task: Task of each row; None: all rows belong to one.
        name: Name of the column of labels.

    Returns:
        The column with codes, and that of labels, which is None where there are none.
    """
    if not cells.bad.any() or cells.text is None or are_dates(cells):
        return cells, None
    words, filled = cells.labels(), ~cells.empty
    tasks = np.full(len(words), "") if task is None else task.labels().astype(str)
    rows = np.zeros(len(words), dtype=bool)
    for each in np.unique(tasks[cells.bad]):
        of_task = (tasks == each) & filled
        count = len(set(words[of_task]))
        most = min(MAX_CLASSES, of_task.sum() / ROWS_EACH)
        if cells.bad[of_task].all() and 2 <= count <= most:
            rows |= of_task
    if not rows.any():
        return cells, None
    values = cells.values.copy()
    values[rows] = pd.factorize(words[rows], sort=True)[0]
    labels = pc.if_else(pa.array(rows), cells.text, "")
    return (
        replace(cells, values=values, bad=cells.bad & ~rows),
        replace(cells, name=name, values=np.full(len(words), np.nan), empty=~rows, text=labels),
    )

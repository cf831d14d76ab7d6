"""The labels given on a run, as a file of annotations for `scant export --labels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scant.errors import BadInput

if TYPE_CHECKING:
    from scant.store import Store


def labels_file(run: str, form: str, store: Store) -> tuple[str, bytes]:
    """Return the file name and contents of the current labels of a run.

    Args:
        run: The run's id.
        form: Name of a format (`scant.tables.annotations.formats`).
        store: Store that holds the run.

    Raises:
        BadInput: There is no such format, or the run has no labels.
        NotFound: There is no such run, or its table was deleted.
    """
    from scant.store.label_agreement import standing
    from scant.tables.annotations.formats import format_named
    from scant_dashboard.live.run_state import load
    from scant_dashboard.pages.clamp import labels_out

    annotation_format = format_named(form)
    state = load(store, run)
    labels = standing(store.labels(run))
    if state.record.study != "clamp" or state.report is None or not labels:
        raise BadInput(f"There are no labels on the run {run!r}; label its patches on its page.")
    pool = labels_out.PoolFiles(state, store)
    return annotation_format.file, labels_out.labels_file(pool, labels, form)

"""The labels given on a run, as a file of annotations for `scant export --labels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scant.errors import BadInput

if TYPE_CHECKING:
    from scant.store import Store


def labels_file(run: str, form: str, store: Store) -> tuple[str, bytes]:
    """What the file is called, and the labels that stand on a run.

    Args:
        run: Its id.
        form: The name of a format (`scant.tables.annotations.formats`).
        store: Where it lies.

    Raises:
        BadInput: No such format, a run without labels, or of a study that asks nobody.
        NotFound: There is no such run, or its table was deleted.
    """
    from scant.store.label_agreement import standing
    from scant.tables.annotations.formats import format_named
    from scant_dashboard.live.run_state import load
    from scant_dashboard.pages.clamp import labels_out

    known = format_named(form)
    state = load(store, run)
    labels = standing(store.labels(run))
    if state.record.study != "clamp" or state.report is None or not labels:
        raise BadInput(f"There are no labels on the run {run!r}; label its patches on its page.")
    pool = labels_out.PoolFiles(state, store)
    return known.file, labels_out.labels_file(pool, labels, form)

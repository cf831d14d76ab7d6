"""`scant.fit` and `scant.load`: one generator for notebook, test, terminal and worker."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load as load_tensors

from scant.data_sources.open import open_table
from scant.deadline import Effort
from scant.errors import BadInput, NotFound
from scant.events import Event, Finished, Fitted, Progress, Report, Started
from scant.hardware import keep_freed_memory, speed
from scant.studies import Settings, entry
from scant.studies.auto import CHOSEN, Choices, fit_seconds, listed, read, used
from scant.studies.protocol import FittedStudy, Study, study_class
from scant.studies.split import counts_of
from scant.tables.schema import READING, counts
from scant.training import result_folder
from scant.training.checkpoint_format import header
from scant.training.control import Control
from scant.training.everything import changed, on_everything, once, refits
from scant.training.figures import layout
from scant.training.folds import Folds, further_folds
from scant.training.loop import choose_device, train

MOST_NOTES = 20  # on a table; a page of pixels may have one for each


class Fit(Iterator[Event]):
    """A fit in the caller's own process: iterate for its events, then ask its `study`.

    Attributes:
        study: The study being trained; after the last event it is fitted, on everything where the
            setting `refit` says so.
        control: `control.stop()` and `control.pause()` work from another thread or between events.
        table: What it is trained on; None: the study makes its own.
        steps: The curve so far.
        report: What it came to; None before its end.
    """

    def __init__(
        self,
        study: Study,
        control: Control,
        checkpoint: bytes | None,
        table: pd.DataFrame | None = None,
        own: bool = False,
        refit: Callable[[], Study] | None = None,
        budget: float = math.inf,
        folds: Folds | None = None,
        effort: Effort | None = None,
    ) -> None:
        self.study = study
        self._refit, self._everything = refit, study
        self.table = table
        self.control = control
        self.steps: list[Progress] = []
        self.report: Report | None = None
        self._metadata: Mapping[str, Any] = {}
        self._events = train(
            study,
            control,
            checkpoint,
            own=own,
            again=self._again if refit else None,
            budget=budget,
            folds=folds,
            effort=effort,
        )

    def _again(self) -> Study:
        assert self._refit is not None
        self._everything = self._refit()
        return self._everything

    def __next__(self) -> Event:
        event = next(self._events)
        match event:
            case Started():
                self._metadata = event.metadata
            case Progress():
                self.steps.append(event)
            case Fitted():
                self.study = self._everything
            case Finished():
                self.report = event.report
        return event

    def plot(self) -> Any:
        """The study's figures as a HoloViews layout, which a notebook shows.

        Raises:
            NotFound: There is no report yet; iterate to the end first.
        """
        if self.report is None:
            raise NotFound("There is no report to plot yet; iterate over the fit's events first.")
        return layout(self.study.settings.study, self.report, self._metadata, self.steps)


def fit(
    study: str,
    data: pd.DataFrame | str | Path | Sequence[str | Path] | None = None,
    *,
    device: str = "auto",
    control: Control | None = None,
    checkpoint: bytes | None = None,
    settings: Settings | None = None,
    own: bool | None = None,
    missing_codes: Sequence[float] | Mapping[str, Sequence[float]] = (),
    decimal: str | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    closed: Mapping[str, bool] | None = None,
    join: tuple[str, str] | None = None,
    **values: Any,
) -> Fit:
    """Fit a study here and now.

    Args:
        study: A name from `scant.studies.STUDIES`.
        data: A table, a file of any format (`book.xlsx#Sheet2`), several files where the study
            takes boxes, the name of one of the study's data sets, or None for its demonstration
            data.
        device: "auto", "cpu" or "cuda".
        control: To pause or stop it from elsewhere.
        checkpoint: The blob of an earlier `Checkpoint` event, to go on from there.
        settings: A settings object, in place of `values`.
        own: Whether the report compares the model with general tools (`scant.learners`) and leaves
            published figures out; None: where `data` is none of the study's data sets.
        missing_codes: Numbers that mean "not measured", such as -99; in all columns, or by header.
        decimal: "." or ",": the decimal mark of numbers in text; None: as the file shows.
        columns: Names of the schema, each with the header that is taken for it, several headers
            ("y": each is a task of its own), or "" where no column is.
        closed: Whether intervals such as 15-19 include their upper ends, by header; None: as their
            neighbors show.
        join: Headers, of a table and of a map, that name the same places; None: those whose values
            are alike.
        **values: Settings by name.

    Raises:
        BadInput: The table or a setting cannot be used; the sentence says why.
    """
    keep_freed_memory()
    spec = entry(study)
    settings = settings or spec.parse(data, values)
    table = open_table(
        spec, data, settings, missing_codes=missing_codes, decimal=decimal,
        columns=columns or {}, closed=closed or {}, join=join,
    )  # fmt: skip
    begun = time.monotonic()
    notes, place = _notes(table), choose_device(device)
    reading = table.attrs.pop(READING, {})
    seconds = fit_seconds(settings)
    scored, chosen = spec.settled(once(settings), *table.shape, counts(table, spec.table))
    make = partial(_made, study, reading, chosen, place)
    made = make(scored, table)
    first = [str(counts_of(made.metadata, len(table)) or ""), listed(read(made.metadata))]
    made.notes = [*filter(None, first), *notes, *made.notes]
    if own is None:
        own = not spec.offers(data)
    again = None
    if refits(settings):
        settled = changed(on_everything(settings), **{n: c.value for n, c in chosen.items()})
        again = partial(make, settled, table)
    folds = None
    if own:
        folds = partial(further_folds, made, scored, table, make)
    # A GPU's work is not that of the calling thread, which waits for it.
    effort = Effort(speed()) if place.type == "cpu" else None
    budget = seconds - (time.monotonic() - begun)
    return Fit(made, control or Control(), checkpoint, table, own, again, budget, folds, effort)


def _made(
    study: str,
    reading: Mapping[str, Any],
    chosen: Choices,
    place: torch.device,
    settings: Settings,
    table: pd.DataFrame,
) -> Study:
    """A study; its metadata has the headers of the user's table, these choices, and what it has
    seen in the table itself."""
    made = study_class(study)(settings, table, place)
    if reading:
        made.metadata[READING] = reading
    seen = read(made.metadata)
    if chosen or seen:
        made.metadata[CHOSEN] = {name: list(c) for name, c in {**chosen, **seen}.items()}
    return made


def _notes(table: pd.DataFrame) -> list[str]:
    """What the reader noted on a table, the first few of many.

    The table does not carry them on: pandas would copy them with every piece of it.
    """
    notes = list(table.attrs.pop("notes", ()))
    more = len(notes) - MOST_NOTES
    if more <= 1:
        return notes
    return [*notes[:MOST_NOTES], f"There are {more:,} more notes on the table."]


def restore(
    study: str, values: Mapping[str, Any], model: bytes, device: str = "auto"
) -> FittedStudy:
    """A fitted study from the blob of its `Fitted` event and the settings it was trained with."""
    meta = header(model, "meta")
    return study_class(study).restore(
        entry(study).settings.parse(used(values, meta)),
        load_tensors(model),
        meta,
        choose_device(device),
    )


def load(run: str | Path, device: str = "auto") -> FittedStudy:
    """The fitted study of a finished run.

    Args:
        run: A directory that `scant fit --out` wrote or the model file in it, or the id of a run
            in the store.
        device: "auto", "cpu" or "cuda".

    Raises:
        NotFound: There is no such run, or it left no model.
        BadInput: What the folder holds is damaged.
    """
    from scant.store import Store

    folder = Path(run)
    try:
        if folder.name == result_folder.MODEL and folder.is_file():
            folder = folder.parent
        written = folder.is_dir()
    except (OSError, ValueError):  # too long for a path, or a character that none has
        written = False
    if written:
        return _restored(f"The model in {folder}", *result_folder.read(folder), device)
    store = Store.open()
    record = store.run(str(run))
    model = store.model(str(run))
    if model is None:
        raise NotFound(f"Run {run} has left no fitted model.")
    return _restored(f"The model of run {run}", record.study, record.settings, model, device)


def _restored(
    what: str, study: str, values: Mapping[str, Any], model: bytes, device: str
) -> FittedStudy:
    """As `restore`; what a damaged file makes of it is one sentence."""
    try:
        return restore(study, values, model, device)
    except (BadInput, NotFound):
        raise
    except Exception as error:  # each study reads it in its own way
        raise BadInput(
            f"{what} is damaged or of another version of Scant; fit it again."
        ) from error

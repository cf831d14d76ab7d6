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

MOST_NOTES = 20  # listed notes on a table; a page of pixels may have one for each


class Fit(Iterator[Event]):
    """A fit in the caller's process: iterate over its events, then use `study`.

    Attributes:
        study: The study in training; fitted after the last event, on all rows if the setting
            `refit` requests it.
        control: `control.stop()` and `control.pause()` work from another thread or between events.
        table: Training table; None: the study generates its own.
        steps: Training curve so far.
        report: Report of the fit; None before the end.
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
        time_budget: float | None = None,
    ) -> None:
        self.study = study
        self._time_budget = time_budget
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
                if self._time_budget is not None:  # the two fits had parts of it
                    self.study.settings.param.update(time_budget=self._time_budget)
        return event

    def plot(self) -> Any:
        """Return the study's figures as a HoloViews layout for notebooks.

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
    """Fit a study in this process.

    Args:
        study: A name from `scant.studies.STUDIES`.
        data: A table, a file of any format (`book.xlsx#Sheet2`), several files if the study
            takes boxes, the name of one of the study's data sets, or None for its demonstration
            data.
        device: "auto", "cpu" or "cuda".
        control: Control to pause or stop the fit from another thread.
        checkpoint: The blob of an earlier `Checkpoint` event, to resume from it.
        settings: A settings object, in place of `values`.
        own: True to compare the model with general tools (`scant.learners`) in the report and omit
            published figures; None: True unless `data` is one of the study's data sets.
        missing_codes: Numbers that mean "not measured", such as -99; in all columns, or by header.
        decimal: "." or ",": the decimal mark of numbers in text; None: inferred from the file.
        columns: Header of the column for each name of the schema, several headers ("y": each is a
            task of its own), or "" for no column.
        closed: True if intervals such as 15-19 include their upper ends, by header; None: inferred
            from their neighbors.
        join: Headers of a table and of a map with the names of the same places; None: those with
            similar values.
        **values: Settings by name.

    Raises:
        BadInput: The table or a setting is invalid; the message has the reason.
    """
    keep_freed_memory()
    spec = entry(study)
    settings = settings or spec.parse(data, values)
    table = open_table(
        spec, data, settings, missing_codes=missing_codes, decimal=decimal,
        columns=columns or {}, closed=closed or {}, join=join,
    )  # fmt: skip
    start = time.monotonic()
    notes, torch_device = _notes(table), choose_device(device)
    reading = table.attrs.pop(READING, {})
    seconds = fit_seconds(settings)
    scored, chosen = spec.settled(once(settings), *table.shape, counts(table, spec.table))
    make = partial(_made, study, reading, chosen, torch_device)
    study_to_fit = make(scored, table)
    split_and_choices = [
        str(counts_of(study_to_fit.metadata, len(table)) or ""),
        listed(read(study_to_fit.metadata)),
    ]
    study_to_fit.notes = [*filter(None, split_and_choices), *notes, *study_to_fit.notes]
    if own is None:
        own = not spec.offers(data)
    make_refit = None
    if refits(settings):
        refit_settings = changed(on_everything(settings), **{n: c.value for n, c in chosen.items()})
        make_refit = partial(make, refit_settings, table)
    folds = None
    if own:
        folds = partial(further_folds, study_to_fit, scored, table, make)
    # A GPU's work is not that of the calling thread, which waits for it.
    effort = Effort(speed()) if torch_device.type == "cpu" else None
    budget = seconds - (time.monotonic() - start)
    return Fit(
        study_to_fit,
        control or Control(),
        checkpoint,
        table,
        own,
        make_refit,
        budget,
        folds,
        effort,
        None if make_refit is None else settings.values().get("time_budget"),
    )


def _made(
    study: str,
    reading: Mapping[str, Any],
    chosen: Choices,
    torch_device: torch.device,
    settings: Settings,
    table: pd.DataFrame,
) -> Study:
    """Create a study with the table's headers, `chosen`, and its own choices in the metadata."""
    result = study_class(study)(settings, table, torch_device)
    if reading:
        result.metadata[READING] = reading
    from_table = read(result.metadata)
    if chosen or from_table:
        result.metadata[CHOSEN] = {name: list(c) for name, c in {**chosen, **from_table}.items()}
    return result


def _notes(table: pd.DataFrame) -> list[str]:
    """Remove and return the reader's notes on a table, at most about `MOST_NOTES`.

    They do not stay in the table, since pandas would copy them with every part of it.
    """
    notes = list(table.attrs.pop("notes", ()))
    n_omitted = len(notes) - MOST_NOTES
    if n_omitted <= 1:
        return notes
    return [*notes[:MOST_NOTES], f"There are {n_omitted:,} more notes on the table."]


def restore(
    study: str, values: Mapping[str, Any], model: bytes, device: str = "auto"
) -> FittedStudy:
    """Restore a fitted study from the blob of its `Fitted` event and its training settings."""
    meta = header(model, "meta")
    return study_class(study).restore(
        entry(study).settings.parse(used(values, meta)),
        load_tensors(model),
        meta,
        choose_device(device),
    )


def load(run: str | Path, device: str = "auto") -> FittedStudy:
    """Load the fitted study of a finished run.

    Args:
        run: A folder from `scant fit --out` or the model file in it, or the id of a run in the
            store.
        device: "auto", "cpu" or "cuda".

    Raises:
        NotFound: There is no such run, or it has no model.
        BadInput: A file in the folder is damaged.
    """
    from scant.store import Store

    folder = Path(run)
    try:
        if folder.name == result_folder.MODEL and folder.is_file():
            folder = folder.parent
        is_folder = folder.is_dir()
    except (OSError, ValueError):  # too long for a path, or a character that none has
        is_folder = False
    if is_folder:
        return _restored(f"The model in {folder}", *result_folder.read(folder), device)
    store = Store.open()
    record = store.run(str(run))
    model = store.model(str(run))
    if model is None:
        raise NotFound(f"Run {run} has left no fitted model.")
    return _restored(f"The model of run {run}", record.study, record.settings, model, device)


def _restored(
    subject: str, study: str, values: Mapping[str, Any], model: bytes, device: str
) -> FittedStudy:
    """Call `restore`; convert any error from a damaged file to `BadInput`."""
    try:
        return restore(study, values, model, device)
    except (BadInput, NotFound):
        raise
    except Exception as error:  # studies read their tensors in different ways
        raise BadInput(
            f"{subject} is damaged or of another version of Scant; fit it again."
        ) from error

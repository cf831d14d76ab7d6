"""`scant fit`: fit a study in this process."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from scant.dashboard.cli.sentences import sentences
from scant.errors import BadInput
from scant.studies import STUDIES, Settings, entry
from scant.training.output_folder import output

if TYPE_CHECKING:
    import pandas as pd
    from scant.events import Finished, Progress
    from scant.training.api import Fit

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="One of: " + ", ".join(STUDIES))]


def fit(
    study: StudyName,
    data: Annotated[str, typer.Option(help="A CSV file, a ZIP of images, or a data set.")] = "demo",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting.")
    ] = None,
    predict: Annotated[Path | None, typer.Option(help="A CSV or ZIP file to predict.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write the result to.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Fit a study in this process. Ctrl-C stops training and keeps the result so far."""
    from scant.events import Finished, Fitted, Note, Progress, State
    from scant.training import result_folder

    with sentences():
        if predict is not None and out is None:
            raise BadInput("--predict writes predictions.csv into a folder; name it with --out.")
        if out is not None:
            result_folder.check_folder(out)
        parsed = entry(study).settings.parse(_parse(settings or []))
        run = _begin(study, data, device, parsed)
        query = _table_to_predict(study, predict, parsed) if predict is not None else None
        for text in query.attrs.pop("notes", ()) if query is not None else ():
            typer.echo(text, err=True)
        steps: list[Progress] = []
        model: bytes | None = None
        end: Finished | None = None
        for event in _with_bar(run):
            if isinstance(event, Progress):
                steps.append(event)
            elif isinstance(event, Note):
                typer.echo(event.text, err=True)
            elif isinstance(event, Fitted):
                model = event.blob
            elif isinstance(event, Finished):
                end = event
        assert end is not None
        predictions, refused = None, ""
        if query is not None and model:
            try:
                predictions = _predictions(run, query)
            except BadInput as error:  # of what the model has learned, this table lacks something
                refused = str(error)
        if out is not None:
            record = result_folder.settings_record(study, parsed.values(), data)
            with output(out):
                card = _card(study, run, data, end, model)
                result_folder.write(out, record, end, steps, model, predictions, card)
        if refused:
            _report(end, as_json)
            raise BadInput(
                f"{predict} was not predicted: {refused} The model itself is in {out}; "
                "scant.load reads it, and predicts another table without training again."
            )
    _report(end, as_json)
    if end.state in (State.DIVERGED, State.FAILED):
        raise typer.Exit(1)


def _parse(settings: list[str]) -> dict[str, str]:
    values = {}
    for word in settings:
        name, equals, value = word.partition("=")
        if not equals:
            raise BadInput(f"--set {word!r} must have the form NAME=VALUE.")
        values[name.strip()] = value
    return values


def _begin(study: str, data: str, device: str, settings: Settings) -> Fit:
    if device not in ("auto", "cpu", "cuda"):
        raise BadInput(f"--device must be auto, cpu or cuda; got {device!r}.")
    import torch
    from scant.hardware import default_threads
    from scant.training.api import fit as fit_study

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(default_threads())

    return fit_study(study, data, device=device, settings=settings)


def _with_bar(run: Fit) -> Iterator[Any]:
    """The run's events, with a progress bar on stderr; the first Ctrl-C stops the run."""
    from scant.events import Progress, Started
    from tqdm import tqdm

    before = signal.signal(signal.SIGINT, lambda *_: _stop(run, before))
    try:
        with tqdm(unit="step", file=sys.stderr, disable=None) as bar:
            for event in run:
                if isinstance(event, Started):
                    bar.reset(event.total_steps)
                elif isinstance(event, Progress):
                    bar.set_postfix_str(f"{event.elbo:.4f}", refresh=False)
                    bar.update(event.step - bar.n)
                yield event
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(run: Fit, before: Any) -> None:
    run.control.stop()
    signal.signal(signal.SIGINT, before)  # a second Ctrl-C breaks off at once


def _table_to_predict(study: str, file: Path, settings: Settings) -> pd.DataFrame:
    """Read before the training, so that a bad file costs no waiting."""
    from scant.data_sources.open import open_to_predict

    return open_to_predict(entry(study), file, settings)


def _predictions(run: Fit, table: pd.DataFrame) -> pd.DataFrame:
    from scant.tables.csv_safety import safe_for_spreadsheet

    return safe_for_spreadsheet(run.study.predict(table))


def _card(name: str, run: Fit, data: str, end: Finished, model: bytes | None) -> str:
    """The run's model card in Markdown."""
    from scant import __version__
    from scant.tables.digest import table_hash
    from scant.training.model_card import Card, markdown

    study = run.study
    return markdown(
        Card(
            entry=entry(name),
            settings=study.settings.values(),
            data=data,
            report=end.report,
            state=end.state.value,
            reason=end.reason,
            metadata=study.metadata,
            table=run.table,
            table_hash=table_hash(run.table),
            model_hash=hashlib.sha256(model).hexdigest() if model else "",
            scant_version=__version__,
            device=study.device.type,
        )
    )


def _report(end: Finished, as_json: bool) -> None:
    from scant.training.result_folder import metrics_record

    typer.echo(end.reason, err=True)
    if as_json:
        typer.echo(json.dumps(metrics_record(end), indent=2))
        return
    for metric in end.report.metrics:
        spread = "" if metric.spread is None else f" ± {metric.spread:.4g}"
        source = "" if metric.source == "run" else f"  ({metric.source})"
        typer.echo(f"{metric.method:20} {metric.name:32} {metric.value:.4g}{spread}{source}")
    made = end.report.verdict
    for line in made.sentences() if made is not None else ():
        typer.echo(line)
    if made is not None and made.take_another and made.code:
        typer.echo(made.code)

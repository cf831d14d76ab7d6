"""`scant fit`: fit a study in this process."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scant.errors import BadInput
from scant.studies import STUDIES, Settings, entry
from scant.training.output_folder import output
from scant_dashboard.cli.predict import DensityOption
from scant_dashboard.cli.printing import print_table
from scant_dashboard.cli.sentences import sentences
from scant_dashboard.controls.take_another import lines

if TYPE_CHECKING:
    from scant.events import Finished, Progress
    from scant.training.api import Fit

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="One of: " + ", ".join(STUDIES))]


def fit(
    study: StudyName,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="As --data; several, where a study takes them, are tasks, or values and a map.",
        ),
    ] = None,
    data: Annotated[
        str,
        typer.Option(help="A table, of several book.xlsx#Sheet2, a ZIP of images, or a data set."),
    ] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting.")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE|COLUMN=CODE",
            help='A number that means "not measured", such as -99, in all columns or in one.',
        ),
    ] = None,
    decimal: Annotated[
        str | None, typer.Option(help="The decimal mark, . or a comma, where a file is unclear.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Which column is a name of the study, such as y=rate; y twice: each is a task; "
            "task= for none.",
        ),
    ] = None,
    closed: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Its intervals, such as 15-19, include their ends."),
    ] = None,
    join: Annotated[
        str | None,
        typer.Option(metavar="COLUMN=COLUMN", help="By which a table and a map are joined."),
    ] = None,
    predict: Annotated[
        str | None, typer.Option(help="A table to predict, or a ZIP of images.")
    ] = None,
    densities: DensityOption = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write the result to.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    tabpfn: Annotated[
        Path | None,
        typer.Option(
            envvar="SCANT_TABPFN", help="Weights of TabPFN, file or folder: compare with it, too."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Fit a study in this process. Ctrl-C stops training and keeps the result so far."""
    from scant.events import Finished, Fitted, Note, Progress, State
    from scant.training import result_folder
    from scant.training.prediction import check_file, predict_file, result_name

    with sentences():
        if predict is not None and out is None:
            raise BadInput("--predict writes predictions.csv into a folder; name it with --out.")
        if densities and predict is None:
            raise BadInput("--densities is of predictions; name a table with --predict.")
        if out is not None:
            result_folder.check_folder(out)
        if tabpfn is not None:
            _compare_with_tabpfn(tabpfn)
        if files and data:
            raise BadInput(f"{files[0]} and --data {data} both name the data; give one of them.")
        given = data or files or "demo"
        if not isinstance(given, str) and len(given) == 1:
            given = given[0]
        values = _parse(settings or [])
        if predict is not None:  # by a fit on everything, of whatever data
            values = {**entry(study).settings.for_predictions, **values}
        parsed = entry(study).parse(given, values)
        reading = _reading(missing or [], decimal) | _columns(column or [], closed or [], join)
        run = _begin(study, given, device, parsed, reading)
        if predict is not None:  # before the training, so that a bad file costs no waiting
            for text in check_file(parsed, predict):
                typer.echo(text, err=True)
        steps: list[Progress] = []
        model: bytes | None = None
        end: Finished | None = None
        for event in _with_progress(run):
            if isinstance(event, Progress):
                steps.append(event)
            elif isinstance(event, Note):
                typer.echo(event.text, err=True)
            elif isinstance(event, Fitted):
                model = event.blob
            elif isinstance(event, Finished):
                end = event
        assert end is not None
        refused, made = "", list[Path]()
        with ExitStack() as stack:
            if predict is not None and out is not None and model:
                folder = Path(stack.enter_context(_temporary_folder(out)))
                try:
                    prediction = predict_file(
                        run.study,
                        predict,
                        folder / result_name(predict),
                        densities=densities.value if densities else "",
                    )
                    made = [prediction.path, prediction.dictionary, *prediction.beside]
                except BadInput as error:  # the table lacks columns of the training data
                    refused = str(error)
            if out is not None:
                record = result_folder.settings_record(study, parsed.values(), given) | reading
                with output(out):
                    card = _card(study, run, given, end, model)
                    result_folder.write(out, record, end, steps, model, made, card)
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
    for assignment in settings:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise BadInput(f"--set {assignment!r} must have the form NAME=VALUE.")
        values[name.strip()] = value
    return values


def _reading(missing: list[str], decimal: str | None) -> dict[str, Any]:
    """Return reading options of the file as keywords of `scant.fit`."""
    reading: dict[str, Any] = {}
    codes: dict[str, list[float]] = {}
    for option in missing:
        column, _, code = option.rpartition("=")
        try:
            codes.setdefault(column, []).append(float(code))
        except ValueError:
            raise BadInput(
                f"--missing {option!r} must be a number, or COLUMN=NUMBER; repeat it for several."
            ) from None
    if codes:
        if "" in codes and len(codes) > 1:
            raise BadInput("--missing names codes of all columns or of single ones, not of both.")
        reading["missing_codes"] = codes.get("", codes)
    if decimal is not None:
        if decimal not in (".", ","):
            raise BadInput(f"--decimal must be . or a comma; got {decimal!r}.")
        reading["decimal"] = decimal
    return reading


def _columns(columns: list[str], closed: list[str], join: str | None) -> dict[str, Any]:
    """Return column options as keywords of `scant.fit`."""
    reading: dict[str, Any] = {}
    named: dict[str, list[str]] = {}
    for assignment in columns:
        name, equals, header = assignment.partition("=")
        if not equals:
            raise BadInput(f"--column {assignment!r} must have the form NAME=COLUMN.")
        named.setdefault(name.strip(), []).append(header)
    if named:
        reading["columns"] = named
    if closed:
        reading["closed"] = dict.fromkeys(closed, True)
    if join is not None:
        of_table, equals, of_map = join.partition("=")
        if not equals:
            raise BadInput(f"--join {join!r} must have the form COLUMN=COLUMN, table before map.")
        reading["join"] = (of_table, of_map)
    return reading


def _compare_with_tabpfn(weights: Path) -> None:
    """Set the path of TabPFN's weights, and check it before the training."""
    from scant.learners.extras import WEIGHTS, tabpfn_weights

    os.environ[WEIGHTS] = str(weights)
    tabpfn_weights("")


def _begin(
    study: str, data: str | list[str], device: str, settings: Settings, reading: dict[str, Any]
) -> Fit:
    if device not in ("auto", "cpu", "cuda"):
        raise BadInput(f"--device must be auto, cpu or cuda; got {device!r}.")
    import torch

    from scant.hardware import default_threads
    from scant.training.api import fit as fit_study

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(default_threads())

    return fit_study(study, data, device=device, settings=settings, **reading)


def _with_progress(run: Fit) -> Iterator[Any]:
    """Yield the run's events, with a progress bar on stderr; the first Ctrl-C stops the run."""
    from tqdm import tqdm

    from scant.events import Finished, Progress, Started

    before = signal.signal(signal.SIGINT, lambda *_: _stop(run, before))
    try:
        with tqdm(unit="step", file=sys.stderr, disable=None) as bar:
            for event in run:
                if isinstance(event, Started):
                    bar.reset(event.total_steps)
                elif isinstance(event, Progress):
                    bar.set_postfix_str(f"{event.elbo:.4f}", refresh=False)
                    bar.update(event.step - bar.n)
                elif isinstance(event, Finished):  # often before the greatest number of steps
                    bar.total = bar.n
                yield event
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(run: Fit, before: Any) -> None:
    run.control.stop()
    signal.signal(signal.SIGINT, before)  # a second Ctrl-C interrupts immediately


def _temporary_folder(out: Path) -> TemporaryDirectory[str]:
    """Return a temporary folder on the same disk as `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    return TemporaryDirectory(prefix=".scant-", dir=out.parent)


def _card(name: str, run: Fit, data: str | list[str], end: Finished, model: bytes | None) -> str:
    """Return the run's model card in Markdown."""
    from scant import __version__
    from scant.tables.digest import table_hash
    from scant.training.model_card import Card, markdown

    study = run.study
    return markdown(
        Card(
            entry=entry(name),
            settings=study.settings.values(),
            data=data if isinstance(data, str) else ", ".join(data),
            files=() if isinstance(data, str) else tuple(data),
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
    print_table(
        ("method", "score", "value", "±", "source"),
        [(m.method, m.name, float(m.value), m.spread, m.source) for m in end.report.metrics],
    )
    made = end.report.verdict
    for line in (*made.sentences(), *lines(made)) if made is not None else ():
        typer.echo(line)
    if made is not None and made.take_another and made.code:
        typer.echo(made.code)

"""The `scant` command. Exit status: 0 done, 2 bad input (one sentence on stderr), 1 else."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from scant.dashboard.cli import users
from scant.dashboard.cli.runs import runs_app
from scant.dashboard.cli.sentences import sentences
from scant.errors import BadInput, NotFound
from scant.studies import STUDIES, Settings, entry
from scant.training.output_folder import check_writable, output

if TYPE_CHECKING:
    import pandas as pd
    from scant.events import Finished, Progress
    from scant.training.api import Fit

app = typer.Typer(
    help="Gaussian processes for scarce data, trained live in the browser.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The data sets of the studies.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(users.app, name="user")
app.add_typer(runs_app, name="runs")

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="One of: " + ", ".join(STUDIES))]


@app.command()
def serve(
    port: Annotated[int, typer.Option(envvar="PORT", help="Port; 0 for a free one.")] = 5006,
    address: Annotated[
        str,
        typer.Option(help="Address to listen on; 0.0.0.0 for all networks of this machine."),
    ] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Local worker processes; default: one per GPU, else by cores."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Dask scheduler to use instead of local workers, or SCANT_SCHEDULER."),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of database, cookie key and fetched data, or SCANT_DATA_DIR."),
    ] = None,
    auth: Annotated[
        Path | None, typer.Option(help="Require a login; the user file that `scant user` writes.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Host (HOST or HOST:PORT) whose pages may also connect to this server; "
            "repeatable, or SCANT_ALLOW_ORIGIN with commas."
        ),
    ] = None,
    limit_per_owner: Annotated[
        int, typer.Option(min=1, help="Runs that one visitor may have queued or running.")
    ] = 2,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="Proxy whose X-Forwarded headers are believed: address, network, or '*' for any; "
            "repeatable, or SCANT_TRUSTED_PROXY with commas; by default those on this machine."
        ),
    ] = None,
    frame_ancestors: Annotated[
        list[str] | None,
        typer.Option(
            help="Site (https://HOST) that may show the pages in a frame; "
            "repeatable, or SCANT_FRAME_ANCESTORS with commas."
        ),
    ] = None,
    sessions_per_address: Annotated[
        int, typer.Option(min=1, help="Pages that one network address may have open.")
    ] = 120,
    disk_reserve: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="GB of disk that stay free: below, uploads and new runs are refused; "
            "or SCANT_DISK_RESERVE; by default 1.",
        ),
    ] = None,
    limit_per_address: Annotated[
        int,
        typer.Option(min=1, help="Runs that one network address may have queued or running."),
    ] = 8,
    hours_per_run: Annotated[
        float,
        typer.Option(min=0, help="Hours on a worker after which a run is stopped; 0 for no limit."),
    ] = 2.0,
) -> None:
    """Serve the pages until Ctrl-C or SIGTERM.

    SECURITY.md lists the routes, the limits and who may do what.
    """
    from scant.dashboard.app import serve as serve_pages
    from scant.dashboard.server.options import ServerOptions

    with sentences():
        options = ServerOptions(
            port=port,
            address=address,
            open_browser=open_browser,
            workers=workers,
            scheduler=scheduler,
            data_dir=data_dir,
            auth=auth,
            allow_origin=allow_origin or (),
            limit_per_owner=limit_per_owner,
            trusted_proxy=trusted_proxy or (),
            frame_ancestors=frame_ancestors or (),
            sessions_per_address=sessions_per_address,
            disk_reserve=disk_reserve,
            limit_per_address=limit_per_address,
            hours_per_run=hours_per_run,
        )
        serve_pages(options)


@app.command()
def studies() -> None:
    """List the studies, with the settings of each."""
    for name in STUDIES:
        found = entry(name)
        typer.echo(f"{name}: {found.title}. {found.question}")
        typer.echo("  data: " + ", ".join(source.name for source in found.sources))
        for setting in found.settings.names():
            parameter = found.settings.param[setting]
            typer.echo(f"  {setting} = {parameter.default}  {_allowed(parameter)}{parameter.doc}")
        for preset, values in found.presets.items():
            chosen = ", ".join(f"{k}={v}" for k, v in values.items()) or "the defaults"
            typer.echo(f"  preset {preset}: {chosen}")


def _allowed(parameter: Any) -> str:
    if hasattr(parameter, "objects"):
        return f"[{', '.join(map(str, parameter.objects))}] "
    low, high = getattr(parameter, "bounds", None) or (None, None)
    return f"[{low} to {high}] " if low is not None or high is not None else ""


@app.command()
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
        asked = _table_to_predict(study, predict, parsed) if predict is not None else None
        for text in asked.attrs.pop("notes", ()) if asked is not None else ():
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
        if asked is not None and model:
            try:
                predictions = _predictions(run, asked)
            except BadInput as error:  # of what the model has learnt, this table lacks something
                refused = str(error)
        if out is not None:
            record = result_folder.settings_record(study, parsed.values(), data)
            with output(out):
                result_folder.write(out, record, end, steps, model, predictions)
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
    from scant.training.api import fit as fit_study

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


@data_app.command("list")
def list_data() -> None:
    """List the data sets."""
    for name in STUDIES:
        for source in entry(name).sources:
            typer.echo(f"{name:12} {source.name:10} {source.kind:10} {source.title}: {source.doc}")


@data_app.command()
def fetch(name: Annotated[str, typer.Argument(help="A fetched data set.")]) -> None:
    """Download a data set into the data directory, once."""
    from scant.data_sources.fetch import fetch as fetch_data
    from scant.data_sources.open import data_dir
    from tqdm import tqdm

    with sentences(), tqdm(unit="B", unit_scale=True, file=sys.stderr, disable=None) as bar:

        def progress(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        file = fetch_data(name, data_dir(), progress)
    typer.echo(str(file))


@data_app.command()
def sample(
    name: Annotated[str, typer.Argument(help="STUDY, or STUDY/NAME for a certain data set.")],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
) -> None:
    """Write some rows of a data set, as a file that `scant fit --data` takes."""
    from scant.data_sources.open import sample as draw
    from scant.tables.csv_safety import safe_for_spreadsheet

    study, _, source = name.partition("/")
    with sentences():
        frame = draw(entry(study), source or "demo", rows, seed)
        with output(out):
            safe_for_spreadsheet(frame).to_csv(out, index=False)
    typer.echo(f"{len(frame)} rows in {out}", err=True)


@data_app.command()
def births(
    file: Annotated[Path, typer.Argument(help="asfrRRbo.txt of the Human Fertility Database.")],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    country: Annotated[str | None, typer.Option(help="Its code, such as CAN.")] = None,
    step: Annotated[int, typer.Option(min=2, help="Width of the boxes, in years.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rows held out.")] = 0,
) -> None:
    """Turn birth rates by age and year into a table for the aggregation page."""
    from scant.data_sources.human_fertility import read_rates
    from scant.studies.aggregation.simulate.fertility import experiment

    with sentences():
        frame = experiment(read_rates(file, country=country), step, seed=seed)
        with output(out):
            frame.to_csv(out, index=False)
    typer.echo(f"{len(frame)} rows in {out}", err=True)


@app.command()
def reproduce(
    study: Annotated[str, typer.Argument(metavar="STUDY|all", help="A study, or all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything: minutes.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(envvar="SCANT_REAL_DATA", help="Folder of the publications' data sets."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for result_folder.csv and result_folder.html.")
    ] = None,
) -> None:
    """Print the publications' tables: our figures beside theirs."""
    from scant.reproduce import runner

    with sentences():
        _, faults = runner.reproduce(
            runner.studies_named(study),
            quick=quick,
            folder=runner.checked(data),
            out=out,
            say=typer.echo,
            whisper=partial(typer.echo, err=True),
        )
    for name, fault in faults.items():
        typer.echo(f"scant: {name}: {fault}", err=True)
    if faults:
        raise typer.Exit(1)


@app.command()
def bench(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY|MODEL]", help="One study or model; else all models."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.csv and bench.html.")] = None,
    device: Annotated[str, typer.Option(help="auto (CPU, and CUDA if any), cpu or cuda.")] = "auto",
    quick: Annotated[bool, typer.Option(help="Fewer sizes, in under a minute.")] = False,
) -> None:
    """Measure the speed of the engine on this machine, beside GPyTorch and scikit-learn.

    Of a model: its cost against its sizes. Of a study: what one of its training steps takes.
    """
    with sentences():
        if device not in ("auto", "cpu", "cuda"):
            raise BadInput(f"--device must be auto, cpu or cuda; got {device!r}.")
        from scant import bench as speed

        if what is not None and what not in speed.MODELS:
            _study_speed(what, out is not None or quick or device != "auto")
            return
        if out is not None:
            check_writable(out)
        _measure(what, out, device, quick)


def _study_speed(name: str, options: bool) -> None:
    from scant import bench as speed

    try:
        entry(name)
    except NotFound as error:
        models = ", ".join(map(repr, speed.MODELS))
        raise NotFound(f"{error} Nor is it one of the models: {models}.") from None
    if options:
        raise BadInput(f"--out, --device and --quick are for models; {name!r} is a study.")
    typer.echo(speed.bench(name).to_string(index=False))


def _measure(model: str | None, out: Path | None, device: str, quick: bool) -> None:
    """Time the models, say it, and write it where that is asked for."""
    from scant.bench import table as tables
    from tqdm import tqdm

    on = tables.devices(device)
    with tqdm(total=100, unit="%", file=sys.stderr, disable=None) as bar:

        def said(text: str, share: float) -> None:
            bar.set_postfix_str(text, refresh=False)
            bar.update(round(100 * share) - bar.n)

        table = tables.measure(model, on, quick, said)
    sentences = tables.circumstances(table, on, quick)
    typer.echo("\n".join(sentences) + "\n\n" + tables.as_text(table))
    if out is not None:
        from scant.dashboard.bench_page import page

        html = page(table, tables.growth(table), sentences)
        with output(out):
            out.mkdir(parents=True, exist_ok=True)
            tables.write_csv(table, sentences, out / "bench.csv")
            (out / "bench.html").write_text(html, encoding="utf-8")
    failed = int(table["ms"].isna().sum())
    if failed:
        typer.echo(f"scant: {failed} cases failed; the column note says why.", err=True)
        raise typer.Exit(1)

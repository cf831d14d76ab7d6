"""`scant export`: a run of a server's database as one file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from scant.errors import BadInput, Unavailable
from scant.training.output_folder import output
from scant_dashboard.cli.runs import DataDir, opened_store
from scant_dashboard.cli.sentences import sentences

if TYPE_CHECKING:
    from scant.store import Store

FORMATS = ("html", "ipynb", "zip")


def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's id; demo-STUDY is a demonstration.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write; otherwise it is named after the run.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="html|ipynb|zip",
            help="html: a page that replays the run and opens from disk. ipynb: a notebook that "
            "trains it again. zip: both, with script, figures in numbers, model, model card and "
            "own table. Without it, the ending of --out says which, else html.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="csv|label-studio|coco|yolo|imagefolder",
            help="Write the labels that people gave on a clamp run, in place of the run.",
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Write a run, or the labels given on it, as one file. The server need not be up."""
    if labels is not None:
        with sentences(Unavailable):
            if form is not None:
                raise BadInput("--labels and --format say two things; give one of them.")
            _write_labels(run, labels, out, data_dir)
        return
    with sentences(Unavailable):
        form = form or (out.suffix.lower().removeprefix(".") if out is not None else FORMATS[0])
        if form not in FORMATS:
            raise BadInput(f"--format must be one of {', '.join(FORMATS)}; got {form!r}.")
        out = out or Path(f"{run}.{form}")
        with _store_with(run, data_dir) as store:
            made = _exported(run, form, store)
        _write(out, made)


def _write_labels(run: str, form: str, out: Path | None, data_dir: Path | None) -> None:
    from scant_dashboard.cli.labels import labels_file

    with _store_with(run, data_dir) as store:
        name, made = labels_file(run, form.replace("-", " "), store)
    _write(out or Path(f"{run}.{name}"), made)


def _write(out: Path, made: bytes) -> None:
    with output(out):
        part = out.with_name(f".{out.name}.part")
        try:
            part.write_bytes(made)
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
    typer.echo(f"{out}: {len(made):,} bytes", err=True)


def _exported(run: str, form: str, store: Store) -> bytes:
    import asyncio

    from scant_dashboard import export as exports
    from scant_dashboard.live.run_state import load

    state = load(store, run)
    if form == "ipynb":
        return exports.notebook(state)
    from scant_dashboard.static_page.make import prepare
    from scant_dashboard.static_page.replay import replay_file

    prepare()
    replay = asyncio.run(replay_file(run, store)).encode()
    return replay if form == "html" else exports.archive(state, store, replay)


@contextmanager
def _store_with(run: str, data_dir: Path | None) -> Iterator[Store]:
    """Open the server's database; without one, import a demonstration's recording."""
    from scant.data_dir import data_dir as folder
    from scant.store import Store

    there = os.environ.get("DATABASE_URL") or ((data_dir or folder()) / "scant.db").is_file()
    if there or not run.startswith("demo-"):
        with opened_store(data_dir) as store:
            yield store
        return
    with TemporaryDirectory() as temporary:
        store = Store.open(f"sqlite:///{Path(temporary) / 'scant.db'}")
        try:
            store.import_shipped([run.removeprefix("demo-")])
            yield store
        finally:
            store.close()

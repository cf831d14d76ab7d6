"""`scant runs`: list, stop and delete runs through the database, for operators.

No server need be running; a running one executes requests within a second or two.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scant.errors import BadInput, Unavailable
from scant_dashboard.cli.printing import print_table
from scant_dashboard.cli.sentences import sentences

if TYPE_CHECKING:
    from scant.store import RunRecord, Store

PATIENCE_SECONDS = 60.0  # that `delete --stop` waits for a run to end

runs_app = typer.Typer(
    help="List, stop and delete the runs of a server (for its operator).", no_args_is_help=True
)

DataDir = Annotated[
    Path | None, typer.Option(help="The server's --data-dir; ignored where DATABASE_URL is set.")
]
Ids = Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs.")]


@runs_app.command("list")
def list_runs(
    live: Annotated[
        bool, typer.Option("--live", help="Only runs that are queued or running.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; times in seconds.")] = False,
    data_dir: DataDir = None,
) -> None:
    """List the runs, newest first."""
    with sentences(Unavailable), opened_store(data_dir) as store:
        rows = [_row(store, run) for run in store.runs() if not live or _is_live(run)]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    print_table(
        ("run", "study", "state", "owner", "age h", "step", "hours"),
        [
            (
                *(row[name] for name in ("id", "study", "state", "owner")),
                round(row["age"] / 3600, 1),
                row["step"],
                round(row["used"] / 3600, 2),
            )
            for row in rows
        ],
    )


# Run ids of version 0.1.0 may begin with a hyphen.
_IDS = {"ignore_unknown_options": True}


@runs_app.command(context_settings=_IDS)
def stop(runs: Ids, data_dir: DataDir = None) -> None:
    """Stop runs. If a server is up, each run ends with its best parameters so far as its model."""
    with sentences(Unavailable), opened_store(data_dir) as store:
        for run in runs:
            typer.echo(f"{run}: {stop_run(store, run)}", err=True)


@runs_app.command(context_settings=_IDS)
def delete(
    runs: Ids,
    stop_first: Annotated[
        bool, typer.Option("--stop", help="Stop the runs first that are queued or running.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Required to delete more than one run.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Delete runs with their curves, models and labels."""
    with sentences(Unavailable), opened_store(data_dir) as store:
        if len(runs) > 1 and not yes:
            raise BadInput(f"This would delete {len(runs)} runs for good; add --yes to do so.")
        for run in runs:
            if stop_first and _is_live(store.run(run)):
                stop_run(store, run)
                _await_end(store, run)
            store.remove_run(run)
            typer.echo(f"{run}: deleted", err=True)


def stop_run(store: Store, run: str) -> str:
    """Request that a run be stopped, by the server that executes it or another; return the outcome.

    Raises:
        NotFound: There is no such run.
    """
    from scant.events import Changed, Finished, State

    record = store.run(run)
    if record.state.final:
        return f"is over already ({record.state})"
    if store.is_claimed(run):
        store.wish(run, "stop")
        return "its server was told to stop it"
    if store.served():  # a server adopts and concludes the orphaned run
        store.write(run, [Changed(State.STOPPING)])
        return "a server will conclude it"
    reason = "Stopped by the operator while no server was up, so there is no model."
    store.write(run, [Finished(State.STOPPED, reason)])
    return "stopped without a model, for no server is up"


def _await_end(store: Store, run: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while _is_live(store.run(run)):
        if time.monotonic() > until:
            raise BadInput(
                f"Run {run} did not end within {PATIENCE_SECONDS:g} s and was not deleted; "
                "see `scant runs list`, and try again once it has ended."
            )
        time.sleep(0.2)


def _is_live(run: RunRecord) -> bool:
    from scant.events import State

    return not run.state.final and run.state is not State.PAUSED


def _row(store: Store, run: RunRecord) -> dict[str, Any]:
    login = run.owner.startswith("user:")
    return {
        "id": run.id,
        "study": run.study,
        "state": run.state.value,
        "owner": run.owner if login else run.owner[:8] or "-",
        "age": round(time.time() - run.created, 1),
        "step": store.last_step(run.id),
        "used": round(store.used_seconds(run.id), 1),
    }


@contextmanager
def opened_store(data_dir: Path | None) -> Iterator[Store]:
    """Open the existing database of a server."""
    from scant.data_dir import data_dir as folder
    from scant.store import Store

    if data_dir is not None:
        os.environ["SCANT_DATA_DIR"] = str(data_dir)
    if not os.environ.get("DATABASE_URL") and not (folder() / "scant.db").is_file():
        raise BadInput(
            f"There is no database scant.db in {folder()}; name the folder that the server was "
            "given by --data-dir, or its DATABASE_URL."
        )
    store = Store.open()
    try:
        yield store
    finally:
        store.close()

"""`scant serve`: the pages, until Ctrl-C or SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scant_dashboard.cli.sentences import sentences


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
            help="Further name of this server (HOST or HOST:PORT), or host whose pages connect; "
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
    prefix: Annotated[
        str,
        typer.Option(
            envvar="SCANT_PREFIX",
            help="Path under which a proxy shows this server, such as /scant; "
            "needless where the proxy sends X-Forwarded-Prefix.",
        ),
    ] = "",
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
    given = {name: value for name, value in locals().items() if value is not None}
    from scant_dashboard.launch import serve as serve_pages
    from scant_dashboard.server.options import ServerOptions

    with sentences():
        serve_pages(ServerOptions(**given))

"""The operator's options of a server, filled by `scant serve`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scant_dashboard.limits.sessions import PER_ADDRESS


@dataclass(frozen=True)
class ServerOptions:
    """How a server listens, whom it lets in, and what it lets them take.

    Attributes:
        port: Where to listen; 0 takes a free one.
        address: "127.0.0.1" for this machine only, "0.0.0.0" for all.
        open_browser: Open the gallery in the user's browser once it is up.
        workers: Worker processes of the local cluster; None decides by GPUs and cores.
        scheduler: Address of an existing Dask scheduler to use instead.
        data_dir: Where runs and uploads are kept; None is the user's data directory.
        auth: File of `scant user`; every visitor must log in as one of its users.
        allow_origin: Further hosts ("host" or "host:port") whose pages may talk to this server;
            also taken from SCANT_ALLOW_ORIGIN, separated by commas.
        limit_per_owner: Runs that one visitor may have at once.
        trusted_proxy: Addresses or networks of proxies whose X-Forwarded-For and
            X-Forwarded-Proto count, "*" for any; also taken from SCANT_TRUSTED_PROXY. If none is
            given, those on this machine.
        prefix: Path under which a proxy shows the server, such as /scant, where it does not say so.
        frame_ancestors: Sites that may show the pages in a frame; also taken from
            SCANT_FRAME_ANCESTORS.
        sessions_per_address: Pages that one network address may have open at once.
        disk_reserve: GB of the disk that stay free; None: SCANT_DISK_RESERVE, else 1.
        limit_per_address: Runs that one network address may have at once.
        hours_per_run: Hours that a run may take; 0 for no limit.
    """

    port: int = 5006
    address: str = "127.0.0.1"
    open_browser: bool = False
    workers: int | None = None
    scheduler: str | None = None
    data_dir: Path | None = None
    auth: Path | None = None
    allow_origin: Sequence[str] = ()
    limit_per_owner: int = 2
    trusted_proxy: Sequence[str] = ()
    prefix: str = ""
    frame_ancestors: Sequence[str] = ()
    sessions_per_address: int = PER_ADDRESS
    disk_reserve: float | None = None
    limit_per_address: int = 8
    hours_per_run: float = 2.0

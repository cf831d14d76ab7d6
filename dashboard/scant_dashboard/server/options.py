"""The operator's options of a server, filled by `scant serve`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scant_dashboard.limits.sessions import PER_ADDRESS


@dataclass(frozen=True)
class ServerOptions:
    """Address, workers, access and limits of a server.

    Attributes:
        port: Port; 0 for a free one.
        address: "127.0.0.1" for this machine only, "0.0.0.0" for all networks.
        open_browser: Whether to open the gallery in the user's browser.
        workers: Number of local worker processes; None to decide by GPUs and cores.
        scheduler: Address of an existing Dask scheduler to use instead of local workers.
        data_dir: Folder of runs and uploads; None for the user's data directory.
        auth: User file of `scant user`; if given, all visitors must log in.
        allow_origin: Further hosts ("host" or "host:port") whose pages may connect; also taken from
            SCANT_ALLOW_ORIGIN, separated by commas.
        limit_per_owner: Maximum number of queued and running runs per visitor.
        trusted_proxy: Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto
            are trusted, "*" for any; also taken from SCANT_TRUSTED_PROXY. By default, those on this
            machine.
        prefix: Path under which a proxy serves this server, such as /scant, unless the proxy sends
            it.
        frame_ancestors: Sites that may embed the pages in a frame; also taken from
            SCANT_FRAME_ANCESTORS.
        sessions_per_address: Maximum number of open pages per network address.
        disk_reserve: Free disk space in GB below which new runs and uploads are refused; None for
            SCANT_DISK_RESERVE, or 1.
        limit_per_address: Maximum number of queued and running runs per network address.
        hours_per_run: Time limit of a run in hours; 0 for none.
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

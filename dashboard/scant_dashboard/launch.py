"""`scant serve`: workers start while this process imports the pages, which takes equally long."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from tornado.ioloop import IOLoop

from scant.data_dir import data_dir
from scant.hardware import keep_little_freed_memory
from scant.runs import RunService
from scant.store import Store
from scant.store.private_files import private_folder
from scant.store.quota import disk_reserve
from scant_dashboard.auth.visitor_cookie import secret
from scant_dashboard.server.listening import check_address, writing_to
from scant_dashboard.server.options import ServerOptions


def serve(options: ServerOptions) -> None:
    """Serve the dashboard until SIGINT or SIGTERM.

    Raises:
        BadInput: See `scant_dashboard.app.serve`; or the data directory cannot be used.
    """
    keep_little_freed_memory()
    if options.data_dir is not None:
        os.environ["SCANT_DATA_DIR"] = str(options.data_dir)
    if options.disk_reserve is not None:
        os.environ["SCANT_DISK_RESERVE"] = str(options.disk_reserve)
    disk_reserve()  # raises on an invalid size
    folder = data_dir()
    check_address(options.port, options.address)
    with writing_to(folder):
        private_folder(folder)  # holds the key that signs cookies
        key = secret(folder)
    service = RunService(
        Store.open(),
        workers=options.workers,
        scheduler=options.scheduler,
        limit_per_owner=options.limit_per_owner,
        limit_per_address=options.limit_per_address,
        hours_per_run=options.hours_per_run,
        key=key,
    )
    loop = IOLoop.current()

    async def imported() -> None:
        service.begin()
        await asyncio.to_thread(import_module, "scant_dashboard.app")

    with uncollected():
        loop.run_sync(imported)
    import_module("scant_dashboard.app").serve(service, folder, key, options)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection, which takes a tenth of the import time and finds nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()  # imported objects are permanent

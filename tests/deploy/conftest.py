"""What the README says of deploying, on this machine: other processes, other users, no mocks."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.browser.conftest import browser_type_launch_args as browser_type_launch_args
from tests.browser.conftest import free_port

SECONDS = 60  # for a process to come up on a busy machine


def postgres_program(name: str) -> str | None:
    """Where a program of PostgreSQL is; Debian keeps the server's out of the path."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(versions[-1]) if versions else None)


@dataclass
class Postgres:
    """A throw-away PostgreSQL database that may be stopped for a while."""

    url: str
    start: Callable[[], None]
    stop: Callable[[], None]


@pytest.fixture(scope="session")
def postgres(postgres_server: Postgres) -> str:
    """The address of a throw-away PostgreSQL database, listening on this machine only."""
    return postgres_server.url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A throw-away PostgreSQL database, listening on this machine only."""
    initdb, pg_ctl = postgres_program("initdb"), postgres_program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")
    # PostgreSQL refuses to be run by root, and others cannot look into pytest's folder.
    user = "nobody" if os.getuid() == 0 else None
    folder, port = Path(tempfile.mkdtemp(prefix="scant-postgres-")), free_port()
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data, log = str(folder / "data"), str(folder / "log")

    def do(*command: str) -> None:
        done = subprocess.run(command, cwd=folder, user=user, capture_output=True, text=True)
        if done.returncode:
            said = Path(log).read_text() if Path(log).exists() else ""
            pytest.fail(f"{command[0]} failed:\n{done.stdout}{done.stderr}{said}")

    try:
        do(initdb, "-D", data, "-U", "scant", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        start = ("-D", data, "-l", log, "-o", f"{options} -c fsync=off", "-t", str(SECONDS), "-w")
        stop = ("-D", data, "-m", "immediate")
        do(pg_ctl, "start", *start)
        yield Postgres(
            f"postgres://scant@127.0.0.1:{port}/postgres",
            lambda: do(pg_ctl, "start", *start),
            lambda: do(pg_ctl, "stop", *stop),
        )
        do(pg_ctl, "stop", *stop)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

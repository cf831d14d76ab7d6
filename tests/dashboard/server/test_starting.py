"""A server that cannot start says why in one sentence, and leaves nothing behind."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scant.errors import BadInput
from scant.store import Store
from scant_dashboard.cli.main import app


def refused(result: Result, *parts: str) -> None:
    """Status 2, one sentence on stderr."""
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("scant: ")
    for word in parts:
        assert word in line


def serve(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["serve", "--data-dir", str(data), *arguments])


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("SCANT_DATA_DIR", "set back after `serve` changes it")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--port", "99999"], "no port 99999"),
        (["--port", "-1"], "no port -1"),
        (["--port", "0", "--address", "203.0.113.9"], "'203.0.113.9' is no address of this"),
        (["--port", "0", "--address", "no.such.host.invalid"], "is no address of this machine"),
        (["--port", "0", "--address", "300.1.1.1"], "is no address of this machine"),
        (["--port", "0", "--address", "a" * 300], "is no address of this machine"),
    ],
)
def test_where_nothing_can_listen(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    refused(serve(tmp_path / "data", *arguments), sentence)
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused(serve(tmp_path / "data", "--port", str(port)), f"Port {port}", "is in use")
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_this_user_may_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> list[socket.socket]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(
        "scant_dashboard.server.listening.bind_sockets", denied
    )  # root may open any
    refused(serve(tmp_path / "data", "--port", "80"), "may not be opened", "1024")


@pytest.mark.slow
@pytest.mark.parametrize("address", ["nonsense", "ucx://127.0.0.1:1"])
def test_a_scheduler_that_does_not_answer(address: str, tmp_path: Path) -> None:
    """It used to be a traceback, and a server that could train nothing."""
    arguments = ("serve", "--port", "0", "--data-dir", str(tmp_path), "--scheduler", address)
    script = (
        "from scant.runs.workers import cluster; cluster.CONNECT_SECONDS = 0.3;"
        "from scant_dashboard.cli.main import app; app()"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"scant: No Dask scheduler answers at {address}; check the address")


def test_a_data_folder_that_cannot_be_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for folder in (file, file / "data", Path("/proc/scant"), tmp_path / ("n" * 300)):
        refused(serve(folder, "--port", "0"), "data folder", "--data-dir")
    assert file.read_text() == "mine"


def test_a_data_folder_whose_database_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "scant.db").write_text("a shopping list, long enough to be a database" * 20)
    refused(serve(tmp_path, "--port", "0"), "cannot be opened", "not a database")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "address of the database cannot be read"),
        ("postgresql://u:secret@h:port/x", "address of the database cannot be read"),
        ("oracle+nothing://u:secret@h/x", "address of the database cannot be read"),
        ("sqlite:////proc/scant/x.db", "unable to open database file"),
        ("sqlite:////proc", "unable to open database file"),
        ("mysql://u:secret@h/x", "needs the package"),
    ],
)
def test_an_address_that_leads_to_no_database(url: str, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        Store.open(url)
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_postgres_that_does_not_answer() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(BadInput, match="cannot be opened") as caught:
        Store.open("postgres://u:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)


def test_a_text_file_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("a shopping list" * 100)
    with pytest.raises(BadInput, match="file is not a database"):
        Store.open(f"sqlite:///{file}")
    assert file.read_text() == "a shopping list" * 100

"""Other users of the machine cannot look into the database, nor into a folder that is ours."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from scant.errors import BadInput
from scant.store import Store
from scant.store.private_files import private_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no modes of files here")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    before = os.umask(0)
    monkeypatch.setattr(os, "umask", lambda _: before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def opened(folder: Path) -> dict[str, int]:
    """The modes of the database's files while it is written."""
    store = Store.open()
    with store.engine.begin() as db:
        db.exec_driver_sql("create table if not exists t (x)")
        result = {path.name: mode(path) for path in folder.glob("scant.db*")}
    store.close()
    return result


def test_database_and_folder_are_closed_from_the_beginning(folder: Path) -> None:
    assert opened(folder) == dict.fromkeys(("scant.db", "scant.db-wal", "scant.db-shm"), 0o600)
    assert mode(folder) == 0o700


def test_what_an_earlier_version_left_open_is_closed(folder: Path) -> None:
    opened(folder)
    folder.chmod(0o755)
    for name in ("scant.db", "scant.db-wal", "scant.db-shm"):
        (folder / name).touch()
        (folder / name).chmod(0o644)
    assert set(opened(folder).values()) == {0o600}
    assert mode(folder) == 0o700


def test_a_folder_with_other_things_in_it_stays_as_it_is(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.tex").touch()
    folder.chmod(0o755)
    private_folder(folder)
    assert mode(folder) == 0o755
    assert opened(folder)["scant.db"] == 0o600


def test_a_folder_named_as_the_database_stays_as_it_is(tmp_path: Path) -> None:
    """It was closed to 0600, and nothing in it could be reached: a home directory, /proc."""
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(BadInput):
        Store.open(f"sqlite:///{folder}")
    assert mode(folder) == 0o755

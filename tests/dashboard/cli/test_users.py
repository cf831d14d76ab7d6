"""The user file and `scant user`: no plain password anywhere, nobody else reads it, never half."""

from __future__ import annotations

import json
import logging
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scant.errors import BadInput
from scant_dashboard.auth import accounts
from scant_dashboard.auth.accounts import (
    Accounts,
    hash_password,
    read_users,
    verify_password,
    write_users,
)
from scant_dashboard.cli.main import app

PASSWORD = "lovelace 1815"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users.json"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that cost nothing."""
    monkeypatch.setattr(accounts, "LOG2_N", 4)


def scant(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["user", *map(str, arguments)], input=text)


def add(name: str, file: Path, password: str = PASSWORD) -> Result:
    return scant("add", name, "--file", file, "--password-stdin", text=password + "\n")


def refused(result: Result, sentence: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("scant: ")
    assert len(result.stderr.strip().splitlines()) == 1
    assert sentence in result.stderr
    assert PASSWORD not in result.output


@pytest.mark.slow
def test_a_hash_is_as_strong_as_owasp_wants_and_salted() -> None:
    first, second = hash_password(PASSWORD), hash_password(PASSWORD)
    assert first.startswith("$scrypt$ln=15,r=8,p=3$")
    assert first != second
    assert verify_password(PASSWORD, first)
    assert not verify_password(PASSWORD + " ", first)
    assert not verify_password("", first)


@pytest.mark.usefixtures("quick")
def test_a_password_is_the_same_however_the_keyboard_composes_it() -> None:
    assert verify_password("caf\u00e9 noir", hash_password("cafe\u0301 noir"))


@pytest.mark.parametrize(
    "encoded",
    [
        "lovelace",
        "",
        "$scrypt$ln=15,r=8,p=3$c2FsdHNhbHQ$",
        "$scrypt$ln=0,r=8,p=3$c2FsdHNhbHRzYWx0$c2FsdHNhbHRzYWx0c2FsdHNhbHQ",
        "$scrypt$ln=40,r=8,p=3$c2FsdHNhbHRzYWx0$c2FsdHNhbHRzYWx0c2FsdHNhbHQ",
        "$scrypt$ln=15,r=8,p=99$c2FsdHNhbHRzYWx0$c2FsdHNhbHRzYWx0c2FsdHNhbHQ",
        "$scrypt$ln=15,r=8,p=3$c2$c2FsdHNhbHRzYWx0c2FsdHNhbHQ",
        "$scrypt$ln=15,r=8,p=3$c2FsdHNhbHRzYWx0$c2FsdHNhbHRzYWx0c2FsdHNhbHQ\n",
    ],
)
def test_what_is_no_hash_of_ours_is_not_compared_with(encoded: str) -> None:
    with pytest.raises(ValueError, match=r"hash|parameters|short|base64"):
        verify_password(PASSWORD, encoded)


@pytest.mark.usefixtures("quick")
def test_users_are_added_listed_and_removed(file: Path) -> None:
    assert add("bob", file).output == f"bob was added to {file}.\n"
    assert add("ada", file).exit_code == 0
    assert scant("list", "--file", file).output == "ada\nbob\n"
    before = read_users(file)
    assert add("ada", file, "another password").output == "ada has a new password.\n"
    after = read_users(file)
    assert before["bob"] == after["bob"]
    assert verify_password("another password", after["ada"])
    assert scant("remove", "bob", "--file", file).exit_code == 0
    assert scant("list", "--file", file).output == "ada\n"
    refused(scant("remove", "bob", "--file", file), "There is no user 'bob'")


@pytest.mark.usefixtures("quick")
def test_the_file_is_the_owners_alone_and_holds_no_password(file: Path) -> None:
    old = os.umask(0)
    try:
        add("ada", file)
        assert file.stat().st_mode & 0o777 == 0o600
        add("bob", file)
    finally:
        os.umask(old)
    assert file.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in file.read_text()
    assert [path.name for path in file.parent.iterdir()] == ["users.json"]  # no half one is left


@pytest.mark.usefixtures("quick")
def test_without_a_file_it_is_the_data_directorys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path / "data"))
    assert scant("add", "ada", "--password-stdin", text=PASSWORD).exit_code == 0
    assert list(read_users(tmp_path / "data" / "users.json")) == ["ada"]
    assert scant("list").output == "ada\n"


@pytest.mark.usefixtures("quick")
def test_a_reader_finds_the_old_file_or_the_new_one(file: Path) -> None:
    some, many = {"a": hash_password(PASSWORD)}, {f"u{i}": hash_password("x") for i in range(500)}
    write_users(file, some)
    over = threading.Event()

    def write() -> None:
        for _ in range(20):
            write_users(file, many)
            write_users(file, some)
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    sizes = set()
    while not over.is_set():
        sizes.add(len(read_users(file)))
    writer.join()
    assert sizes <= {1, 500}


@pytest.mark.usefixtures("quick")
def test_a_file_that_cannot_be_replaced_stays(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add("ada", file)
    before = file.read_text()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused(add("bob", file), "cannot be written (No space left on device)")
    assert file.read_text() == before
    assert [path.name for path in file.parent.iterdir()] == ["users.json"]


@pytest.mark.parametrize(
    ("name", "password", "sentence"),
    [
        ("ada", "short", "has 5 characters; give 8 to 1024"),
        ("ada", "x" * 1025, "has 1025 characters"),
        ("ada", "bell \x07 bell", "control characters"),
        ("ada", "two\nlines of it", "has 2 lines"),
        (" ada", PASSWORD, "cannot be a user's name"),
        ("a\nda", PASSWORD, "cannot be a user's name"),
        ("", PASSWORD, "cannot be a user's name"),
        ("a" * 65, PASSWORD, "cannot be a user's name"),
        ("a/b", PASSWORD, "cannot be a user's name"),
    ],
)
def test_what_cannot_be_a_user_is_refused_in_a_sentence(
    name: str, password: str, sentence: str, file: Path
) -> None:
    refused(add(name, file, password), sentence)
    assert not file.exists()


def test_the_password_is_no_argument(file: Path) -> None:
    assert scant("add", "ada", PASSWORD, "--file", file).exit_code == 2
    assert scant("add", "ada", "--password", PASSWORD, "--file", file).exit_code == 2
    refused(scant("add", "ada", "--file", file, text=PASSWORD), "give --password-stdin")


def typed(file: Path, *lines: str) -> tuple[int, str]:
    """Status and screen of `scant user add ada` at a terminal."""
    ours, theirs = pty.openpty()
    code = "from scant_dashboard.cli.main import app; app()"
    command = [sys.executable, "-c", code, "user", "add", "ada", "--file", str(file)]
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    child = subprocess.Popen(command, **streams, start_new_session=True)  # type: ignore[call-overload]
    os.close(theirs)
    screen = b""
    for line in lines:
        while not screen.endswith(b": "):
            screen += os.read(ours, 1024)
        os.write(ours, line.encode() + b"\n")
        screen += b"\n"
    while True:
        try:
            more = os.read(ours, 1024)
        except OSError:  # how Linux ends a terminal
            break
        if not more:
            break
        screen += more
    os.close(ours)
    return child.wait(30), screen.decode()


@pytest.mark.slow
def test_a_typed_password_is_not_shown_and_must_be_typed_twice(file: Path) -> None:
    status, screen = typed(file, PASSWORD, PASSWORD + "x")
    assert status == 2
    assert "The two passwords differ" in screen
    status, screen = typed(file, PASSWORD, PASSWORD)
    assert status == 0, screen
    assert "Password for ada: " in screen
    assert PASSWORD not in screen
    assert verify_password(PASSWORD, read_users(file)["ada"])


@pytest.mark.usefixtures("quick")
def test_a_file_of_version_01_is_refused_until_it_is_converted(file: Path) -> None:
    file.write_text(json.dumps({"Ada Lovelace": PASSWORD, "bob": "ross"}))
    file.chmod(0o644)
    with pytest.raises(BadInput, match=f"plain password.*scant user convert --file {file}") as told:
        Accounts(file)
    assert PASSWORD not in str(told.value)
    assert scant("convert", "--file", file).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "ross" not in file.read_text()
    converted = Accounts(file)
    assert converted.authenticate("bob", "ross")
    assert converted.authenticate("Ada Lovelace", PASSWORD)
    before = file.read_text()
    assert scant("convert", "--file", file).output.startswith("0 passwords")
    assert file.read_text() == before


@pytest.mark.usefixtures("quick")
def test_a_file_that_others_may_read_is_refused(file: Path) -> None:
    add("ada", file)
    for mode in (0o644, 0o640, 0o604, 0o660):
        file.chmod(mode)
        with pytest.raises(BadInput, match=f"mode {mode:04o}.*chmod 600"):
            Accounts(file)
        refused(add("bob", file), "chmod 600")
    file.chmod(0o400)
    assert Accounts(file).users()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ada: lovelace", "no JSON object"),
        ('["ada"]', "no JSON object"),
        ("\xff", "no JSON object"),
        ("{}", "holds no users; add one by `scant user add"),
        ('{"ada": ""}', "'ada' in the user file .* has no password"),
        ('{"ada": null}', "'ada' in the user file .* has no password"),
        ('{"a\\nda": "x"}', "cannot be a user's name"),
    ],
)
def test_what_is_no_user_file_is_refused_in_a_sentence(
    text: str, sentence: str, file: Path
) -> None:
    file.write_text(text, encoding="latin-1")
    file.chmod(0o600)
    with pytest.raises(BadInput, match=sentence):
        Accounts(file)


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(BadInput, match=f"There is no user file {file}"):
        Accounts(file)
    refused(scant("list", "--file", file), "There is no user file")


@pytest.mark.usefixtures("quick")
def test_a_running_server_follows_the_file(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    add("ada", file)
    running = Accounts(file)
    first = running.authenticate("ada", PASSWORD)
    assert first == running.credential("ada")
    add("ada", file)  # the same password anew: whoever had it must log in again
    assert running.credential("ada") not in (None, first)
    add("bob", file)
    assert running.authenticate("bob", PASSWORD)
    scant("remove", "bob", "--file", file)
    assert running.authenticate("bob", PASSWORD) is None
    assert running.credential("bob") is None
    caplog.set_level(logging.ERROR)
    file.unlink()
    assert running.authenticate("ada", PASSWORD)
    assert "its last state holds" in caplog.text


def test_an_unknown_name_costs_as_much_as_a_wrong_password(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_users(file, {"ada": hash_password(PASSWORD)})
    running, costs = Accounts(file), []
    scrypt = accounts._scrypt

    def counted(*given: object) -> bytes:
        costs.append(given[2:])
        return scrypt(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(accounts, "_scrypt", counted)
    assert running.authenticate("ada", "wrong password") is None
    assert running.authenticate("nobody", "wrong password") is None
    assert costs[0] == costs[1]
    assert len(costs) == 2

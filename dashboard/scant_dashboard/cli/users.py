"""`scant user`: the users of a server that is started with `--auth FILE`."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from scant.errors import BadInput
from scant_dashboard.auth import accounts
from scant_dashboard.cli.sentences import sentences

app = typer.Typer(help="Manage the users of `scant serve --auth FILE`.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
File = Annotated[
    Path | None, typer.Option(help="The user file; by default users.json in the data directory.")
]


@app.command()
def add(
    name: Name,
    file: File = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
) -> None:
    """Add a user, or change a password; the new password ends the user's login sessions."""
    with sentences():
        path = file or accounts.default_file()
        name = accounts.checked_name(name)
        users = accounts.read_users(path) if path.exists() else {}
        existing = name in users
        password = _password_from_stdin() if password_stdin else _typed_password(name)
        users[name] = accounts.hash_password(accounts.checked_password(password))
        accounts.write_users(path, users)
    typer.echo(f"{name} has a new password." if existing else f"{name} was added to {path}.")


@app.command()
def remove(name: Name, file: File = None) -> None:
    """Remove a user; a running server ends the user's login sessions within seconds."""
    with sentences():
        path = file or accounts.default_file()
        users = accounts.read_users(path)
        if users.pop(accounts.checked_name(name), None) is None:
            raise BadInput(f"There is no user {name!r} in {path}; `scant user list` names them.")
        accounts.write_users(path, users)
    typer.echo(f"{name} was removed from {path}.")


@app.command("list")
def list_users(file: File = None) -> None:
    """List the users' names."""
    with sentences():
        users = accounts.read_users(file or accounts.default_file())
    for name in sorted(users):
        typer.echo(name)


@app.command()
def convert(file: File = None) -> None:
    """Hash the plain passwords of a user file of version 0.1."""
    with sentences():
        path = file or accounts.default_file()
        converted = accounts.convert(path)
    typer.echo(f"{len(converted)} passwords in {path} were hashed; its mode is 0600.")


def _typed_password(name: str) -> str:
    if not sys.stdin.isatty():
        raise BadInput(
            "There is no terminal to type the password at; "
            "send it to standard input and give --password-stdin."
        )
    password = getpass.getpass(f"Password for {name}: ")
    if getpass.getpass("Again: ") != password:
        raise BadInput("The two passwords differ; nothing was changed.")
    return password


def _password_from_stdin() -> str:
    # With several lines, the intended password would be ambiguous.
    lines = sys.stdin.read(4 * accounts.LONGEST).splitlines()
    if len(lines) != 1:
        raise BadInput(f"Standard input has {len(lines)} lines; send the password as its only one.")
    return lines[0]

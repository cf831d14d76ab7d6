"""Logging in, where the operator gave names and passwords."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from bokeh.server.server import Server
from panel.auth import BasicLoginHandler

from engine.errors import BadInput


class Login(BasicLoginHandler):
    """Panel's login page, which leads to where the visitor wanted to go, at the second try too."""

    def post(self) -> None:
        """Take a name and a password from the form."""
        name, word = self.get_argument("username", ""), self.get_argument("password", "")
        onward = within(self.get_argument("next", "/"))
        if self._validate(name, word):
            self.set_current_user(name)
            self.redirect(onward)
        else:
            wrong = "This name and password do not belong together."
            self.redirect("?" + urlencode({"next": onward, "error": wrong}))


def within(place: str) -> str:
    """A place of this server; the gallery instead of one that leads elsewhere."""
    parts = urlsplit(place)
    inside = place.startswith("/") and not parts.scheme and not parts.netloc and "\\" not in place
    return place if inside else "/"


def lead_on(server: Server) -> None:
    """Put our login in the place of Panel's."""
    for rule in server._tornado.wildcard_router.rules:
        if rule.target is BasicLoginHandler:
            rule.target = Login


def passwords(file: Path) -> dict[str, str]:
    """Names and passwords of those who may log in, from a JSON object.

    Raises:
        BadInput: There is no such file, or it is something else.
    """
    form = 'give a JSON file such as {"ada": "her password"}'
    if not file.is_file():
        raise BadInput(f"There is no password file {file}; {form}.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"The password file {file} is not JSON ({error}); {form}.") from error
    if not isinstance(found, dict) or not found:
        raise BadInput(f"The password file {file} holds no names with passwords; {form}.")
    wrong = [name for name, word in found.items() if not (name and isinstance(word, str) and word)]
    if wrong:
        raise BadInput(f"{wrong[0]!r} in {file} has no password; {form}.")
    return found

"""Login and logout pages, and the provider that requires a login for all other pages."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, cast

from bokeh.server.auth_provider import AuthProvider
from jinja2 import Environment, FileSystemLoader, Template
from tornado.web import HTTPError, RequestHandler
from tornado.websocket import WebSocketHandler

from scant.store.logins import MAX_DAYS
from scant_dashboard.auth.accounts import LONGEST
from scant_dashboard.auth.redirects import GALLERY, local_path, sent_by_own_page
from scant_dashboard.auth.sessions import COOKIE, Busy, LoginSessions
from scant_dashboard.auth.throttle import Throttle
from scant_dashboard.template import assets

log = logging.getLogger(__name__)


def show_log() -> None:
    """Log logins, refusals and logouts to stderr with their times, unless logging is configured.

    By default Python shows warnings only, without times, which are needed to investigate attacks.
    """
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)


class LoginProvider(AuthProvider):
    """Authenticates requests for pages and their websockets for Bokeh.

    Panel's cookies ("user", "is_guest", "id_token") are neither read nor set.
    """

    def __init__(self, sessions: LoginSessions) -> None:
        self.sessions, self.throttle = sessions, Throttle()
        super().__init__()

    @property
    def get_user_async(self) -> Callable[[Any], Awaitable[Any]]:
        """The function that returns the user of a request's handler."""
        return self._user

    async def _user(self, handler: RequestHandler) -> str | None:
        login = await self.sessions.check(handler.request)
        if login is None:
            return None
        if isinstance(handler, WebSocketHandler):
            self.sessions.attach(login, handler)
        return login.user

    @property
    def login_url(self) -> str:
        """Address of the login page."""
        return "/login"

    @property
    def login_handler(self) -> type[RequestHandler]:
        """Handler of the login page."""
        return LoginPage

    @property
    def logout_url(self) -> str:
        """Address of the logout page."""
        return "/logout"

    @property
    def logout_handler(self) -> type[RequestHandler]:
        """Handler of the logout page."""
        return LogoutPage


class _Page(RequestHandler):
    """Base class of both pages."""

    @property
    def provider(self) -> LoginProvider:
        """The server's login provider."""
        return cast(LoginProvider, self.application.auth_provider)  # type: ignore[attr-defined]

    def set_default_headers(self) -> None:
        """Forbid caching."""
        self.set_header("Cache-Control", "no-store")

    async def head(self) -> None:
        """Send the headers of the page."""
        await self.get()  # type: ignore[misc]

    def check_sender(self) -> None:
        """Raise HTTPError 403 if another site sent the form."""
        hosts = self.application.websocket_origins  # type: ignore[attr-defined]
        if not sent_by_own_page(self.request, hosts):
            log.warning("a form of another site was refused: address=%s", self.request.remote_ip)
            raise HTTPError(403)


class LoginPage(_Page):
    """Asks for name and password, then redirects to the requested page."""

    async def get(self) -> None:
        """Send the form, or redirect users who are logged in."""
        if await self.provider.sessions.check(self.request):
            self.redirect(self._next_address())
        else:
            self._ask("")

    async def post(self) -> None:
        """Check the name and password from the form."""
        self.check_sender()
        # Exactly as typed, except for spaces around the name.
        name = unicodedata.normalize("NFKC", self.get_body_argument("username", ""))
        password = self.get_body_argument("password", "", strip=False)
        address = self.request.remote_ip or ""
        throttle = self.provider.throttle
        wait = throttle.begin(name, address)
        if wait:
            log.warning(
                "login refused for %d s: name=%s address=%s", wait, _log_safe(name), address
            )
            self._refuse(wait)
            return
        try:
            credential = None
            if len(password) <= LONGEST:
                credential = await self.provider.sessions.authenticate(name, password)
        except Busy:
            throttle.undo(name, address)
            self._refuse(2)
            return
        if credential is None:
            log.warning("login failed: name=%s address=%s", _log_safe(name), address)
            self.set_status(403)
            self._ask("The name or the password is wrong.")
            return
        throttle.succeeded(name, address)
        await self._begin(name, credential)
        log.info("login: name=%s address=%s", _log_safe(name), address)
        self.redirect(self._next_address(), status=303)

    async def _begin(self, name: str, credential: str) -> None:
        """Begin a session with a new id, and end the browser's previous one."""
        sessions = self.provider.sessions
        before = await sessions.check(self.request)
        self.set_cookie(
            COOKIE,
            await sessions.begin(name, credential),
            expires_days=MAX_DAYS,
            path="/",
            httponly=True,
            samesite="Lax",
            secure=self.request.protocol == "https",
        )
        if before is not None:
            await sessions.end(before)

    def _next_address(self) -> str:
        given = self.request.query_arguments.get("next", [GALLERY.encode()])[-1]
        return local_path(given.decode("utf-8", "replace"))

    def _refuse(self, seconds: int) -> None:
        self.set_status(429)
        self.set_header("Retry-After", str(seconds))
        self._ask(f"Too many attempts to log in; try again in {_duration(seconds)}.")

    def _ask(self, error: str) -> None:
        self.finish(_template("login.html").render(error=error))


class LogoutPage(_Page):
    """Ends a browser's login session."""

    async def get(self) -> None:
        """Send a page with a button, since following a link must not log out."""
        login = await self.provider.sessions.check(self.request)
        if login is None:
            self.redirect("./login")
        else:
            self.finish(_template("logout.html").render(user=login.user))

    async def post(self) -> None:
        """Log out, and close the connections of this browser's pages."""
        self.check_sender()
        login = await self.provider.sessions.check(self.request)
        if login is not None:
            await self.provider.sessions.end(login)
            log.info("logout: name=%s address=%s", _log_safe(login.user), self.request.remote_ip)
        self.clear_cookie(COOKIE, path="/", httponly=True, samesite="Lax")
        self.redirect("./login", status=303)


@cache
def _template(name: str) -> Template:
    return Environment(loader=FileSystemLoader(assets() / "html"), autoescape=True).get_template(
        name
    )


def _log_safe(name: str) -> str:
    """Return a name as a single ASCII word for the log."""
    return ascii(name[:64])


def _duration(seconds: int) -> str:
    if seconds > 90:
        return f"{-(-seconds // 60)} minutes"
    return "1 second" if seconds == 1 else f"{seconds} seconds"

"""A page and its websocket: the session between them belongs to the visitor who opened the page.

The server alone makes session ids, a new one for every page, and signs them. Whatever an address or
a header says of sessions is not read. A websocket opens no session of its own: it joins the one
whose page was sent a moment ago, and only for the browser (its cookie, and its login where there
is one) that the page was sent to. The token by which the page names its session holds nothing
else.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from typing import Any
from weakref import WeakKeyDictionary

from bokeh.protocol.exceptions import MessageError, ProtocolError, ValidationError
from bokeh.server.session import ServerSession
from bokeh.util.token import (
    check_token_signature,
    generate_jwt_token,
    generate_session_id,
    get_session_id,
    get_token_payload,
)
from panel.io.resources import Resources
from panel.io.server import DocHandler, server_html_page_for_session
from panel.io.state import set_curdoc
from tornado.web import HTTPError, RequestHandler, authenticated

from scant_dashboard.auth.same_origin import from_own_page
from scant_dashboard.auth.sessions import login_of
from scant_dashboard.auth.visitor_cookie import COOKIE, verify
from scant_dashboard.server import headers
from scant_dashboard.server.page_protocol import PageProtocol, closing
from scant_dashboard.upstream.socket_steps import SocketSteps

log = logging.getLogger(__name__)

SOCKETS = 2  # connections of one page at once; it needs one, and a second while that is lost
FAULTS = 20  # messages of one connection that could not be taken, after which it is closed

_openers: WeakKeyDictionary[ServerSession, str] = WeakKeyDictionary()  # who opened each page


def signing_key(key: str) -> bytes:
    """What signs session ids and tokens: made of the server's secret, and never that itself."""
    return hmac.digest(key.encode(), b"scant page sessions", hashlib.sha256)


def visitor(handler: RequestHandler, key: str) -> str | None:
    """Who sends a request: the cookie's visitor and the login session; None without a cookie."""
    present = handler.request.cookies.get(COOKIE)
    result = verify(present.value if present is not None else None, key)
    login = login_of(handler.request)
    return None if result is None else f"{result} {login.id if login is not None else ''}"


class PageHandler(DocHandler):
    """A page, with a session made for it."""

    def initialize(self, key: str, policy: headers.Policy, **_: Any) -> None:
        """Take the server's secret and its policy; the rest is Bokeh's."""
        self.key, self.policy = key, policy

    @authenticated
    async def get(self, *args: str, **kwargs: str) -> None:
        """Send the page."""
        session = await self.get_session()
        with set_curdoc(session.document):
            page = server_html_page_for_session(
                session,
                resources=Resources.from_bokeh(self.application.resources()),
                title=session.document.title,
                token=session.token,
                template=session.document.template,
                template_variables=session.document.template_variables,
            )
        page, nonce = headers.nonced(page)
        self._prepare_answer(nonce)
        self.write(page)

    @authenticated
    async def head(self, *args: str, **kwargs: str) -> None:
        """What GET would answer, without the work of a session."""
        self._prepare_answer("")
        await self.flush()  # before a length is counted that is not the page's

    async def get_session(self) -> ServerSession:  # type: ignore[override]
        """A new session, bound to whoever asks."""
        app = self.application
        self.request.arguments = _own(self.request.arguments)
        session_id = generate_session_id(secret_key=app.secret_key, signed=True)
        token = generate_jwt_token(
            session_id,
            secret_key=app.secret_key,
            signed=True,
            expiration=app.session_token_expiration,
        )
        session = await self.application_context.create_session_if_needed(
            session_id, self.request, token
        )
        opener = visitor(self, self.key)
        if opener is not None:
            _openers[session] = opener
        return session

    def _prepare_answer(self, nonce: str) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Security-Policy", self.policy.page(nonce, self.request))


class PageSocket(SocketSteps):
    """The websocket of a page."""

    _ending = False
    _faults = 0

    def initialize(self, key: str, **_: Any) -> None:  # type: ignore[override]
        """Take the server's secret."""
        self.key = key

    async def prepare(self) -> None:
        """Refuse, before the handshake, pages of other sites, and whoever did not open the page.

        Not in `check_origin`: tornado does not ask it where `Origin` equals `Host`, nor where
        `Sec-Fetch-Site` says that they do.
        """
        if not from_own_page(self.request, self.application.websocket_origins):
            raise HTTPError(403)
        await super().prepare()
        if self.current_user is None:  # and was refused
            return
        session = self._joined(self._offered())
        if session is None:
            log.info("a websocket at %s was refused: not its visitor's page", self.request.path)
            raise HTTPError(403)
        if session.connection_count >= SOCKETS:
            raise HTTPError(429)

    async def join_session(self, token: str) -> None:
        """Join the session, where it and the page's connections still allow it."""
        session = self._joined(token)
        if session is None:  # ended since the handshake; Bokeh would make it anew
            self.close(4404, "The page's session has ended.")
            return
        if session.connection_count >= SOCKETS:  # many at once passed the test of the handshake
            self.close(4429, "The page is open already.")
            return
        await super().join_session(token)
        self.handler = PageProtocol()

    async def on_message(self, fragment: str | bytes) -> None:
        """Take a part of a message; none before the session was joined or after the end."""
        if self._ending:
            return
        if self.receiver is None:
            self.close(4400, closing("This page sent too early", "no session was joined yet"))
            return
        await super().on_message(fragment)

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        """Close the connection, and take nothing more from it."""
        self._ending = True
        super().close(code, reason)

    def on_close(self) -> None:
        """Let the session go with its page, which never comes back to it (`template.reconnect`)."""
        session = self.session
        super().on_close()
        if session is not None and not session.connection_count:
            session.request_expiration()

    async def answer(self, message: Any) -> Any:
        """Handle a message; the connection ends after `FAULTS` that could not be."""
        work = await super().answer(message)
        if work is not None and work.msgtype == "ERROR":
            self._faults += 1
            if self._faults >= FAULTS:  # each is in the log, with its traceback
                self.close(4400, "This page sent too much that the server does not take.")
        return work

    async def read(self, fragment: str | bytes) -> Any:
        """Take a part of a message; the connection ends where the server does not take it."""
        try:
            return await self.receiver.consume(fragment)
        except (MessageError, ProtocolError, ValidationError) as error:
            self.close(4400, closing("This page sent what the server does not take", str(error)))
            return None
        except Exception:
            self.unreadable("a message could not be read")
            return None

    def unreadable(self, message: str) -> None:
        """Say so, and end the connection."""
        self.close(4400, closing("This page sent what the server cannot read"))

    def failed(self, message: str) -> None:
        """Say so, and end the connection."""
        self.close(4500, closing("The server could not take what this page sent"))

    def _offered(self) -> str:
        """The token that a page offers beside the protocol's name."""
        protocols = self.request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        return protocols[1].strip() if len(protocols) == 2 else ""

    def _joined(self, token: str) -> ServerSession | None:
        """The living session that the token names, if this visitor opened it."""
        app = self.application
        try:
            if not check_token_signature(token, secret_key=app.secret_key, signed=True):
                return None
            if get_token_payload(token)["session_expiry"] <= time.time():
                return None
            session = self.application_context.get_session(get_session_id(token))
        except Exception:  # not a token at all, or one of a session that is gone
            return None
        opener, comer = _openers.get(session), visitor(self, self.key)
        return session if opener is not None and opener == comer else None


def _own(arguments: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Of an address' arguments, those that are the visitor's to say, as readable text.

    Not Bokeh's and Panel's own: session ids, tokens, and addresses to load scripts from.
    """
    return {
        name: [value.decode("utf-8", "replace").encode() for value in values]
        for name, values in arguments.items()
        if not name.startswith("bokeh-")
    }

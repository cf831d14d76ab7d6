"""Handler of Train on a static page: starts the run before the live page is loaded."""

from __future__ import annotations

from typing import Any

from bokeh.server.views.auth_request_handler import AuthRequestHandler
from tornado.web import HTTPError, authenticated

from scant.errors import BadInput, NotAllowed, NotFound, Unavailable
from scant_dashboard.auth.redirects import sent_by_own_page
from scant_dashboard.auth.sessions import login_user
from scant_dashboard.frame.site import Site
from scant_dashboard.limits.client import Client


class Start(AuthRequestHandler):
    """Trains the demonstration with the settings of its recording, as on the static page."""

    def initialize(self, site: Site) -> None:
        """Store the site."""
        self.site = site

    @authenticated
    async def post(self, study: str) -> None:
        """Answer {"run": id} or {"refused": sentence}; the usual limits apply.

        Raises:
            HTTPError: 403 if another site sent the form, or the browser has no cookie of ours.
        """
        hosts: Any = self.application.websocket_origins  # type: ignore[attr-defined]
        visitor = Client.of(self.request, self.site.key).visitor
        user = login_user(self.request) if self.site.logins else None
        if not visitor or not sent_by_own_page(self.request, hosts):
            raise HTTPError(403)
        self.set_header("Cache-Control", "no-store")
        try:
            if self.site.fault:
                raise Unavailable(self.site.fault)
            demo = self.site.hub.history(f"demo-{study}").record
            run = await self.site.service.join(
                study, demo.settings, demo.data, f"user:{user}" if user else visitor,
                address=self.request.remote_ip or "", presenter="",
            )  # fmt: skip
        except (BadInput, NotAllowed, NotFound, Unavailable) as error:
            self.write({"refused": str(error)})
        else:
            self.site.hub.history(run)  # in memory from its beginning, for the page that comes
            self.write({"run": run})

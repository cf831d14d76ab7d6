"""`/readyz`: readiness of the server, for monitors and load balancers."""

from __future__ import annotations

from tornado.web import RequestHandler

from scant_dashboard.server.site import Site


def reasons(site: Site) -> list[str]:
    """Why the server is not ready, in sentences without paths or addresses; [] if it is."""
    results = []
    if site.fault:
        results.append("The run service did not start; the server's log says why.")
    elif not site.service.healthy():
        results.append("No worker is up.")
    if storing := site.service.storing():
        results.append(storing)
    return results


class Ready(RequestHandler):
    """Answers 200 while server, workers and database are up, else 503; costs no session."""

    def initialize(self, site: Site) -> None:
        self.site = site

    def get(self) -> None:
        why = reasons(self.site)
        self.set_status(503 if why else 200)
        self.set_header("Cache-Control", "no-store")
        self.write({"ready": not why, "reasons": why})

"""The frame: what it says when something breaks, what it leaves behind, what it may import."""

from __future__ import annotations

import gc
import socket
import sqlite3
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import panel as pn
import pytest
from bokeh.document import Document
from panel.io.document import _cleanup_doc
from panel.io.state import set_curdoc

from scant.errors import BadInput, NotFound
from scant.store import Store
from scant.studies import entry
from scant_dashboard.app import build
from scant_dashboard.frame import session
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.pages.gallery import gallery
from scant_dashboard.server.options import ServerOptions
from scant_dashboard.study_page.page import StudyPage, study_page
from scant_dashboard.template import PageContent
from tests.dashboard.fakes import FakeService, views


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)


def visited(site: Site, doc: Document, make: object) -> str:
    """The page's markup, as far as it is our own."""
    with set_curdoc(doc):
        made = session.page(site, make)()  # type: ignore[arg-type]
        made.server_doc(doc)
    return " ".join(pane.object for pane in made.select(pn.pane.HTML) if pane.object)


def test_a_visitor_never_sees_a_traceback(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    def broken(visit: SessionContext) -> PageContent:
        raise RuntimeError("secret inner workings")

    markup = visited(site, Document(), broken)
    assert "This page failed" in markup
    assert "secret inner workings" not in markup
    assert "secret inner workings" in caplog.text


@pytest.mark.parametrize("kind", [BadInput, NotFound])
def test_what_a_visitor_can_mend_is_said_as_text(site: Site, kind: type[Exception]) -> None:
    def refused(visit: SessionContext) -> PageContent:
        raise kind("Column '<b>x</b>' is empty.")

    assert "Column &#x27;&lt;b&gt;x&lt;/b&gt;&#x27; is empty." in visited(site, Document(), refused)


def test_a_server_whose_runs_cannot_start_says_so_on_the_page(site: Site) -> None:
    site.fault = "Runs cannot start on this server: no workers."
    markup = visited(site, Document(), study)
    assert "Runs cannot start on this server: no workers." in markup


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gallery", "study", "error"])
def test_a_server_that_cannot_store_says_so_on_every_page(site: Site, name: str) -> None:
    def lost(visit: SessionContext) -> PageContent:
        raise NotFound("There is no run 'x' here.")

    make = {"gallery": gallery, "study": study, "error": lost}[name]
    site.service.trouble = "The server cannot store anything, for the disk is full."
    doc = Document()
    assert site.service.trouble in visited(site, doc, make)
    site.service.trouble = ""
    assert "cannot store" not in visited(site, Document(), make)


def test_a_page_whose_database_is_gone_says_that_and_promises_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        error = sqlite3.OperationalError("unable to open database file: /secret/scant.db")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    with site.service.store.engine.connect() as db:
        monkeypatch.setattr(db.dialect, "do_execute", gone)
        markup = visited(site, Document(), lambda visit: study_page(visit, "redshift"))
    assert "The server cannot reach its database" in markup
    assert "secret" not in markup
    assert "Nothing of yours is lost" not in markup


def study(visit: SessionContext) -> PageContent:
    return PageContent("Redshift", [StudyPage(visit, entry("redshift"), views).panel], "redshift")


def with_the_demonstration(visit: SessionContext) -> PageContent:
    visit.site.service.store.import_shipped()
    return study_page(visit, "redshift")


def test_views_that_do_not_concern_a_run_are_kept_off_the_page(site: Site) -> None:
    made: list[StudyPage] = []

    def without_posterior(page: StudyPage) -> PageViews:
        return replace(
            views(page), hides=lambda run: {"Posterior"} if run.metadata["bands"] else ()
        )

    def content(visit: SessionContext) -> PageContent:
        visit.site.service.store.import_shipped()
        made.append(StudyPage(visit, entry("redshift"), without_posterior))
        return PageContent("Redshift", [made[0].panel], "redshift")

    visited(site, Document(), content)
    (page,) = made
    known = {f.view.title for f in page.figures.values() if f.panel.visible}
    assert known == {"Objective", "Figures", "Questions"}
    told = {v.title: v.told for v in page.views.every()}
    assert told["Posterior"] == ["cleared"]
    assert "open" in told["Questions"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [gallery, study, with_the_demonstration])
def test_closed_sessions_leave_nothing_behind(site: Site, make: object) -> None:
    left = []
    for _ in range(4):
        doc = Document()
        visited(site, doc, make)
        for callback in list(doc.session_destroyed_callbacks):
            callback(SimpleNamespace(_document=doc, id="session"))
        _cleanup_doc(doc, destroy=True)
        left.append(weakref.ref(doc))
        del doc
    gc.collect()
    assert sum(ref() is not None for ref in left[:-1]) == 0
    assert site.hub.watchers == set()


def test_what_one_visitor_does_changes_no_page_of_others(site: Site) -> None:
    heard: list[object] = []
    with set_curdoc(Document()):
        made = session.page(site, gallery)()
    made.param.watch(heard.append, "busy")
    pn.state._add_busy_event("a press on another page")
    pn.state._remove_busy_event("a press on another page")
    assert heard == []


def test_a_port_in_use_is_said_in_one_sentence(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=f"Port {port} on 127.0.0.1 is in use; stop"):
            build(site, ServerOptions(port=port))


def test_a_missing_user_file_is_named(site: Site, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no user file"):
        build(site, ServerOptions(port=0, auth=tmp_path / "none.json"))


@pytest.mark.slow
def test_the_server_never_imports_torch() -> None:
    code = (
        "import sys, importlib, scant_dashboard.app\n"
        "from scant.studies import STUDIES\n"
        "for name in STUDIES: importlib.import_module(f'scant_dashboard.pages.{name}.page')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""A figure that forgot one run shows the next one whole, though it be of the same shape."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.package_data import package_file
from scant.store import Store
from scant.studies import STUDIES, entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.page_parts.lazy_view import LazyView
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.fakes import FakeService


def drawn(view: Any) -> list[list[np.ndarray]]:
    """What the glyphs of a view's figures are drawn from."""
    return [
        [np.asarray(values) for _, values in sorted(renderer.data_source.data.items())]
        for figure in getattr(view, "figures", ())
        for renderer in figure.renderers
        if hasattr(renderer, "data_source")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("study", sorted(STUDIES))
def test_a_run_that_is_shown_again_is_drawn_as_before(study: str, tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    store.import_recording(package_file("recordings", f"{study}.scant").read_bytes())
    doc = Document()
    with set_curdoc(doc):
        site = Site(FakeService(store), tmp_path, "k" * 40)
        views = import_module(f"scant_dashboard.pages.{study}.page").views
        page = StudyPage(SessionContext(site, doc, "anna", {}), entry(study), views)
        run = page.run
        assert run is not None
        assert run.recorded
        assert run.report is not None
        live = page.views.applicable(run, page.views.live)
        result = page.views.applicable(run, page.views.result)
        for view in (*live, *result):
            if isinstance(view, LazyView):
                view.build()

        def show() -> list[Any]:
            for view in live:
                view.update(run.snapshot, run.metadata)
            for view in result:
                view.update(run.report, run.metadata)
            return [drawn(view) for view in (*live, *result)]

        first = show()
        for view in (*live, *result):
            view.clear(run)
        for view, before, after in zip((*live, *result), first, show()):
            assert len(before) == len(after), view.title
            for one, other in zip(before, after):
                for a, b in zip(one, other):
                    np.testing.assert_array_equal(a, b, err_msg=view.title)
    store.close()

"""What several tests of the dashboard need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant_dashboard.translate import speak


@pytest.fixture
def german() -> Iterator[None]:
    """A session that speaks German."""
    doc = Document()
    speak(doc, "de")
    with set_curdoc(doc):
        yield

"""Messages that Panel leaves lying on their way to a browser, and sends only behind the next one.

While a document is busy Panel puts a message down and has a task send it
(`panel.io.document._dispatch_msgs`). That task waits for the browser's connection, then reports
that nothing is left, without looking; what was put down meanwhile stays. A page whose last change
it was would never show it. Private API of Panel, pinned in pyproject.toml.
"""

from __future__ import annotations

from bokeh.document import Document
from panel.io import document as panel


def deliver(doc: Document) -> None:
    """Send what lies there for a document's browsers and nobody is about to send."""
    if doc in panel._WRITE_MSGS and doc not in panel._WRITE_BLOCK:
        panel._WRITE_BLOCK[doc] = True
        panel._dispatch_write_task(doc, panel._dispatch_msgs, doc)

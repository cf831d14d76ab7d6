"""Installs all patches that concern the whole process."""

from __future__ import annotations

from bokeh.settings import settings

from scant_dashboard.upstream import (
    bounded_messages,
    busy_cleanup,
    closed_sockets,
    event_lock,
    known_defaults,
    message_names,
    message_order,
    one_log_line,
    page_address,
    parameter_copies,
    patched_curdoc,
    synced_params,
)


def install() -> None:
    """Patch the libraries in this process; idempotent."""
    # Otherwise Bokeh checks the signature of every callback, a tenth of the cost of a page.
    settings.perform_error_diagnostics.set_value(False)
    bounded_messages.install()
    busy_cleanup.install()
    closed_sockets.install()
    event_lock.install()
    known_defaults.install()
    message_names.install()
    message_order.install()
    one_log_line.install()
    page_address.install()
    parameter_copies.install()
    patched_curdoc.install()
    synced_params.install()

"""Bokeh's logger has one handler where Distributed and Bokeh have both put one on it."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from scant_dashboard.upstream import one_log_line

HANDLERS = (
    "import logging, bokeh.server.server, panel, distributed\n"
    "found = [type(h) is logging.StreamHandler for h in logging.getLogger('bokeh').handlers]\n"
    "raise SystemExit(sum(found))"
)


def test_bokeh_writes_each_line_once() -> None:
    logger = logging.getLogger("bokeh")
    kept = list(logger.handlers)
    try:
        logger.handlers = [logging.StreamHandler(), logging.StreamHandler()]
        one_log_line.install()
        one_log_line.install()
        assert len(logger.handlers) == 1
    finally:
        logger.handlers = kept


@pytest.mark.slow
def test_the_libraries_need_it_still() -> None:
    assert subprocess.run([sys.executable, "-c", HANDLERS], check=False).returncode == 2

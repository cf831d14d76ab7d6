"""Patch: keep one handler on Bokeh's logger.

Distributed and Bokeh both add a handler, which logs each line twice.

For Bokeh 3.9, pinned in pyproject.toml, and Distributed.
"""

from __future__ import annotations

import logging


def install() -> None:
    """Leave one handler on Bokeh's logger in this process; a second call changes nothing."""
    logger = logging.getLogger("bokeh")
    streams = [each for each in logger.handlers if type(each) is logging.StreamHandler]
    for handler in streams[:-1]:
        logger.removeHandler(handler)

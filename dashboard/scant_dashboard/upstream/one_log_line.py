"""Distributed and Bokeh both put a handler on Bokeh's logger, which then writes each line twice.

Of Bokeh 3.9, pinned in pyproject.toml, and Distributed.
"""

from __future__ import annotations

import logging


def install() -> None:
    """Leave one handler on Bokeh's logger in this process; a second call changes nothing."""
    logger = logging.getLogger("bokeh")
    streams = [each for each in logger.handlers if type(each) is logging.StreamHandler]
    for handler in streams[:-1]:
        logger.removeHandler(handler)

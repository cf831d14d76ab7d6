"""A study small enough to watch every joint of the loop and of the run service.

`install` makes it known to `scant.studies` in this process; as a Dask preload (`dask_setup`) the
module does so in workers.
"""

from __future__ import annotations

import sys
from typing import Any

in_worker = False


def install() -> None:
    """Let the catalog and the studies know the toy."""
    import scant.studies
    from toy import entry

    if "toy" not in scant.studies.STUDIES:
        scant.studies.STUDIES = (*scant.studies.STUDIES, "toy")
    sys.modules["scant.studies.toy"] = sys.modules["toy"]
    sys.modules["scant.studies.toy.entry"] = entry
    sys.modules["scant.studies.toy.study"] = _Lazy("scant.studies.toy.study")


class _Lazy(type(sys)):
    """Imports the science (torch) only when it is asked for, as the real studies do."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from toy import study

        return getattr(study, name)


def dask_setup(worker: Any) -> None:
    """In a worker: know the toy alone, and checkpoint so often that a test need not wait.

    A worker brings in all studies that it knows, which takes longer than most tests here.
    """
    import scant.studies

    global in_worker
    in_worker = True
    install()
    scant.studies.STUDIES = ("toy",)

"""Scores of finished runs in a file, so that an interrupted reproduction goes on from there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scant.errors import BadInput
from scant.studies.reproduction import Experiment, Score

FILE = "scores.jsonl"


class FinishedRun(NamedTuple):
    """A finished run.

    Attributes:
        scores: Its scores.
        seconds: Its processor time.
        origin: Date, versions and hardware.
    """

    scores: list[Score]
    seconds: float
    origin: dict[str, str]


class StoredRuns:
    """Finished runs by study and key; one line of `scores.jsonl` for each.

    Args:
        folder: Folder of the file; None to store nothing.
        how: What all runs of a folder have in common, such as whether they are quick.

    Raises:
        BadInput: The folder has runs that were made otherwise.
    """

    def __init__(self, folder: Path | None, how: dict[str, Any]) -> None:
        self._file = None if folder is None else folder / FILE
        self._how = how
        self._runs: dict[tuple[str, str], FinishedRun] = {}
        if self._file is None or not self._file.is_file():
            return
        content = self._file.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]  # without a line that was broken off
        for line in whole.splitlines():
            read = json.loads(line)
            if read["how"] != how:
                raise BadInput(
                    f"{str(self._file)!r} has runs made with {_listed(read['how'])}, and these are "
                    f"made with {_listed(how)}; name another folder with --out."
                )
            scores = [Score(Experiment(*one[:3]), *one[3:]) for one in read["scores"]]
            run = FinishedRun(scores, read["seconds"], read["origin"])
            self._runs[read["study"], read["key"]] = run
        if len(whole) < len(content):
            self._file.write_bytes(whole)

    def get(self, study: str, key: str) -> FinishedRun | None:
        """Return a run; None if it has not been done."""
        return self._runs.get((study, key))

    def add(
        self,
        study: str,
        key: str,
        scores: Sequence[Score],
        seconds: float,
        origin: dict[str, str],
    ) -> FinishedRun:
        """Store a run and return it."""
        run = FinishedRun(list(scores), seconds, origin)
        self._runs[study, key] = run
        if self._file is not None:
            flat = [[*score.experiment, *score[1:]] for score in run.scores]
            line = {"study": study, "key": key, "how": self._how, "seconds": seconds,
                    "origin": origin, "scores": flat}  # fmt: skip
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        return run


def _listed(how: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in how.items())

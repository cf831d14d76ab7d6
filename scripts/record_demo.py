"""Record a study's demonstration: train it as a visitor would, write it to data/recordings/.

    python scripts/record_demo.py redshift

The recording is what a page shows at first paint. Run this again whenever a study or the form of
its arrays has changed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from engine.catalog import STUDIES, entry
from engine.events import Finished
from engine.runs import RunService
from engine.runs.service import finished
from engine.store import Store
from engine.store.recording_shelf import SUFFIX

FOLDER = Path(__file__).parent.parent / "data" / "recordings"
LIMIT = 1_000_000  # bytes of a recording, so that the repository and the first paint stay light


async def record(study: str, store: Store) -> tuple[bytes, Finished]:
    """Train the demonstration on a worker; returns the recording and how it ended."""
    service = RunService(store, workers=1)
    await service.start()
    try:
        preset = entry(study).presets.get("demo", {})
        run = await service.submit(study, preset, "demo", owner="demo")
        end = await finished(service, run)
    finally:
        await service.close()
    snapshots = 60
    while len(recording := store.export_recording(run, snapshots)) > LIMIT and snapshots > 5:
        snapshots = snapshots * 3 // 4
    return recording, end


def main(studies: list[str]) -> None:
    """Record these studies, or all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for study in studies or STUDIES:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SCANT_DATA_DIR"] = folder
            recording, end = asyncio.run(record(study, Store.open()))
        if not end.state.usable or len(recording) > LIMIT:
            raise SystemExit(f"{study}: {end.state}, {len(recording):,} bytes: not recorded.")
        (FOLDER / (study + SUFFIX)).write_bytes(recording)
        print(f"{study}: {end.state}, {end.reason} {len(recording):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])

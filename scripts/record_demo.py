"""Record a study's demonstration: train it here, write what it said to data/recordings/.

    python scripts/record_demo.py redshift

The recording is what a page shows at first paint. Run this again whenever a study or the form of
its arrays has changed. It trains in this process, through the same `scant.fit` that a worker
runs, so that no deadline of a busy machine can cut it short, and with one thread, because sums of
several threads round differently. Features of the patches that a study draws go to data/features/.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

import scant
import scant.learners.general  # loads the libraries whose threads are limited
from scant.data_sources.open import open_table
from scant.events import Checkpoint, Finished
from scant.store import Store
from scant.store.recordings import SUFFIX
from scant.studies import STUDIES, entry
from scant.studies.clamp.cost import SHIPPED
from scant.studies.clamp.table import PatchPool
from scant.tables.images import features

DATA = Path(__file__).parent.parent / "data"
LIMIT = 1_000_000  # bytes of a recording, so that the repository and the first paint stay light


def record(study: str, store: Store) -> tuple[bytes, Finished]:
    """Train the demonstration and write it through the store; the recording and how it ended."""
    settings = entry(study).settings.parse(entry(study).presets.get("demo", {}))
    run = store.add_run(study, settings.values(), "demo", owner="demo")
    with threadpool_limits(1):
        for event in scant.fit(study, settings=settings):
            if not isinstance(event, Checkpoint):
                store.write(run, [event])
    assert isinstance(event, Finished), "the last event of a fit says how it ended"
    snapshots = 60
    while len(recording := store.export_recording(run, snapshots)) > LIMIT and snapshots > 5:
        snapshots = snapshots * 3 // 4
    return recording, event


def ship_features(made: Path) -> None:
    """Have data/features/ hold the features of the clamp study's smaller sets, and no others."""
    clamp, wanted = entry("clamp"), set()
    for source in clamp.sources:
        if source.size[0] <= SHIPPED:
            images = PatchPool.of(open_table(clamp, source.name, clamp.settings())).images
            features.features(images)
            wanted.add(f"{features.content_hash(images, features.KINDS[0])}.npy")
    for file in made.glob("*"):
        shutil.copyfile(file, DATA / "features" / file.name)
    for file in (DATA / "features").iterdir():
        if file.name not in wanted:
            file.unlink()


def main(studies: list[str]) -> None:
    """Record these studies, or all of them."""
    torch.set_num_threads(1)
    for study in studies or STUDIES:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SCANT_DATA_DIR"] = folder
            recording, end = record(study, Store.open())
            if not end.state.usable or len(recording) > LIMIT:
                raise SystemExit(f"{study}: {end.state}, {len(recording):,} bytes: not recorded.")
            if study == "clamp":
                ship_features(Path(folder) / "features")
        (DATA / "recordings" / (study + SUFFIX)).write_bytes(recording)
        print(f"{study}: {end.state}, {end.reason} {len(recording):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])

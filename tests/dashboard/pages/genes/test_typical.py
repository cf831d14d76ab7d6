"""The replica that the genes page offers first to be hidden."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scant.package_data import package_file
from scant.store import Store
from scant.training.api import restore
from scant_dashboard.pages.genes.typical import typical_replica


def observed(*deviations: float, held: int = -1) -> dict[str, list[float]]:
    """Replicas of one output, of three points each."""
    y = [d * unit for d in deviations for unit in (-1.0, 0.0, 1.0)]
    replica = [float(r) for r in range(len(deviations)) for _ in range(3)]
    test = [float(r == held) for r in replica]
    return {"y": y, "output": [0.0] * len(y), "replica": replica, "test": test}


def test_it_varies_as_much_as_the_median_replica() -> None:
    assert typical_replica(observed(5, 1, 3)) == (0, 2)
    assert typical_replica(observed(5, 1, 3, held=2)) == (0, 1)  # of two the flatter one
    assert typical_replica(observed()) is None


@pytest.mark.slow("engine/scant/studies/genes", "data/recordings")
def test_of_the_demonstration_it_is_predicted_neither_best_nor_worst(tmp_path: Path) -> None:
    """Its NMSE lies between the quartiles of all replicas'."""
    store = Store.open(f"sqlite:///{tmp_path}/runs.db")
    run = store.run(store.import_recording(package_file("recordings", "genes.scant").read_bytes()))
    model = store.model(run.id)
    store.close()
    assert model is not None
    study, outputs = restore("genes", run.settings, model), run.metadata["shown"]
    replicas = dict(zip(run.metadata["outputs"], run.metadata["replicas"]))
    cells = {(d, r) for d, output in enumerate(outputs) for r in range(len(replicas[output]))}
    nmse = {
        (d, r): float(
            study.explore("hide", output=outputs[d], replica=replicas[outputs[d]][r])["nmse"][0]
        )
        for d, r in sorted(cells)
    }
    typical = typical_replica(run.metadata["observed"])
    assert typical is not None
    low, high = np.nanquantile(list(nmse.values()), [0.25, 0.75])
    assert low <= nmse[typical] <= high

"""Every study on a GPU: fit, snapshot, pause, resume, explore and predict, all where it was asked.

Where there is no GPU, on `tests.engine.pretended`, which refuses what CUDA refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load

from scant.data_sources.open import open_table
from scant.events import Checkpoint, Event, Finished, Fitted, Progress, Snapshot
from scant.studies import entry
from scant.studies.protocol import Study, study_class
from scant.tables.schema import counts
from scant.training.checkpoint_format import header
from scant.training.control import Control
from scant.training.loop import train
from tests.engine.pretended import pretended
from tests.tiny import fixed

pytestmark = pytest.mark.slow(
    "engine/scant/models", "engine/scant/studies", "engine/scant/optim", "engine/scant/kernels"
)
QUICK = {"max_steps": 4, "baselines": False}
ROWS = 6
SPARSE = {"inference": "variational", "max_steps": 4}
# Of each study what it can be told of its models, sources and optimizers, in few steps.
RUNS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "aggregation": ("aggregation", None, SPARSE | {"n_inducing": 12}),
    "aggregation, exact": ("aggregation", None, {
        "inference": "exact", "fine_rows": 30, "max_steps": 4,
    }),
    "aggregation, adam": ("aggregation", None, SPARSE | {"optimizer": "adam"}),
    "aggregation, em": ("aggregation", None, {"optimizer": "em", "batch_size": 20, "max_steps": 4}),
    "redshift": ("redshift", None, {"n_basis": 4, "max_steps": 6, "training_size": 200}),
    "redshift, growing": ("redshift", None, {
        "n_basis": "auto", "covariance": "auto", "max_steps": 30, "patience": 4,
        "training_size": 200, "restarts": 2,
    }),
    "redshift, errors": ("redshift", None, {
        "n_basis": 4, "max_steps": 6, "training_size": 200, "errors": "as noise",
        "incomplete": "use", "combine": "average", "restarts": 2,
    }),
    "genes": ("genes", None, QUICK | {"n_inducing_outputs": 2, "n_inducing_inputs": 8}),
    "genes, natural": ("genes", None, QUICK | {"optimizer": "natural"}),
    "genes, baselines": ("genes", None, {"model": "hgp", "max_steps": 3}),
    **{f"genes, {m}": ("genes", None, QUICK | {"model": m}) for m in ("dhgp", "lmc", "pooled")},
    "genes, stack": ("genes", None, QUICK | {"model": "stack"}),
    "omniglot, stack": ("omniglot", None, QUICK | {
        "n_inducing": 8, "n_latent": 3, "kernel": "rbf-ard", "stack": True,
    }),
    "mitosis, GP": ("mitosis", None, QUICK | {"n_inducing": 8, "classifier": "both"}),
    "multiview, stack": ("multiview", None, QUICK | {"stack": True}),
    "omniglot": ("omniglot", None, QUICK | {"n_inducing": 8, "n_latent": 3}),
    "omniglot, rbf": ("omniglot", None, QUICK | {"n_inducing": 8, "kernel": "rbf-ard"}),
    "mitosis, baselines": ("mitosis", None, {"rare_rows": 20, "n_inducing": 8, "max_steps": 2}),
    "multiview": ("multiview", None, QUICK),
    "multiview, published": ("multiview", None, {"bound": "published", "max_steps": 4}),
    "clamp": ("clamp", None, {"start": 40, "budget": 60, "baselines": False, "repeats": 1}),
    "clamp, probit": ("clamp", None, {
        "start": 40, "budget": 60, "repeats": 1, "link": "probit", "diverse": "determinant",
    }),
}  # fmt: skip
# Where a search or a compared model ends: two steps show as much of a device as two hundred.
SOONER = {
    "scant.models.gplvm.latent_inference.GAIN": np.inf,
    "scant.studies.mitosis.learners.MIN_STEPS": 2,
    "scant.studies.genes.report.FIT_STEPS": 2,
    "scant.studies.genes.explore.WARM_STEPS": 2,
    "scant.studies.genes.stacking.STEPS": 2,
    "scant.studies.genes.stacking.LEAST_STEPS": 2,
    "scant.studies.aggregation.report.FIT_STEPS": 2,
    "scant.studies.redshift.beside.PATTERNS": 2,
    "scant.studies.omniglot.models.SHOT_STEPS": 2,
    "scant.studies.multiview.models.PROCESS_STEPS": 2,
}
ASKED: dict[str, dict[str, dict[str, Any]]] = {
    "aggregation": {"box": {"lo": [20, 1960], "hi": [30, 1970]}},
    "redshift": {"without": {"off": []}, "density": {"row": 3}},
    "genes": {"new": {}, "hide": {}, "curves": {}},
    "clamp": {"patches": {"rows": [1, 2]}},
}
CUDA = pytest.param(
    "cuda",
    marks=[
        pytest.mark.cuda,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
    ],
)


@pytest.fixture(params=["pretended", CUDA])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    with nullcontext(torch.device("cuda")) if request.param == "cuda" else pretended() as where:
        yield where


def asked_of(study: Any, question: str) -> dict[str, Any]:
    """What a question needs to be told, of any study."""
    names = study.metadata
    if study.settings.study == "mitosis":
        width = len(study.data.columns.centre)
        about = {"x": [0.1] * (names["n_shared"] + names["n_private"]), "pixels": [0.5] * width}
        return about | {"index": 2, "ratio": 2, "seed": 1}
    if study.settings.study == "omniglot":
        return {"pixels": [0.5] * len(study.data.observed.x[0]), "row": 3, "k": 1, "latent": 0}
    if study.settings.study == "multiview":
        return {"names": study.data.observed.names[0], "index": 0}
    if study.settings.study == "genes":
        first = names["outputs"][1]
        return {"output": first, "replica": names["replicas"][1][1], "outputs": [first]}
    return ASKED.get(study.settings.study, {}).get(question, {"row": 3})


@pytest.mark.parametrize("name", RUNS)
def test_a_study_stays_on_its_device(
    name: str, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, value in SOONER.items():
        monkeypatch.setattr(place, value)
    kind, data, values = RUNS[name]
    spec = entry(kind)
    wished = spec.settings.parse({**fixed(kind), **values})
    table = open_table(spec, data, wished)
    settings, _ = spec.settled(wished, *table.shape, counts(table, spec.table))

    def begun(checkpoint: bytes | None = None) -> tuple[Study, list[Event]]:
        control, events = Control(), []
        study = study_class(kind)(settings, table.copy(), device)
        for event in train(study, control, checkpoint):
            events.append(event)
            if isinstance(event, Progress) and event.step == 1 and checkpoint is None:
                on_device(study, device)
                study.snapshot()
                control.wish = "pause"
        return study, events

    _, first = begun()
    saved = next(e.blob for e in first if isinstance(e, Checkpoint))
    study, rest = begun(saved)
    on_device(study, device)
    assert isinstance(rest[-1], Finished)
    assert any(isinstance(e, Snapshot) for e in rest)
    fitted = next(e.blob for e in rest if isinstance(e, Fitted))
    again = study_class(kind).restore(settings, load(fitted), header(fitted, "meta"), device)
    rows = table.head(ROWS)
    for one in (study, again):
        found = one.predict(rows)
        assert len(found) == ROWS
        for question in entry(kind).explore:
            if question in ("patient", "scarcity", "imbalance", "retrain", "model", "polygon"):
                continue
            told = one.explore(question, **asked_of(study, question))
            assert all(isinstance(v, np.ndarray) for v in told.values()), question


def on_device(study: Any, device: torch.device) -> None:
    """Parameters, gradients and what the study keeps of its model are on its device."""
    model = getattr(study, "model", None)
    if not isinstance(model, torch.nn.Module):
        return
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if "_constraint." in name:  # bounds that only GPyTorch's checks read, on the processor
            continue
        assert value.device.type == device.type, name
        assert value.grad is None or value.grad.device.type == device.type, name

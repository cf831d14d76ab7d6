"""Settings with which each study's demonstration is trained on in a second or two."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from urllib.parse import urlencode

TINY: dict[str, dict[str, Any]] = {
    "aggregation": {"fine_rows": 20, "n_inducing": 8, "max_steps": 3},
    "redshift": {"training_size": 60, "validation_size": 30, "test_size": 40, "n_basis": 3,
                 "max_steps": 4, "restarts": 1},
    "genes": {"n_inducing_inputs": 6, "max_steps": 3, "baselines": False},
    "omniglot": {"data_seed": 0, "n_outputs": 2, "n_classes": 3, "n_latent": 2, "n_inducing": 6,
                 "max_steps": 2, "size": 6, "baselines": False},
    "mitosis": {"n_shared_dims": 1, "n_private_dims": 2, "n_inducing": 6, "n_components": 4,
                "size": 8, "max_steps": 3, "baselines": False},
    "multiview": {"model": "sgp", "n_inducing": 6, "max_steps": 3, "repeats": 1,
                  "baselines": False},
    "clamp": {"start": 12, "budget": 24, "batch_size": 6, "repeats": 1, "n_components": 4,
              "baselines": False},
}  # fmt: skip


def fixed(study: str) -> dict[str, Any]:
    """Values of a study's demonstration for all settings that are `auto` by default."""
    module = "entry" if study == "clamp" else "settings"
    return dict(import_module(f"scant.studies.{study}.{module}").FIXED)


def query(study: str) -> str:
    """These settings as they stand in an address."""
    values = {name: str(value).lower() for name, value in TINY[study].items()}
    return urlencode(values)

"""Settings and drawings that the tests of the omniglot study share."""

from __future__ import annotations

from typing import Any

import torch

from scant.studies.omniglot import simulate
from scant.studies.omniglot.settings import FIXED, OmniglotSettings

CPU = torch.device("cpu")
QUICK: dict[str, Any] = {
    "n_latent": 3,
    "n_inducing": 12,
    "max_steps": 6,
    "batch_size": 20,
    "baselines": False,
    "calibrate": False,
}

SIZES = {"Anu": (0, 3), "Bel": (0, 4)}
TIDY = simulate.Variation(knots=0.03, places=0.03, shift=0.06)


def settings(**values: Any) -> OmniglotSettings:
    made = OmniglotSettings.parse({**FIXED, **QUICK, **values})
    assert isinstance(made, OmniglotSettings)
    return made

"""Conversion of prepared rows to tensors stored with a model, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from scant.studies.omniglot.prepared import Prepared
from scant.studies.omniglot.preprocessing import SHADES
from scant.studies.omniglot.settings import OmniglotSettings
from scant.studies.omniglot.table import Characters
from scant.studies.protocol import Tensors, arrays


def to_tensors(data: Prepared) -> Tensors:
    """Tensors for `from_tensors`."""
    x = torch.as_tensor(data.observed.x)
    if data.image is not None:
        x = (x * SHADES).round().to(torch.uint8)
    return {
        "rows.x": x,
        "rows.output": torch.tensor(data.observed.output),
        "rows.label": torch.tensor(data.observed.label),
        "rows.learnt": torch.as_tensor(data.train),
        "rows.test": torch.as_tensor(data.test),
    }


def from_tensors(
    settings: OmniglotSettings, tensors: Tensors, metadata: dict[str, Any], device: torch.device
) -> Prepared:
    """The inverse of `to_tensors`."""
    rows = arrays(tensors, "rows.")
    x, image = rows["x"], tuple(metadata["size"]) or None
    if image is not None:
        x = x / SHADES
    names = [f"p{i}" for i in range(x.shape[1])] if image is not None else metadata["features"]
    return Prepared(
        settings=settings,
        metadata=metadata,
        observed=Characters(
            metadata["outputs"], metadata["classes"], rows["output"], rows["label"], x, names
        ),
        image=image,
        train=rows["learnt"],
        test=rows["test"],
        places=np.empty(0, dtype=np.int64),
        device=device,
    )

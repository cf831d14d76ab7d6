"""Random numbers of a run: which generator a restart draws from."""

from __future__ import annotations

import torch

_PRIME = 104729  # the 10,000th: restarts of neighboring seeds do not meet


def restart_generator(seed: int, restart: int = 0) -> torch.Generator:
    """The generator of one restart of a run; on the CPU, so that a seed means the same anywhere."""
    return torch.Generator().manual_seed(_PRIME * seed + restart)

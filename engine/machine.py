"""What a measurement ran on, in words that stand beside it."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Cores and model of the processor, and the GPU where one is used."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    gpu = f", {torch.cuda.get_device_name(0)}" if torch.cuda.is_available() else ""
    return f"{cores} cores, {model}{gpu}"

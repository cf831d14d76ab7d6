"""Table of benchmark results as text and CSV, with a description of the machine."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import torch
from torch import cuda

from scant import __version__
from scant.bench.cases import BASE, Case, cases
from scant.bench.flops import gemm_rate, min_flops
from scant.bench.peers import peers_of
from scant.bench.programs import GPFLOW, GPY, RAIL, load, missing
from scant.bench.timing import Memory, Step, timed, undisturbed
from scant.errors import BadInput
from scant.hardware import machine
from scant.training.loop import choose_device

SIZES = ("n", "m", "classes")
NAMES = ("model", "method", "work", *SIZES, "varies", "device", "dtype")
METHOD = ("model", "method", "device", "dtype")
FIGURES = (
    "ms",
    "cpu_ms",
    "fastest_ms",
    "slowest_ms",
    "rounds",
    "peak_mb",
    "mflop",
    "gemm_gflops",
    "share",
    "peer_ms",
    "peer",
    "note",
)
SHOWN = (
    "model",
    "method",
    "work",
    *SIZES,
    "device",
    "dtype",
    "ms",
    "cpu_ms",
    "peak_mb",
    "mflop",
    "gemm_gflops",
    "share",
    "peer_ms",
    "peer",
    "note",
)
DTYPES = {"float64": torch.float64, "float32": torch.float32}
NO_CUDA = "There is no CUDA device here: the cases for one were skipped."
ROUNDS, SECONDS = 21, 1.2  # maximum per case
QUICK_ROUNDS, QUICK_SECONDS = 5, 0.2
SHARED = 1.2  # ratio of wall time to CPU time that indicates other load


def devices(device: str = "auto") -> list[torch.device]:
    """Return the devices to measure on; "auto" for the CPU and a GPU if available.

    Raises:
        BadInput: CUDA is not available.
    """
    if device != "auto":
        return [choose_device(device)]
    return [torch.device(kind) for kind in ("cpu", "cuda") if kind == "cpu" or cuda.is_available()]


def precisions(dtype: str, device: torch.device) -> list[str]:
    """Return the dtypes to measure; "auto" for both on a GPU and float64 on a CPU.

    Raises:
        BadInput: The dtype is unknown.
    """
    if dtype == "both" or (dtype == "auto" and device.type != "cpu"):
        return list(DTYPES)
    if dtype == "auto":
        return ["float64"]
    if dtype not in DTYPES:
        raise BadInput(f"--dtype must be auto, both, float64 or float32; got {dtype!r}.")
    return [dtype]


def measure(
    model: str | None = None,
    on: Sequence[torch.device] = (torch.device("cpu"),),
    quick: bool = False,
    said: Callable[[str, float], None] = lambda text, share: None,
    dtype: str = "auto",
) -> pd.DataFrame:
    """Measure all cases, on a CPU with one thread.

    Args:
        model: One of `cases.MODELS`; None for all.
        on: Devices.
        quick: True for fewer sizes and rounds.
        said: Function called with the next case and the fraction that is done.
        dtype: "float64", "float32", "both" or "auto" (see `precisions`).

    Returns:
        Table with a row for each case and the columns `NAMES` and `FIGURES`. Failed and skipped
        cases have the reason in `note` and no `ms`.

    Raises:
        NotFound: There is no such model.
        BadInput: The dtype is unknown.
    """
    todo = [
        (case, device, name)
        for device in on
        for name in precisions(dtype, device)
        for case in cases(model, quick)
        if device.type == "cpu" or case.cuda
    ]
    rows = []
    with undisturbed():
        for number, (case, device, name) in enumerate(todo):
            said(f"{case.model}, {case.method}, {device.type}, {name}", number / len(todo))
            rows.append(_row(case, device, name, quick))
    return pd.DataFrame(rows, columns=[*NAMES, *FIGURES]).astype(dict.fromkeys(SIZES, "Int64"))


def _row(case: Case, device: torch.device, dtype: str, quick: bool) -> dict[str, object]:
    """Measure the step of a case."""
    row: dict[str, object] = {
        **{name: getattr(case, name) for name in ("model", "method", "work", "varies")},
        **case.sizes,
        "device": device.type,
        "dtype": dtype,
    }
    peers = peers_of(case.model, case.method, *(case.sizes.get(name, 0) for name in SIZES))
    if peers and (device.type, dtype) == ("cpu", "float64"):
        others = "".join(f"; {p.program}: {p.ms:g}" for p in peers[1:])
        row |= {"peer_ms": peers[0].ms, "peer": peers[0].program + others}
    if why := case.refused(DTYPES[dtype]):
        return row | {"note": f"skipped: {why}"}
    try:
        if case.needs:
            load(case.needs)
        memory = Memory(device)
        step = case.step(device, DTYPES[dtype])
        figures = _figures(case, step, device, dtype, quick, memory)
        if _stuck(step):
            return row | {"note": f"skipped: no step goes on in {dtype}."}
    except Exception as error:  # a failure must not stop other cases
        return row | {"note": f"failed: {_message(error)}"}
    return row | figures


def _stuck(step: Step) -> bool:
    """Return True if the trainer has stalled or the objective is not finite.

    Some cases have a matrix that cannot be factorized in single precision.
    """
    value, trainer = step(), getattr(step, "__self__", None)
    number = isinstance(value, float) or (isinstance(value, torch.Tensor) and value.numel() == 1)
    return bool(getattr(trainer, "stalled", False)) or (number and not isfinite(cast(float, value)))


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]:.120}"


def _figures(
    case: Case, step: Step, device: torch.device, dtype: str, quick: bool, memory: Memory
) -> dict[str, object]:
    """Measure time, memory and efficiency of a step."""
    rounds, seconds = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
    timing, memory_mb = timed(step, device, rounds, seconds), memory.risen()
    ours = (
        device.type == "cpu" and case.workers == 1
    )  # else use wall time, which includes other processes
    figures: dict[str, object] = {
        "ms": round(timing.ms, 3),
        "cpu_ms": round(timing.cpu, 3) if ours else None,
        "fastest_ms": round(timing.fastest, 3),
        "slowest_ms": round(timing.slowest, 3),
        "rounds": timing.rounds,
        "peak_mb": None if memory_mb is None else round(memory_mb, 1),
    }
    flops = min_flops(case.model, case.method, case.sizes)
    rate = gemm_rate(case.sizes, device, DTYPES[dtype])
    ms = timing.cpu if ours else timing.ms
    return figures | {
        "mflop": round(flops / 1e6, 2),
        "gemm_gflops": round(rate / 1e9, 2),
        "share": round(flops / (max(ms, 1e-6) / 1000) / rate, 4),
    }


def growth(table: pd.DataFrame) -> pd.DataFrame:
    """Fit ms ~ size^power to each method by least squares of the logarithms.

    Uses CPU time if available, which depends less on other load.

    Args:
        table: Result of `measure`.

    Returns:
        Table with a row for each method, device, dtype and size with at least three values,
        with the columns `from`, `to` and `power`.
    """
    rows = []
    cost = table.assign(ms=table["cpu_ms"].fillna(table["ms"])).dropna(subset="ms")
    for keys, of in cost.groupby(list(METHOD), sort=False):
        for size in SIZES:
            measured = of[of["varies"].isin([BASE, size])]
            x, y = measured[size].to_numpy(float, na_value=np.nan), measured["ms"].to_numpy(float)
            if len(set(x[~np.isnan(x)])) < 3:
                continue
            power = np.polyfit(np.log(x), np.log(y), 1)[0]
            named = dict(zip(METHOD, keys))
            limits = {"from": int(x.min()), "to": int(x.max())}
            rows.append({**named, "size": size, **limits, "power": round(float(power), 2)})
    return pd.DataFrame(rows, columns=[*METHOD, "size", "from", "to", "power"])


def circumstances(table: pd.DataFrame, on: Sequence[torch.device], quick: bool) -> list[str]:
    """Return sentences on date, versions and hardware, without the host name."""
    packages = ["torch", "gpytorch", "scikit-learn", "numpy"]
    packages += [name for name in (GPFLOW, GPY, RAIL) if not missing(name)]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    sentences = [
        f"Measured {datetime.now(UTC):%Y-%m-%d} (UTC) by Scant {__version__}"
        f"{' with --quick' if quick else ''}, Python {platform.python_version()}, {versions}.",
        f"{machine()}; one thread of the processor.",
        "ms: the median of a step's rounds. cpu_ms: of the processor's time, where nothing runs on"
        " a GPU. peak_mb: how far the peak of memory rose, building it included. peer_ms: another"
        " program, elsewhere, on such a machine (data/results/peers.csv).",
        "mflop: the least arithmetic of a step (scant.bench.flops), in millions. gemm_gflops: the"
        " rate of a product of matrices of the case's sizes just after, in billions a second."
        " share: what the step reached of that rate.",
    ]
    timed = table.dropna(subset=["ms", "cpu_ms"])
    if len(timed) and (waited := (timed["ms"] / timed["cpu_ms"]).median()) > SHARED:
        sentences.append(f"Other work ran on the machine: ms is {waited:.1f} times cpu_ms.")
    if any(device.type == "cuda" for device in on):
        return sentences
    return [*sentences, "CUDA was not asked for." if cuda.is_available() else NO_CUDA]


def brief(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns for a terminal, of the fastest peer only."""
    columns = table[list(SHOWN)].dropna(axis=1, how="all").astype(object)
    if "peer" in columns:
        columns["peer"] = columns["peer"].str.partition(";")[0]  # the CSV file has all
    return columns


def write_csv(table: pd.DataFrame, sentences: Sequence[str], file: Path) -> None:
    """Write the table as CSV, with sentences in comment lines before the header."""
    head = "".join(f"# {line}\n" for line in sentences)
    file.write_text(head + table.to_csv(index=False), encoding="utf-8")

"""The table of benchmark results, as text and as a CSV file with the machine's name."""

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
from scant.bench.cases import BASE, GRADIENT, Case, cases
from scant.bench.flops import gemm_rate, least
from scant.bench.graphs import gradient_in
from scant.bench.peers import peers_of
from scant.bench.programs import GPFLOW, GPY, RAIL, load, missing
from scant.bench.timing import Memory, Step, timed, undisturbed
from scant.errors import BadInput
from scant.hardware import machine
from scant.training.loop import choose_device

SIZES = ("n", "m", "classes")
NAMES = ("model", "method", "work", *SIZES, "varies", "device", "dtype", "mode")
METHOD = ("model", "method", "device", "dtype", "mode")
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
    "mode",
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
EAGER, GRAPH = "eager", "CUDA graph"
NO_GRAPH = "no graph: "
NO_CUDA = "There is no CUDA device here: the cases for one were skipped."
ROUNDS, SECONDS = 21, 1.2  # at most, of a case
QUICK_ROUNDS, QUICK_SECONDS = 5, 0.2
SHARED = 1.2  # wall clock over processor's time, from which the machine was not ours alone


def devices(device: str = "auto") -> list[torch.device]:
    """Those to measure on: of "auto" the processor, and a GPU where there is one.

    Raises:
        BadInput: CUDA was asked for and there is none.
    """
    if device != "auto":
        return [choose_device(device)]
    return [torch.device(kind) for kind in ("cpu", "cuda") if kind == "cpu" or cuda.is_available()]


def precisions(dtype: str, device: torch.device) -> list[str]:
    """Those to measure in: "both", or one; of "auto" both on a GPU, and double on a processor.

    Raises:
        BadInput: An unknown one.
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
    """Time every case, in one thread where it runs on a processor, and on CUDA as a graph too.

    Args:
        model: One of `cases.MODELS`; None: all.
        on: The devices.
        quick: Fewer sizes and rounds.
        said: Is told what is done next, and the share that is done.
        dtype: "float64", "float32", "both" or "auto" (see `precisions`).

    Returns:
        A row a case, its columns `NAMES` and `FIGURES`; one that failed or was skipped, since it
        has no such precision or its package is not installed, says why in `note` and has no `ms`.

    Raises:
        NotFound: There is no such model.
        BadInput: An unknown `dtype`.
    """
    asked = [
        (case, device, name)
        for device in on
        for name in precisions(dtype, device)
        for case in cases(model, quick)
        if device.type == "cpu" or case.cuda
    ]
    found = []
    with undisturbed():
        for number, (case, device, name) in enumerate(asked):
            said(f"{case.model}, {case.method}, {device.type}, {name}", number / len(asked))
            found += _rows(case, device, name, quick)
    return pd.DataFrame(found, columns=[*NAMES, *FIGURES]).astype(dict.fromkeys(SIZES, "Int64"))


def _rows(case: Case, device: torch.device, dtype: str, quick: bool) -> list[dict[str, object]]:
    """Of a case: its step, and on CUDA its objective and gradient as a graph."""
    row: dict[str, object] = {
        **{name: getattr(case, name) for name in ("model", "method", "work", "varies")},
        **case.sizes,
        "device": device.type,
        "dtype": dtype,
        "mode": EAGER,
    }
    peers = peers_of(case.model, case.method, *(case.sizes.get(name, 0) for name in SIZES))
    if peers and (device.type, dtype) == ("cpu", "float64"):
        others = "".join(f"; {p.program}: {p.ms:g}" for p in peers[1:])
        row |= {"peer_ms": peers[0].ms, "peer": peers[0].program + others}
    if why := case.refused(DTYPES[dtype]):
        return [row | {"note": f"skipped: {why}"}]
    try:
        if case.needs:
            load(case.needs)
        memory = Memory(device)
        step = case.step(device, DTYPES[dtype])
        rows = [row | _figures(case, step, device, dtype, quick, memory)]
        if _stuck(step):
            return [row | {"note": f"skipped: no step goes on in {dtype}."}]
    except Exception as error:  # a case that a machine cannot do leaves the others standing
        return [row | {"note": f"failed: {_words(error)}"}]
    gradient = gradient_in(step) if device.type == "cuda" else None
    if gradient is None:
        return rows
    row |= {"work": GRADIENT, "mode": GRAPH}
    memory = Memory(device)
    try:
        graph = gradient.graph()
    except Exception as error:  # CUDA says what cannot be captured, in several classes
        return [*rows, row | {"note": f"{NO_GRAPH}{_words(error)}"}]
    return [*rows, row | _figures(case, graph, device, dtype, quick, memory)]


def _stuck(step: Step) -> bool:
    """Whether its trainer has given up, or its objective is not finite: it was not work that was
    timed. Some cases have a matrix that cannot be factorized in single precision.
    """
    value, trainer = step(), getattr(step, "__self__", None)
    number = isinstance(value, float) or (isinstance(value, torch.Tensor) and value.numel() == 1)
    return bool(getattr(trainer, "stalled", False)) or (number and not isfinite(cast(float, value)))


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]:.120}"


def _figures(
    case: Case, step: Step, device: torch.device, dtype: str, quick: bool, memory: Memory
) -> dict[str, object]:
    """Time and memory of a step, and the share that it reaches of the machine's rate."""
    rounds, seconds = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
    took, risen = timed(step, device, rounds, seconds), memory.risen()
    ours = device.type == "cpu" and case.workers == 1  # else others' time counts, by the clock
    found: dict[str, object] = {
        "ms": round(took.ms, 3),
        "cpu_ms": round(took.cpu, 3) if ours else None,
        "fastest_ms": round(took.fastest, 3),
        "slowest_ms": round(took.slowest, 3),
        "rounds": took.rounds,
        "peak_mb": None if risen is None else round(risen, 1),
    }
    flops = least(case.model, case.method, case.sizes)
    rate = gemm_rate(case.sizes, device, DTYPES[dtype])
    ms = took.cpu if ours else took.ms
    return found | {
        "mflop": round(flops / 1e6, 2),
        "gemm_gflops": round(rate / 1e9, 2),
        "share": round(flops / (max(ms, 1e-6) / 1000) / rate, 4),
    }


def growth(table: pd.DataFrame) -> pd.DataFrame:
    """How each method's cost grows: ms ~ size^power, by least squares of the logarithms.

    Of the processor's time where there is no GPU, since other work on the machine swells the rest.

    Args:
        table: As `measure` gives it.

    Returns:
        A row for each method, device, dtype, mode and size with three values at least: these,
        `from`, `to` and `power`.
    """
    rows = []
    cost = table.assign(ms=table["cpu_ms"].fillna(table["ms"])).dropna(subset="ms")
    for keys, of in cost.groupby(list(METHOD), sort=False):
        for size in SIZES:
            seen = of[of["varies"].isin([BASE, size])]
            x, y = seen[size].to_numpy(float, na_value=np.nan), seen["ms"].to_numpy(float)
            if len(set(x[~np.isnan(x)])) < 3:
                continue
            power = np.polyfit(np.log(x), np.log(y), 1)[0]
            named = dict(zip(METHOD, keys))
            ends = {"from": int(x.min()), "to": int(x.max())}
            rows.append({**named, "size": size, **ends, "power": round(float(power), 2)})
    return pd.DataFrame(rows, columns=[*METHOD, "size", "from", "to", "power"])


def circumstances(table: pd.DataFrame, on: Sequence[torch.device], quick: bool) -> list[str]:
    """When, with what and where: sentences that belong to the figures, without a name of a host."""
    packages = ["torch", "gpytorch", "scikit-learn", "numpy"]
    packages += [name for name in (GPFLOW, GPY, RAIL) if not missing(name)]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    told = [
        f"Measured {datetime.now(UTC):%Y-%m-%d} (UTC) by Scant {__version__}"
        f"{' with --quick' if quick else ''}, Python {platform.python_version()}, {versions}.",
        f"{machine()}; one thread of the processor.",
        "ms: the median of a step's rounds. cpu_ms: of the processor's time, where nothing runs on"
        " a GPU. peak_mb: how far the peak of memory rose, building it included. peer_ms: another"
        " program, elsewhere, on such a machine (scant.bench.peers).",
        "mflop: the least arithmetic of a step (scant.bench.flops), in millions. gemm_gflops: the"
        " rate of a product of matrices of the case's sizes just after, in billions a second."
        " share: what the step reached of that rate.",
    ]
    timed = table.dropna(subset=["ms", "cpu_ms"])
    if len(timed) and (waited := (timed["ms"] / timed["cpu_ms"]).median()) > SHARED:
        told.append(f"Other work ran on the machine: ms is {waited:.1f} times cpu_ms.")
    if any(device.type == "cuda" for device in on):
        return told
    return [*told, "CUDA was not asked for." if cuda.is_available() else NO_CUDA]


def as_text(table: pd.DataFrame) -> str:
    """The table for a terminal, and below it how the cost grows."""
    shown = table[list(SHOWN)].dropna(axis=1, how="all").astype(object)
    if "peer" in shown:
        shown["peer"] = shown["peer"].str.partition(";")[0]  # the fastest; the file has all
    text = shown.where(shown.notna(), "").to_string(index=False)
    grown = growth(table)
    if len(grown):
        text += "\n\nHow it grows: ms ~ size^power\n" + grown.to_string(index=False)
    return text


def write_csv(table: pd.DataFrame, sentences: Sequence[str], file: Path) -> None:
    """The table as CSV; its circumstances stand in lines that begin with #, before the header."""
    head = "".join(f"# {line}\n" for line in sentences)
    file.write_text(head + table.to_csv(index=False), encoding="utf-8")

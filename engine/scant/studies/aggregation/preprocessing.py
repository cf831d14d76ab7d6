"""Preprocessing of aggregation tables: tasks, training rows, scales, small cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.errors import BadInput
from scant.kernels.box_average.support import boxes
from scant.models.mtgpa.areas import fits
from scant.models.mtgpa.prior import Data
from scant.studies.aggregation.beside import (
    counts_of,
    covariates,
    fitting,
    known_covariates,
    known_of,
    with_errors,
)
from scant.studies.aggregation.capacity import inside_each
from scant.studies.aggregation.population import People
from scant.studies.aggregation.settings import (
    COUNTED,
    EXACT,
    MOST_EXACT,
    MOST_KNOWN,
    MOST_LATENT,
    MOST_LEARNED,
    MOST_NODE_ROWS,
    MOST_PIECES,
    AggregationSettings,
)
from scant.studies.aggregation.table import Supports, check_values, of
from scant.studies.auto import AUTO
from scant.studies.predicted_table import words
from scant.studies.split import EVERYTHING, TEST, divide, groups, marks
from scant.tables.column_matching import listed

MOST_CELLS = {1: 700, 2: 3000}  # cells of a picture; wider ones where there would be more
COUNTS = (5, 10, 20, 50, 100, 200, 500)  # fine rows on the curve of errors
LEAST_TEST = 2  # rows that can be scored
MOST_SHOWN = 1500  # observations that travel to the page


@dataclass(frozen=True)
class Scale:
    """y of a task is offset + factor times what the model sees; (0, 1) where nothing is scaled."""

    offset: float
    factor: float


def wanted(settings: AggregationSettings, observed: Supports) -> str:
    """The task that is asked about: the one named, else with rows held out, else the finest.

    Raises:
        BadInput: The table has no task of the name given.
    """
    if settings.scarce:
        if settings.scarce not in observed.tasks:
            raise BadInput(
                f"There is no task {settings.scarce!r} for the setting 'scarce'; "
                f"the tasks are {listed(observed.tasks)}."
            )
        return settings.scarce
    held = [observed.tasks[t] for t in np.unique(observed.task[observed.test])]
    size = {
        t: np.median(observed.width[observed.task == i].sum(1))
        for i, t in enumerate(observed.tasks)
    }
    return min(held or observed.tasks, key=lambda task: float(size[task]))


def divided(
    settings: AggregationSettings, table: pd.DataFrame, observed: Supports, scarce: str
) -> pd.DataFrame:
    """The table with rows of the scarce task marked `test`, where it has none that are marked."""
    mine = np.flatnonzero((observed.task == observed.tasks.index(scarce)) & np.isfinite(observed.y))
    wanted = min(max(LEAST_TEST, round(settings.test_share * len(mine))), len(mine) // 2)
    if observed.test.any() or not settings.test_share or wanted < LEAST_TEST:
        return table
    group = groups(table, settings.split_by)
    own = None if group is None else group[mine]
    split = marks(table)
    split[mine[divide(len(mine), settings.seed, test=wanted, group=own).test]] = TEST
    return table.assign(split=split)


def left_out(settings: AggregationSettings, observed: Supports, scarce: str) -> list[str]:
    """Tasks that are not learned from.

    Raises:
        BadInput: An unknown task, or the one that is asked about.
    """
    named = [word.strip() for word in settings.leave_out.split(",") if word.strip()]
    for task in named:
        if task not in observed.tasks:
            raise BadInput(
                f"There is no task {task!r} for the setting 'leave_out'; "
                f"the tasks are {listed(observed.tasks)}."
            )
    if scarce in named:
        raise BadInput(f"Task {scarce!r} is asked about and cannot be left out; name another.")
    return named


def training_rows(
    settings: AggregationSettings, observed: Supports, scarce: str
) -> Bool[np.ndarray, " n"]:
    """Which rows are learned from: known, not held out, of no task that is left out."""
    rows = np.isfinite(observed.y)
    if settings.refit != EVERYTHING:
        rows &= ~observed.test
    for task in left_out(settings, observed, scarce):
        rows &= observed.task != observed.tasks.index(task)
    return rows


def likelihoods(settings: AggregationSettings, observed: Supports, name: str) -> list[str]:
    """The likelihood of each task.

    Raises:
        BadInput: A value that the likelihood asked for excludes, an unknown task or likelihood;
            rates are to become counts, and there is no exposure.
    """
    per = settings.rate_per
    if per and not (observed.exposure != 1).any():
        raise BadInput(
            f"Setting 'rate_per' is {per:g}, so that y are rates, but {name} has no column "
            "'exposure' of what they are rates of; name the column with the population, or set "
            "rate_per to 0."
        )
    chosen = named(settings.likelihoods, observed)
    for t, task in enumerate(observed.tasks):
        if task in chosen:
            continue
        rows = (observed.task == t) & np.isfinite(observed.y)
        y, exposure = observed.y[rows], observed.exposure[rows]
        if settings.likelihood == AUTO:
            chosen[task] = fitting(counts_of(y, exposure, per) if per else y, exposure)
        else:
            chosen[task] = settings.likelihood
    check_values(observed, chosen, rates=per > 0, name=name)
    return [chosen[task] for task in observed.tasks]


def ranks(settings: AggregationSettings, tasks: int) -> tuple[int, ...]:
    """The rank of each latent function's coregionalization matrix.

    Two tasks that are one quantity share a function; more tasks are of more quantities, which one
    function cannot serve (four tasks of births: SMSE 0.28 with one, 0.008 with two).
    """
    wanted = 0 if settings.n_latent == AUTO else settings.n_latent
    return (settings.rank,) * (wanted or min(-(-tasks // 2), MOST_LATENT))


def exact(
    settings: AggregationSettings, kinds: list[str], rows: int, points: bool, pieces: int = 1
) -> bool:
    """Whether inference is exact, of so many rows that are all points or not; see the setting.

    `pieces` are those of a row: a polygon is as many points, each of which meets all others.

    Raises:
        BadInput: It is asked for where a likelihood or minibatches exclude it.
    """
    met = [f"a {kind} likelihood" for kind in kinds if kind not in EXACT]
    if settings.batch_size:
        met.append(f"batch_size {settings.batch_size}")
    if settings.kernel not in (AUTO, "eq") and not points:  # a box is many of them, all in pairs
        met.append(f"kernel {settings.kernel}")
    if settings.inference == "exact" and met:
        raise BadInput(
            "Setting 'inference' is exact, which takes Gaussian likelihoods, kernel eq (or "
            f"points alone) and all rows at once; here it meets {met[0]}. Choose auto or "
            "variational."
        )
    quick = rows <= (MOST_KNOWN if settings.kernel == AUTO else MOST_EXACT) and not met
    quick &= pieces == 1 or rows * pieces <= MOST_PIECES
    return settings.inference == "exact" or (settings.inference == "auto" and quick)


def by_laplace(
    settings: AggregationSettings, kinds: list[str], rows: int, latents: int, summed: bool
) -> bool:
    """Whether counts of areas, of so many rows with so many points in all, go by Laplace's
    approximation; see the setting.

    Args:
        summed: Whether rates are sums over polygons of a map.

    Raises:
        BadInput: It is asked for where tasks or minibatches exclude it.
    """
    met = [f"a {kind} likelihood" for kind in kinds if kind not in COUNTED]
    if not summed:
        met.append("no map of counts whose rates are sums")
    if settings.batch_size:
        met.append(f"batch_size {settings.batch_size}")
    if settings.inference == "laplace" and met:
        raise BadInput(
            "Setting 'inference' is laplace, which takes counts on a map, sums of rates, and all "
            f"rows at once; here it meets {met[0]}. Choose auto or variational."
        )
    quick = not met and fits(rows, latents)
    return settings.inference == "laplace" or (settings.inference == "auto" and quick)


def over_nodes(settings: AggregationSettings, rows: int) -> bool:
    """Whether an exact model of so many rows averages over its hyperparameters."""
    few = settings.hyperparameters == AUTO and rows <= MOST_NODE_ROWS
    return few or settings.hyperparameters == "nodes"


def learned(s: AggregationSettings, data: Data) -> Data:
    """The rows that an exact model's hyperparameters are learned from: all, or some of each task.

    Where the kernel is `auto`; with one that was chosen all are taken.
    """
    n = len(data.y)
    if s.kernel != AUTO or n <= MOST_EXACT:
        return data
    order = torch.as_tensor(np.random.default_rng(s.seed).permutation(n)).to(data.task.device)
    parts = [order[data.task[order] == t] for t in data.task.unique()]
    return data.at(torch.cat([p[: -(-len(p) * MOST_LEARNED // n)] for p in parts]).sort().values)


def named(text: str, observed: Supports) -> dict[str, str]:
    """Task to likelihood, from "task=poisson, other=gaussian"."""
    allowed = [str(name) for name in AggregationSettings.param["likelihood"].objects[1:]]
    result = {}
    for word in filter(None, (w.strip() for w in text.split(","))):
        task, _, kind = (part.strip() for part in word.rpartition("="))
        if task not in observed.tasks or kind not in allowed:
            raise BadInput(
                f"Setting 'likelihoods' has {word!r}; give TASK=LIKELIHOOD with a task of "
                f"{listed(observed.tasks)} and a likelihood of {listed(allowed)}."
            )
        result[task] = kind
    return result


def scales(
    settings: AggregationSettings,
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    kinds: list[str],
) -> list[Scale]:
    """Mean and deviation of what is learned from, of all Gaussian tasks or of each."""
    gaussian = np.array([kind in (*EXACT, "heteroscedastic") for kind in kinds])
    apart = settings.standardize == "each task"
    if settings.standardize == "auto":
        apart = differ([observed.y[rows & (observed.task == t)] for t in np.flatnonzero(gaussian)])
    results = []
    for t in range(len(kinds)):
        mine = rows & (observed.task == t)
        if not apart or not mine.any():
            mine = rows & gaussian[observed.task]
        if not gaussian[t] or not mine.any():
            results.append(Scale(0.0, 1.0))
            continue
        spread = float(observed.y[mine].std())
        results.append(Scale(float(observed.y[mine].mean()), spread if spread > 0 else 1.0))
    return results


def differ(values: list[Float[np.ndarray, " _"]]) -> bool:
    """Whether tasks are of other scales: deviations, or distances of means, beyond threefold.

    An average of a function varies less than the function, so that some difference is no sign.
    """
    many = [y for y in values if len(y) > 2]
    if len(many) < 2:
        return False
    spread, means = np.array([y.std() for y in many]), np.array([y.mean() for y in many])
    least = max(float(spread.min()), 1e-300)
    return bool(spread.max() > 3 * least or np.ptp(means) > 3 * spread.max())


def edges(observed: Supports, scarce: str) -> list[Float[np.ndarray, " _"]]:
    """Edges of small cells over the range of the data in one or two dimensions; else none.

    As wide as the scarce task's smallest support (a hundredth of the range where those are
    points), or a whole number of times that where there would be too many cells.
    """
    d = len(observed.dims)
    if d not in MOST_CELLS or observed.inside is not None:  # a map is drawn as its polygons
        return []
    low, high = observed.lo.min(0), observed.hi.max(0)
    span = np.maximum(high - low, 1e-12)
    mine = observed.width[observed.task == observed.tasks.index(scarce)]
    width = np.array([w[w > 0].min() if (w > 0).any() else s / 100 for w, s in zip(mine.T, span)])
    while np.prod(np.ceil(span / width - 1e-9)) > MOST_CELLS[d]:
        most = int(np.argmax(span / width))
        width[most] *= 2
    counts = np.maximum(np.ceil(span / width - 1e-9).astype(int), 1)
    return [lo + w * np.arange(n + 1) for lo, w, n in zip(low, width, counts)]


def cells(sides: list[Float[np.ndarray, " _"]]) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the cells, the first dimension fastest."""
    lows = np.meshgrid(*(e[:-1] for e in sides), indexing="ij")
    highs = np.meshgrid(*(e[1:] for e in sides), indexing="ij")
    order = [np.stack([part.ravel(order="F") for part in side], axis=1) for side in (lows, highs)]
    return order[0], order[1]


def tensors_of(lo: np.ndarray, hi: np.ndarray, device: torch.device) -> Float[Tensor, "n c"]:
    """Supports as the kernels take them."""
    return boxes(torch.as_tensor(lo), torch.as_tensor(hi)).to(device)


def supports_of(observed: Supports, rows: np.ndarray, device: torch.device) -> Float[Tensor, "m c"]:
    """Rows (chosen or numbered) of a table as the model takes them, covariates behind.

    A polygon's points each lie in all of what its row spans in further dimensions.
    """
    if observed.covariates is not None:
        z = torch.as_tensor(observed.covariates[rows]).to(device)
        bare = replace(observed, covariates=None)
        return torch.cat([supports_of(bare, rows, device), z], dim=1)
    lo, hi = observed.lo[rows], observed.hi[rows]
    if observed.inside is None:
        return tensors_of(lo, hi, device)
    inside = observed.inside[rows]
    flat = inside.shape[2] - 1  # dimensions of the map
    ends = [
        np.broadcast_to(e[:, None, flat:], (*inside.shape[:2], e.shape[1] - flat)) for e in (lo, hi)
    ]
    pieces = [inside[..., :flat], ends[0], inside[..., :flat], ends[1], inside[..., flat:]]
    return torch.as_tensor(np.concatenate(pieces, axis=2)).flatten(1).to(device)


def of_rows(
    scale: list[Scale], task: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Offset and factor of each row's task."""
    pairs = np.array([(s.offset, s.factor) for s in scale])[task]
    return pairs[:, 0], pairs[:, 1]


def data_of(
    settings: AggregationSettings,
    observed: Supports,
    rows: np.ndarray,
    tasks: list[str],
    kinds: list[str],
    scale: list[Scale],
    device: torch.device,
) -> Data:
    """Rows (chosen or numbered) of a table as the model takes them.

    Args:
        tasks: Of the model, which numbers them so; all rows are of one of these.
        kinds: The likelihoods of those tasks.
        scale: Of those tasks: values are scaled by it.
    """
    number = np.array([tasks.index(observed.tasks[t]) for t in observed.task[rows]], dtype=np.int64)
    offset, factor = of_rows(scale, number)
    y, exposure = observed.y[rows], observed.exposure[rows]
    if settings.rate_per:
        counted = np.isin(np.array(kinds, dtype=object)[number], COUNTED)
        y = np.where(counted, counts_of(y, exposure, settings.rate_per), y)
    return Data(
        supports_of(observed, rows, device),
        torch.as_tensor((y - offset) / factor).to(device),
        torch.as_tensor(number).to(device),
        torch.as_tensor(exposure).to(device),
        known_of(settings, observed, rows, factor, device),
    )


def counts(fine: int) -> list[int]:
    """The numbers of fine rows worth asking about where there are `fine` of them."""
    return [n for n in COUNTS if n < fine]


def metadata_of(
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    scarce: str,
    kinds: list[str],
    whole: Supports,
) -> dict[str, Any]:
    """What labels the arrays on a page (`events.Started`): tasks, space, cells, observations.

    `whole` are all rows of the table, the fine ones that may not be learned from among them: they
    say where the cells lie and what is true there.
    """
    sides, mine = edges(whole, scarce), whole.task == whole.tasks.index(scarce)
    shown = np.flatnonzero(rows | observed.test)
    if len(shown) > MOST_SHOWN:
        shown = shown[np.linspace(0, len(shown) - 1, MOST_SHOWN).astype(int)]
    return {
        "tasks": list(observed.tasks),
        "likelihoods": kinds,
        "scarce": scarce,
        "dims": list(observed.dims),
        **({"system": observed.system} if observed.system else {}),
        **({"covariates": [list(c) for c in observed.named]} if observed.named else {}),
        "range": [[float(a), float(b)] for a, b in zip(whole.lo.min(0), whole.hi.max(0))],
        "edges": [side.tolist() for side in sides],
        "truth": truth_of(whole, sides, scarce),
        "rows": {"training": int(rows.sum()), "test": int(observed.test.sum())},
        "counts": counts(int((mine & ~whole.test & np.isfinite(whole.y)).sum())),
        "observed": {
            "task": observed.task[shown].tolist(),
            "lo": observed.lo[shown].tolist(),
            "hi": observed.hi[shown].tolist(),
            "y": [float(v) if np.isfinite(v) else None for v in observed.y[shown]],
            "test": observed.test[shown].tolist(),
        },
    }


def truth_of(observed: Supports, sides: list[np.ndarray], scarce: str) -> list[float | None] | None:
    """The scarce task's truth on the cells, where the table knows it for these very cells."""
    mine = (observed.task == observed.tasks.index(scarce)) & np.isfinite(observed.truth)
    if not sides or not mine.any():
        return None
    lo, _ = cells(sides)
    known = {
        tuple(np.round(a, 9)): float(v)
        for a, v, w in zip(observed.lo[mine], observed.truth[mine], observed.width[mine])
        if np.allclose(w, [side[1] - side[0] for side in sides])
    }
    results = [known.get(tuple(np.round(corner, 9))) for corner in lo]
    return results if any(v is not None for v in results) else None


def kept(rows: dict[str, Tensor], tasks: list[str], metadata: dict[str, Any]) -> Supports:
    """The rows that stayed with a fitted model."""
    of_row = {name: values.numpy() for name, values in rows.items()}
    unknown = np.full(len(of_row["y"]), np.nan)
    dims, system = tuple(metadata["dims"]), metadata.get("system", "")
    own: dict[str, Any] = {"y_err": unknown, "named": known_covariates(metadata), **of_row}
    return Supports(tuple(tasks), dims, truth=unknown, system=system, **own)


def read(
    settings: AggregationSettings,
    table: pd.DataFrame,
    metadata: dict[str, Any] | None = None,
    people: People | None = None,
) -> Supports:
    """The table's arrays; with the tasks and dimensions of a fitted study, where there is one.

    Raises:
        BadInput: See `supports.of`.
    """
    points = inside_each(settings, len(table))
    if metadata is None:
        own = covariates(settings, table)
        found = of(table, points=points, covariates=own, people=people)
        return with_errors(found) if settings.known_noise else found
    dims, system = metadata["dims"], metadata.get("system", "")
    tasks = metadata["tasks"]
    return of(
        table,
        dims=dims,
        tasks=tasks,
        system=system,
        points=points,
        covariates=known_covariates(metadata),
        people=people,
        **words(table),
    )

"""The form of a catalog entry, and the base class of every study's settings."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import param

from scant.errors import BadInput
from scant.studies.aliases import ADDED, current_settings
from scant.studies.auto import AUTO, AutoInteger, Choice, Choices
from scant.tables.schema import TableSchema

LONGEST = 10_000  # characters of a setting, such as a list of hidden replicas


class Settings(param.Parameterized):
    """Everything that can change a study's result, the seed included.

    One class gives the page's form, the command line's `--set`, the link's query, the JSON in the
    store, and validation. Subclasses name in `essential` the few settings that a page shows open.
    """

    study: ClassVar[str] = ""  # whose former names of settings are understood too
    essential: ClassVar[tuple[str, ...]] = ()
    # From which a fit that is to predict other tables starts, where they are no defaults.
    for_predictions: ClassVar[Mapping[str, Any]] = {}

    data_seed = param.Integer(
        0,
        bounds=(0, 2**31 - 1),
        doc="Seed of the demonstration's data; not used for your own tables.",
    )
    seed = param.Integer(0, bounds=(0, 2**31 - 1), doc="Seed of every random choice of this run.")

    @classmethod
    def names(cls) -> list[str]:
        """The settings' names, in the order in which they were declared, the seeds last."""
        last = ("data_seed", "seed")
        own = [n for n in cls.param if n not in ("name", *last) and not n.startswith("_")]
        return [*own, *last]

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from words (a link, `--set`, JSON): each value cast to its parameter's type.

        Raises:
            BadInput: An unknown name, or a value outside its bounds; the sentence says which.
        """
        known = cls.names()
        cast: dict[str, Any] = {}
        for name, value in current_settings(cls.study, values).items():
            if name not in known:
                raise BadInput(
                    f"There is no setting {_cut(name)} in this study; it has {', '.join(known)}."
                )
            cast[name] = _cast(name, cls.param[name], value)
        settings = cls()
        for name, value in cast.items():
            try:
                setattr(settings, name, value)
            except (ValueError, TypeError) as error:
                raise BadInput(_explain(name, cls.param[name], value)) from error
        settings.check()
        return settings

    def check(self) -> None:
        """Raise `BadInput` where settings that are each allowed do not fit together."""

    def values(self) -> dict[str, Any]:
        """All settings, ready for JSON."""
        return {name: getattr(self, name) for name in self.names()}

    def changed(self, start: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The settings that a link must name: those that differ from `start` (see `Entry.start`)
        and, beyond it, from what a link means without them."""
        usual = {n: type(self).param[n].default for n in self.names()}
        usual |= {**ADDED.get(self.study, {}), **(start or {})}
        return {n: v for n, v in self.values().items() if v != usual[n]}


def _cut(value: Any) -> str:
    """A value for a sentence, the beginning of a long one."""
    shown = repr(value[:80] if isinstance(value, str) else value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _cast(name: str, parameter: param.Parameter, value: Any) -> Any:
    """A word as the parameter's own type; a finite number, and no more than a page, of anything."""
    if isinstance(value, str) and (len(value) > LONGEST or "\x00" in value):
        what = "a NUL character" if "\x00" in value else f"{len(value):,} characters"
        raise BadInput(
            f"Setting {name!r} has {what}; write at most {LONGEST:,} ordinary characters."
        )
    wanted = isinstance(parameter, param.Number)  # whole numbers among them
    if not isinstance(value, str):
        yes_or_no = isinstance(value, bool | np.bool_)
        if wanted and (yes_or_no or (isinstance(value, float) and not math.isfinite(value))):
            raise BadInput(_explain(name, parameter, value))
        return value
    text = value.strip()
    if text.lower() == AUTO and isinstance(parameter, AutoInteger):
        return AUTO
    try:
        if isinstance(parameter, param.Boolean):
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[
                text.lower()
            ]
        if isinstance(parameter, param.Integer):
            return int(text)
        if isinstance(parameter, param.Number):
            number = float(text)
            if not math.isfinite(number):
                raise ValueError("not finite")
            return number
    except (KeyError, ValueError) as error:
        raise BadInput(_explain(name, parameter, value)) from error
    return text


def _explain(name: str, parameter: param.Parameter, value: Any) -> str:
    if isinstance(parameter, param.Selector):
        allowed = "one of " + ", ".join(str(o) for o in parameter.objects)
    elif isinstance(parameter, param.Boolean):
        allowed = "true or false"
    elif isinstance(parameter, param.Number):
        low, high = parameter.bounds or (None, None)
        kind = "a whole number" if isinstance(parameter, param.Integer) else "a number"
        allowed = kind
        if low is not None and high is not None:
            allowed = f"{kind} at least {low:g} and at most {high:g}"
        elif low is not None:
            allowed = f"{kind} at least {low:g}"
        elif high is not None:
            allowed = f"{kind} at most {high:g}"
        if isinstance(parameter, AutoInteger):
            allowed += ", or auto"  # `AUTO`, spelled out for the catalogs of languages
    else:
        allowed = "text"
    return f"Setting {name!r} must be {allowed}; got {_cut(value)}."


@dataclass(frozen=True)
class ArraySpec:
    """A named array of a snapshot or a report: its shape in symbols, its unit, what it is."""

    name: str
    shape: str
    unit: str
    doc: str


def array_specs(table: str) -> tuple[ArraySpec, ...]:
    """The specs in a table: a line `name (shape) [unit] doc` each, which indented lines go on.

    Raises:
        ValueError: A line has another form.
    """
    specs = []
    for line in re.split(r"\n(?! )", textwrap.dedent(table).strip()):
        match = re.fullmatch(r"(\S+) \((.+?)\) \[(.+?)\] (.+)", " ".join(line.split()))
        if match is None:
            raise ValueError(f"the spec of an array is no `name (shape) [unit] doc`: {line!r}")
        specs.append(ArraySpec(*match.groups()))
    return tuple(specs)


@dataclass(frozen=True)
class Citation:
    """A publication, as a page and an export cite it."""

    text: str
    doi: str = ""


Counts = Mapping[str, Mapping[str, int]]  # what `tables.counts` says of a table


@dataclass(frozen=True)
class Source:
    """A data set that a study can be fitted to.

    `kind` is "generated" (made by the study from its settings, nothing travels) or "fetched"
    (downloaded once into the user's data directory by `scant.tables`). A generated one names
    its generator, `(settings, rows=None) -> DataFrame`, as "package.module:function".

    `size` tells the rows and columns of its table without making it, or gives the function that
    tells them from the settings; None where they are not known before it is here. `counts` tells
    what `tables.counts` would, so far as an estimate asks for it and would guess something else.
    `kept`: it takes seconds to make, and its generator keeps it in the data directory. `start` has
    the settings from which a fit to it starts; None: those of the preset of the demonstration.
    `scarcity` names the setting that only this data set has and that makes it scarce.
    """

    name: str
    title: str
    doc: str
    kind: str = "generated"
    generator: str = ""
    size: tuple[int, int] | Callable[[Any], tuple[int, int]] | None = None
    counts: Counts = field(default_factory=dict)
    kept: bool = False
    start: Mapping[str, Any] | None = None
    scarcity: str = ""

    def rows_and_columns(self, settings: Settings) -> tuple[int, int] | None:
        """What its table will have with these settings; None where that is not known."""
        return self.size(settings) if callable(self.size) else self.size


@dataclass(frozen=True)
class Entry:
    """One study, as both houses know it.

    Attributes:
        name: The word in addresses and on the command line.
        title: The page's heading.
        question: One sentence: what is scarce here, and what is asked.
        settings: The study's settings class.
        table: The CSV it takes.
        sources: The data sets it offers; the first is the demonstration.
        snapshot: The arrays of its `Snapshot` events.
        report: The arrays of its `Report`.
        predicted: The columns that its `predict` adds to a table (`predicted_columns`).
        explore: What its `explore` answers, by question: name to the arrays of the answer.
        presets: Named settings: name to the values that differ from the defaults.
        citations: The publications behind it.
        limits: Sentences on what method and implementation cannot do, and where we depart.
        objective: What `Progress.elbo` is here, with its unit.
        score: What `Progress.score` is here, with its unit.
        estimate: Seconds and bytes that a fit takes on one core, of a worker that has its libraries
            in; for the page to say before it is begun. Of (settings, rows, columns, what
            `tables.counts` says of the table: empty where it was not read); None: nobody knows.
        parts: The counts of rows to train, validate and test on (`scant.studies.split`), of
            (settings, rows, what `tables.counts` says), before a fit; None: rows are not divided.
        check: Function that refuses a table that no fit with these settings can take, as
            "package.module:function" of (settings, table, its name for messages); without torch.
        reweighs: Whether a second fit, to all rows, weighs its average anew (the setting `stack`),
            and does not take the weights of the first.
        capacity: Values for settings that are `auto`, of (settings, rows, columns, what
            `tables.counts` says); None: the study has no such settings, or chooses them itself.
    """

    name: str
    title: str
    question: str
    settings: type[Settings]
    table: TableSchema
    sources: tuple[Source, ...]
    snapshot: tuple[ArraySpec, ...] = ()
    report: tuple[ArraySpec, ...] = ()
    predicted: tuple[ArraySpec, ...] = ()
    explore: Mapping[str, tuple[ArraySpec, ...]] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    citations: tuple[Citation, ...] = ()
    limits: tuple[str, ...] = ()
    objective: str = "ELBO (nats a row)"
    score: str = "validation log-likelihood (nats a row)"
    estimate: Callable[[Any, int, int, Counts], tuple[float, float]] | None = None
    parts: Callable[[Any, int, Counts], Any] | None = None
    check: str = ""
    reweighs: bool = True
    capacity: Callable[[Any, int, int, Counts], Choices] | None = None

    def check_table(self, settings: Any, table: pd.DataFrame, name: str = "the table") -> None:
        """Refuse a table that no fit with these settings can take, before one begins.

        Raises:
            BadInput: The sentence that the fit would end with.
        """
        if self.check:
            module, _, function = self.check.partition(":")
            getattr(import_module(module), function)(settings, table, name)

    def settled(
        self, settings: Any, rows: int, columns: int, counts: Counts
    ) -> tuple[Any, dict[str, Choice]]:
        """The settings with values in place of `auto`, and what was chosen.

        Args:
            settings: Of this study.
            rows: Of the table.
            columns: Of the table.
            counts: What `tables.counts` says of it; empty where it was not read.

        Raises:
            BadInput: The values do not fit together with those that the user set.
        """
        if self.capacity is None:
            return settings, {}
        chosen = {
            name: choice
            for name, choice in self.capacity(settings, rows, columns, counts).items()
            if getattr(settings, name) == AUTO
        }
        if not chosen:
            return settings, {}
        values = {**settings.values(), **{name: c.value for name, c in chosen.items()}}
        made = type(settings)(**values)
        made.check()
        return made, chosen

    def start(self, data: object = None) -> Mapping[str, Any]:
        """The settings from which a fit to this data starts, where they are no defaults.

        The study's own data sets start from the preset of the demonstration, whose sizes are fixed,
        or from settings of their own; a table of one's own from the defaults, by which all of its
        rows are used.

        Args:
            data: As `scant.fit` or a run takes it; None: the demonstration.
        """
        if not self.offers(data):
            return {}
        own = next((s.start for s in self.sources if s.name == str(data)), None)
        return self.presets.get("demo", {}) if own is None else own

    def offers(self, data: object) -> bool:
        """Whether this data is one of the study's sets (None: the first of them)."""
        return data is None or (
            isinstance(data, str | Path) and str(data) in {s.name for s in self.sources}
        )

    def link(self, data: object, settings: Settings) -> dict[str, Any]:
        """What a link to a fit to this data says: what is not as it starts, and the seeds."""
        seeds = {"data_seed": settings.data_seed, "seed": settings.seed}
        return {**settings.changed(self.start(data)), **seeds}

    def parse(self, data: object, values: Mapping[str, Any]) -> Settings:
        """The settings of a fit to this data: `values` over those that it starts from.

        Raises:
            BadInput: An unknown name, or a value outside its bounds.
        """
        given = current_settings(self.settings.study, values)
        return self.settings.parse({**self.start(data), **given})


def partner_seconds(rows: int, inputs: int, wide: int, narrow: int) -> float:
    """Seconds that GPs beside a model take on one core (`scant.models.anchored_gp`), by factor two.

    Measured, one thread, with a lengthscale of each input: 0.04 s of 50 rows of 4 inputs, 0.4 of
    150 of 8, 0.8 of 300 of 4, 7 of 300 of 20; with none 0.1 of 300. No more rows than 300 choose.

    Args:
        rows: That a GP learns from.
        inputs: d; beyond 20 they share a lengthscale.
        wide: How many GPs have lengthscales.
        narrow: How many have none.
    """
    few, widths = min(rows, 300), inputs if inputs <= 20 else 1
    search = wide * (0.03 + 2.2e-6 * few**2 * widths) + narrow * (0.02 + 1.2e-6 * few**2)
    return search + 2e-5 * rows * (wide + narrow)


def until_rest(most: int, patience: int, share: float) -> float:
    """Steps that a restart is expected to take: all of few, and of more a share before it rests."""
    return min(float(most), 2 * patience + share * most) if patience else float(most)

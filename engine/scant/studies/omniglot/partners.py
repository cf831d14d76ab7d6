"""Classifiers of each output, with which the model's probabilities are averaged.

One model shares what many outputs have in common, through inducing points and a bound. Of a single
output with rows enough, an exact GP on the indicators of the classes, or a linear classifier (the
mode of a GP with a linear kernel), may know more; where inputs tell little, the shares of the
classes do. Of images there are classifiers that know how drawings vary, and what a network sees in
them (`strokes`). Rows that none of them was shown choose the weights (`scant.ensemble`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression

from scant.deadline import NEVER, Deadline
from scant.ensemble import Ensemble, Sharpened
from scant.models.left_out import Form, Indicators, select_kernel
from scant.predictive import CategoricalPredictive
from scant.studies.omniglot import strokes
from scant.studies.omniglot.capacity import MOST_ROWS
from scant.studies.omniglot.prepared import Prepared

MOST_NUMBERS = 5e7  # rows x features x classes, up to which straight lines take part
LINEAR_STEPS = 200
EXACT, LINEAR, SHARES = "exact GP", "linear classifier", "shares of the classes"
MODEL = "model"
PLAIN = (MODEL, EXACT, LINEAR, SHARES)
NAMES = (*PLAIN, strokes.BENDING, *strokes.VIEWS)  # the last ones as far as `features` goes

Rows = Float[np.ndarray, "n v"]
Classifier = Callable[[Rows], Float[np.ndarray, "n c"]]


class Partners:
    """Classifiers of each output by their names, each learned when it is first asked for.

    Args:
        data: The run's rows.
        train: Of them, those to learn from.
        forms: Kernels by names; those that are not there are chosen.
    """

    def __init__(
        self, data: Prepared, train: Int[np.ndarray, " m"], forms: Mapping[str, Form] | None = None
    ) -> None:
        self.data, self.forms = data, dict(forms or {})
        own = data.observed.x[train]
        spread = own.std(0)
        common = np.full_like(spread, max(float(spread.max(initial=0.0)), 1e-9))
        self.scale = common if data.image is not None else np.where(spread > 1e-9, spread, 1.0)
        self.centre = own.mean(0)
        rng = np.random.default_rng([data.settings.seed, 13])
        parts = [train[data.observed.output[train] == d] for d in range(len(data.sizes))]
        self.parts = [np.sort(rng.permutation(rows)[:MOST_ROWS]) for rows in parts]
        self.drawn = () if data.drawings is None else (strokes.BENDING, *data.drawings.seen)
        self.names = (EXACT, LINEAR, SHARES, *self.drawn)
        self._learned: dict[str, list[Classifier]] = {}

    def __getitem__(self, name: str) -> list[Classifier]:
        if name not in self._learned:
            self._learned[name] = self._learn(name)
        return self._learned[name]

    def ask(self, name: str, x: Rows, output: Int[np.ndarray, " n"]) -> CategoricalPredictive:
        """Classes of rows by one classifier, numbered through all outputs."""
        result = np.zeros((len(x), int(self.data.sizes.max())))
        for d in np.unique(output):
            at = np.flatnonzero(output == d)
            result[at, : self.data.sizes[d]] = self[name][d](x[at])
        first, none = self.data.observed.offset[output], np.zeros(len(x))
        return CategoricalPredictive(result, information=none, first=first)

    def _learn(self, name: str) -> list[Classifier]:
        if name in (EXACT, LINEAR, SHARES):
            columns = sum(len(p) * size for p, size in zip(self.parts, self.data.sizes))
            if name == LINEAR and columns * len(self.scale) > MOST_NUMBERS:
                name = SHARES
            return list(map({EXACT: self._exact, LINEAR: self._linear, SHARES: self._shares}[name],
                            range(len(self.parts))))  # fmt: skip
        drawings, image = self.data.drawings, self.data.image
        assert drawings is not None
        assert image is not None
        rows = [np.searchsorted(self.data.train, part) for part in self.parts]
        learned = drawings.learned(name, rows, self.forms)
        return [partial(_of_drawing, ask, image) for ask in learned]

    def _exact(self, d: int) -> Classifier:
        if EXACT not in self.forms:
            self.forms[EXACT] = select_kernel(
                [(self._views(k), np.eye(self.data.sizes[k])[self._labels(k)]) for k in self._most]
            )
        gp = Indicators.from_labels(
            self.forms[EXACT], self._views(d), self._labels(d), int(self.data.sizes[d])
        )
        return lambda x: gp.predict([self._seen(x)])

    def _linear(self, d: int) -> Classifier:
        line = LogisticRegression(max_iter=LINEAR_STEPS).fit(self._views(d)[0], self._labels(d))

        def ask(x: Rows) -> Float[np.ndarray, "n c"]:
            p = np.zeros((len(x), int(self.data.sizes[d])))
            p[:, line.classes_] = line.predict_proba(self._seen(x))
            return p

        return ask

    def _shares(self, d: int) -> Classifier:
        size = int(self.data.sizes[d])  # as if every class had been seen once more
        share = (np.bincount(self._labels(d), minlength=size) + 1) / (len(self.parts[d]) + size)
        return lambda x: np.tile(share, (len(x), 1))

    def _labels(self, d: int) -> Int[np.ndarray, " k"]:
        return np.asarray(self.data.observed.label[self.parts[d]])

    def _views(self, d: int) -> list[Rows]:
        return [self._seen(self.data.observed.x[self.parts[d]])]

    def _seen(self, x: Rows) -> Rows:
        """Features on one scale."""
        return np.asarray((x - self.centre) / self.scale)

    @cached_property
    def _most(self) -> list[int]:
        """Outputs of the most rows, which choose the kernel."""
        order = sorted(range(len(self.parts)), key=lambda d: -len(self.parts[d]))
        return order[: strokes.SEARCHED]


@dataclass(frozen=True)
class Average:
    """The model's weight and those of its partners, learned from all training rows."""

    ensemble: Ensemble[CategoricalPredictive]
    partners: Partners

    @classmethod
    def fit(
        cls,
        data: Prepared,
        order: Int[np.ndarray, " m"],
        first: int,
        told: CategoricalPredictive,
        deadline: Deadline = NEVER,
    ) -> Average:
        """By rows that were left out.

        Args:
            data: The run's rows.
            order: Its training rows, those left out last.
            first: How many are not left out.
            told: The left-out rows' classes by a model that was not shown them.
            deadline: Of classifiers of strokes.
        """
        partners, late = Partners(data, order[:first]), order[first:]
        observed = data.observed
        x, output = observed.x[late], observed.output[late]
        left_out = {MODEL: told, **_asked(partners, PLAIN[1:], x, output)}
        drawn = deadline.units(partners.drawn, "classifiers of strokes")
        left_out |= _asked(partners, drawn, x, output)
        ensemble = Ensemble.fit(left_out, observed.number[late], Sharpened)
        again = Partners(data, data.train, partners.forms)
        return cls(ensemble.reindex((MODEL, *partners.names)), again)

    def of(self, data: Prepared) -> Average:
        """The same weights and kernels, with partners that learn from other rows."""
        return Average(self.ensemble, Partners(data, data.train, self.partners.forms))

    def combine(
        self, told: CategoricalPredictive, x: Rows, output: Int[np.ndarray, " n"]
    ) -> CategoricalPredictive:
        """The average, where the model tells so much of rows."""
        used = [name for name in self.ensemble.used if name != MODEL]
        return self.ensemble.combine({MODEL: told, **_asked(self.partners, used, x, output)})

    def meta(self) -> dict[str, Any]:
        """JSON-ready arguments of `from_meta`."""
        forms = {name: list(form) for name, form in self.partners.forms.items()}
        return {**self.ensemble.meta(), "forms": forms}

    @classmethod
    def from_meta(cls, data: Prepared, meta: Mapping[str, Any] | None) -> Average | None:
        """The inverse of `meta`; None of a run without an average."""
        if not meta:
            return None
        kept = dict(meta.get("forms", {}))
        if "form" in meta:  # of runs of before 0.3
            kept[EXACT] = meta["form"]
        partners = Partners(data, data.train, {name: Form(*form) for name, form in kept.items()})
        names = (MODEL, *partners.names)
        return cls(Ensemble.from_meta(meta, names, Sharpened), partners)


def _of_drawing(
    ask: Callable[[strokes.Images], Float[np.ndarray, "n c"]], image: tuple[int, int], x: Rows
) -> Float[np.ndarray, "n c"]:
    return ask(strokes.small(x, image))


def _asked(
    partners: Partners, names: Iterable[str], x: Rows, output: Int[np.ndarray, " n"]
) -> dict[str, CategoricalPredictive]:
    return {name: partners.ask(name, x, output) for name in names}

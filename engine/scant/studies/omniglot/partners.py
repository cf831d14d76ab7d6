"""Classifiers of each output whose probabilities are averaged with those of the model.

One model shares the structure of many outputs, through inducing points and a bound. For a single
output with enough rows, an exact GP on the indicators of the classes, or a linear classifier (the
mode of a GP with a linear kernel), may be better; with uninformative inputs, the shares of the
classes are. Classifiers of images use the variation of drawings and features of a network
(`strokes`). Rows that all of them have left out choose the weights (`scant.ensemble`).
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

MOST_NUMBERS = 5e7  # rows x features x classes, up to which linear classifiers take part
LINEAR_STEPS = 200
EXACT, LINEAR, SHARES = "exact GP", "linear classifier", "shares of the classes"
MODEL = "model"
PLAIN = (MODEL, EXACT, LINEAR, SHARES)
NAMES = (*PLAIN, strokes.BENDING, *strokes.VIEWS)  # the last ones depend on `features`

Rows = Float[np.ndarray, "n v"]
Classifier = Callable[[Rows], Float[np.ndarray, "n c"]]


class Partners:
    """Classifiers of each output by name, each trained when it is first used.

    Args:
        data: Rows of the run.
        train: Indices of training rows.
        forms: Kernels by name; missing ones are selected.
    """

    def __init__(
        self, data: Prepared, train: Int[np.ndarray, " m"], forms: Mapping[str, Form] | None = None
    ) -> None:
        self.data, self.forms = data, dict(forms or {})
        x = data.observed.x[train]
        deviation = x.std(0)
        common = np.full_like(deviation, max(float(deviation.max(initial=0.0)), 1e-9))
        self.scale = (
            common if data.image is not None else np.where(deviation > 1e-9, deviation, 1.0)
        )
        self.centre = x.mean(0)
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
        """Predict classes of rows by one classifier, numbered through all outputs."""
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
        return [partial(_predict_images, predict, image) for predict in learned]

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
        classifier = LogisticRegression(max_iter=LINEAR_STEPS).fit(
            self._views(d)[0], self._labels(d)
        )

        def predict(x: Rows) -> Float[np.ndarray, "n c"]:
            p = np.zeros((len(x), int(self.data.sizes[d])))
            p[:, classifier.classes_] = classifier.predict_proba(self._seen(x))
            return p

        return predict

    def _shares(self, d: int) -> Classifier:
        size = int(self.data.sizes[d])  # each class counts one row more
        share = (np.bincount(self._labels(d), minlength=size) + 1) / (len(self.parts[d]) + size)
        return lambda x: np.tile(share, (len(x), 1))

    def _labels(self, d: int) -> Int[np.ndarray, " k"]:
        return np.asarray(self.data.observed.label[self.parts[d]])

    def _views(self, d: int) -> list[Rows]:
        return [self._seen(self.data.observed.x[self.parts[d]])]

    def _seen(self, x: Rows) -> Rows:
        """Standardize features."""
        return np.asarray((x - self.centre) / self.scale)

    @cached_property
    def _most(self) -> list[int]:
        """Outputs with the most rows, which select the kernel."""
        order = sorted(range(len(self.parts)), key=lambda d: -len(self.parts[d]))
        return order[: strokes.SEARCHED]


@dataclass(frozen=True)
class Average:
    """Weights of the model and of other classifiers, which learn from all training rows."""

    ensemble: Ensemble[CategoricalPredictive]
    partners: Partners

    @classmethod
    def fit(
        cls,
        data: Prepared,
        order: Int[np.ndarray, " m"],
        first: int,
        prediction: CategoricalPredictive,
        deadline: Deadline = NEVER,
    ) -> Average:
        """Fit weights by left-out rows.

        Args:
            data: Rows of the run.
            order: Its training rows, left-out ones last.
            first: Number of rows that are not left out.
            prediction: Predictions of the left-out rows by a model without them.
            deadline: Deadline of classifiers of strokes.
        """
        classifiers, left_out_rows = Partners(data, order[:first]), order[first:]
        observed = data.observed
        x, output = observed.x[left_out_rows], observed.output[left_out_rows]
        left_out = {MODEL: prediction, **_predictions(classifiers, PLAIN[1:], x, output)}
        of_strokes = deadline.units(classifiers.drawn, "classifiers of strokes")
        left_out |= _predictions(classifiers, of_strokes, x, output)
        ensemble = Ensemble.fit(left_out, observed.number[left_out_rows], Sharpened)
        refitted = Partners(data, data.train, classifiers.forms)
        return cls(ensemble.reindex((MODEL, *classifiers.names)), refitted)

    def of(self, data: Prepared) -> Average:
        """Same weights and kernels, with classifiers that learn from other rows."""
        return Average(self.ensemble, Partners(data, data.train, self.partners.forms))

    def combine(
        self, prediction: CategoricalPredictive, x: Rows, output: Int[np.ndarray, " n"]
    ) -> CategoricalPredictive:
        """Average the model's prediction with the others."""
        used = [name for name in self.ensemble.used if name != MODEL]
        return self.ensemble.combine(
            {MODEL: prediction, **_predictions(self.partners, used, x, output)}
        )

    def meta(self) -> dict[str, Any]:
        """JSON-ready arguments of `from_meta`."""
        forms = {name: list(form) for name, form in self.partners.forms.items()}
        return {**self.ensemble.meta(), "forms": forms}

    @classmethod
    def from_meta(cls, data: Prepared, meta: Mapping[str, Any] | None) -> Average | None:
        """The inverse of `meta`; None for a run without an average."""
        if not meta:
            return None
        forms = dict(meta.get("forms", {}))
        if "form" in meta:  # of runs before 0.3
            forms[EXACT] = meta["form"]
        classifiers = Partners(
            data, data.train, {name: Form(*form) for name, form in forms.items()}
        )
        names = (MODEL, *classifiers.names)
        return cls(Ensemble.from_meta(meta, names, Sharpened), classifiers)


def _predict_images(
    predict: Callable[[strokes.Images], Float[np.ndarray, "n c"]], image: tuple[int, int], x: Rows
) -> Float[np.ndarray, "n c"]:
    return predict(strokes.small(x, image))


def _predictions(
    classifiers: Partners, names: Iterable[str], x: Rows, output: Int[np.ndarray, " n"]
) -> dict[str, CategoricalPredictive]:
    return {name: classifiers.ask(name, x, output) for name in names}

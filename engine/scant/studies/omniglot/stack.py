"""An average of the model's probabilities with those of other classifiers of each output.

One model shares what many outputs have in common, through inducing points and a bound. Of a single
output with rows enough, an exact GP on the indicators of the classes, or a linear classifier (the
mode of a GP with a linear kernel), may know more; where inputs tell little, the shares of the
classes do. Of images there are classifiers that know how drawings vary, and what a network sees in
them (`strokes`). Rows that none of them was shown choose the weights (`scant.inference.stacking`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import entr
from sklearn.linear_model import LogisticRegression

from scant.deadline import NEVER, Deadline
from scant.inference import stacking
from scant.likelihoods.softmax_average import MOGPARPrediction
from scant.models.left_out import Form, Indicators, select_kernel
from scant.studies.omniglot import strokes
from scant.studies.omniglot.capacity import MOST_ROWS
from scant.studies.omniglot.prepared import Prepared

MOST_NUMBERS = 5e7  # rows x features x classes, up to which straight lines take part
SEARCHED = 3  # outputs, of the most rows, that choose the kernel
PLAIN = ("model", "exact GP", "linear classifier", "shares of the classes")
NAMES = (*PLAIN, strokes.BENDING, *strokes.VIEWS)  # the last ones as far as `features` goes

Chances = Float[np.ndarray, "n most"]


class Members:
    """An exact GP and a linear classifier of each output, and what sees strokes.

    Args:
        data: The run's rows.
        train: Of them, those to learn from.
        form: The kernel; None: it is chosen.
        forms: Likewise of the classifiers of strokes, by their names.
    """

    def __init__(
        self,
        data: Prepared,
        train: Int[np.ndarray, " m"],
        form: Form | None,
        forms: Mapping[str, Form] | None = None,
    ) -> None:
        observed, own = data.observed, data.observed.x[train]
        self.sizes = data.sizes
        spread = own.std(0)
        common = np.full_like(spread, max(float(spread.max(initial=0.0)), 1e-9))
        self.scale = common if data.image is not None else np.where(spread > 1e-9, spread, 1.0)
        self.centre = own.mean(0)
        rng = np.random.default_rng([data.settings.seed, 13])
        parts = [train[observed.output[train] == d] for d in range(len(self.sizes))]
        parts = [np.sort(rng.permutation(rows)[:MOST_ROWS]) for rows in parts]
        views = [[self.seen(observed.x[rows])] for rows in parts]
        labels = [observed.label[rows] for rows in parts]
        most = sorted(range(len(parts)), key=lambda d: -len(parts[d]))[:SEARCHED]
        self.form = form or select_kernel(
            [(views[d], np.eye(self.sizes[d])[labels[d]]) for d in most]
        )
        self.exact = [
            Indicators.from_labels(self.form, *each)
            for each in zip(views, labels, self.sizes.tolist())
        ]
        cost = sum(len(rows) * own.shape[1] * size for rows, size in zip(parts, self.sizes))
        self.shares = [  # as if every class had been seen once more
            (np.bincount(label, minlength=size) + 1) / (len(label) + size)
            for label, size in zip(labels, self.sizes)
        ]
        self.lines = [
            LogisticRegression(max_iter=200).fit(view[0], label)
            for view, label in zip(views, labels)
            if cost <= MOST_NUMBERS
        ]
        self.image = data.image
        self.strokes: strokes.Classifiers | None = None
        if data.drawings is not None:
            rows = [np.searchsorted(data.train, part) for part in parts]
            self.strokes = strokes.Classifiers(data.drawings, rows, forms or {})

    def seen(self, x: Float[np.ndarray, "n v"]) -> Float[np.ndarray, "n v"]:
        """Features on one scale."""
        return np.asarray((x - self.centre) / self.scale)

    @property
    def drawn(self) -> tuple[str, ...]:
        """Names of the classifiers of strokes."""
        return () if self.strokes is None else self.strokes.names

    def learn(self, name: str) -> bool:
        """Learn a classifier of strokes, which is else done when it is first asked."""
        return self.strokes is not None and self.strokes[name] is not None

    def ask(
        self,
        x: Float[np.ndarray, "n v"],
        output: Int[np.ndarray, " n"],
        wanted: Collection[str] = NAMES,
    ) -> Float[np.ndarray, "k n most"]:
        """Probabilities by each member; straight lines that take no part know the shares alone.

        Args:
            x: Rows.
            output: Of each.
            wanted: Classifiers of strokes that are asked; those of others are zero.
        """
        result = np.zeros((len(PLAIN) - 1 + len(self.drawn), len(x), int(self.sizes.max())))
        for d in np.unique(output):
            at, size = np.flatnonzero(output == d), self.sizes[d]
            own = self.seen(x[at])
            result[0, at, :size] = self.exact[d].predict([own])
            result[1:3, at, :size] = self.shares[d]
            if self.lines:
                result[1, at] = 0.0
                result[1][np.ix_(at, self.lines[d].classes_)] = self.lines[d].predict_proba(own)
            for k, name in enumerate(self.drawn, len(PLAIN) - 1):
                if name in wanted:
                    result[k, at, :size] = self.of_strokes(name, x[at], int(d))
        return result

    def of_strokes(
        self, name: str, x: Float[np.ndarray, "n v"], output: int
    ) -> Float[np.ndarray, "n c"]:
        """Probabilities by a classifier of strokes, of rows of an output."""
        assert self.strokes is not None
        assert self.image is not None
        return self.strokes[name].ask(strokes.small(x, self.image), output)


@dataclass(frozen=True)
class Stack(stacking.Average):
    """Weights of the model and of the members beside it.

    Attributes:
        data: The run's rows.
        form: Of the exact GP.
        power: To which averaged probabilities are raised.
        forms: Of classifiers of strokes, by their names.
    """

    names = NAMES

    data: Prepared
    form: Form
    power: float
    forms: Mapping[str, Form] = field(default_factory=dict)

    @cached_property
    def members(self) -> Members:
        """Learned from all training rows, when they are first asked."""
        return Members(self.data, self.data.train, self.form, self.forms)

    @classmethod
    def weighed(
        cls,
        data: Prepared,
        order: Int[np.ndarray, " m"],
        first: int,
        chances: Chances,
        deadline: Deadline = NEVER,
    ) -> Stack:
        """By rows that were left out.

        Args:
            data: The run's rows.
            order: Its training rows, those left out last.
            first: How many are not left out.
            chances: The left-out rows' probabilities by a model that was not shown them.
            deadline: Of classifiers of strokes.
        """
        members = Members(data, order[:first], None)
        late = order[first:]
        observed = data.observed
        drawn = deadline.units(members.drawn, "classifiers of strokes")
        learned = {name for name in drawn if members.learn(name)}
        asked = members.ask(observed.x[late], observed.output[late], learned)
        every = np.stack([chances, *asked])
        label = observed.label[late]
        own = every[:, np.arange(len(late)), label]
        used = [name in PLAIN or name in learned for name in (*PLAIN, *members.drawn)]
        weights = np.zeros(len(own))
        weights[used] = stacking.weights(np.log(np.maximum(own[used], 1e-300)).T)
        power = stacking.sharpness(np.tensordot(weights, every, 1), label)
        forms = {} if members.strokes is None else members.strokes.forms
        return cls(tuple(weights.tolist()), data, members.form, power, forms)

    def mixed(
        self, told: MOGPARPrediction, x: torch.Tensor, output: torch.Tensor
    ) -> MOGPARPrediction:
        """The average, where the model tells so much."""
        if not len(x):
            return told
        own, *others = self.weights
        used = [name for name, weight in zip(NAMES, self.weights) if weight]
        asked = self.members.ask(x.cpu().numpy(), output.cpu().numpy(), used)
        plain = own * told.probability.cpu().numpy() + np.tensordot(others, asked, 1)
        p = torch.as_tensor(stacking.sharpened(plain, self.power)).to(told.probability)
        entropy = torch.special.entr(p).sum(1)
        # Between class on the one hand, member and the model's functions on the other.
        alone = torch.as_tensor(np.tensordot(others, entr(asked).sum(2), 1)).to(p)
        known = own * (told.entropy - told.information) + alone
        return MOGPARPrediction(p, own * told.error, entropy, (entropy - known).clamp(min=0))

    def meta(self) -> dict[str, Any]:
        """What `read` needs, ready for JSON."""
        forms = {name: list(form) for name, form in self.forms.items()}
        own = {"weights": list(self.weights), "form": list(self.form), "power": self.power}
        return own | ({"forms": forms} if forms else {})

    @classmethod
    def read(cls, data: Prepared, meta: Mapping[str, Any] | None) -> Stack | None:
        """The inverse of `meta`; None of a run without an average."""
        if not meta:
            return None
        forms = {name: Form(*form) for name, form in meta.get("forms", {}).items()}
        own = Form(*meta["form"]), float(meta["power"]), forms
        return cls(tuple(meta["weights"]), data, *own)

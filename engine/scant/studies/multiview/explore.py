"""Queries of a fitted multiview study, and its predictions of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtr

from scant import metrics
from scant.errors import BadInput
from scant.predictive import CategoricalPredictive, MixturePredictive
from scant.studies.multiview import splits as rows
from scant.studies.multiview import survival
from scant.studies.multiview.fitted import FittedMultiview
from scant.studies.multiview.learners import predicted
from scant.studies.multiview.prepared import Prepared
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.report import main
from scant.studies.multiview.scarcity import curve
from scant.studies.multiview.table import of
from scant.studies.predicted_table import (
    checked,
    interval_columns,
    parts,
    with_classes,
    with_columns,
    words,
)
from scant.studies.query import names_in
from scant.tables.column_matching import listed

VIEW_STEPS = 60  # of a model that is trained anew on some of the views
VIEW_ROWS = 600  # that it learns from at most


def answer(fitted: FittedMultiview, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, a view, row or patient that it has not.
    """
    data = fitted.data
    if question == "views":
        return views(data, query)
    if question == "row":
        return row(fitted, query)
    if question == "patient":
        return patient(fitted, query)
    if question == "scarcity":
        return curve(data, query)
    raise BadInput(
        f"There is no question {question!r}; there are 'views', 'row', 'patient' and 'scarcity'."
    )


def views(data: Prepared, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """The run's model trained anew on some of the table's views, beside their averaged kernels.

    Both learn from the run's rows (at most `VIEW_ROWS`), and are asked of the same held-out ones.
    """
    names = data.observed.only(names_in(query.get("names", query.get("views", "")))).names
    train = data.train
    if len(train) > VIEW_ROWS:
        rng = np.random.default_rng([data.settings.seed, 53])
        train = np.sort(rng.permutation(train)[:VIEW_ROWS])
    transforms = ViewTransforms.at(data.observed, names, train, data.settings.n_components)
    generator = torch.Generator().manual_seed(data.settings.seed)
    steps = min(data.settings.max_steps, VIEW_STEPS)
    learner = data.learner_of(data.settings.model, train, transforms, generator, steps)
    learner.train(steps)
    test = data.test
    own = data.ask(learner, transforms, data.observed.x[test])
    other = predicted(data, rows.AVERAGED[data.observed.task], train, test, transforms)
    on = np.array([name in names for name in data.observed.names])
    return {
        "on": on.astype(np.int64),
        "score": np.array([main(data, test, own)]),
        "averaged": np.array([main(data, test, other)]),
        "influence": _by_view(data, names, learner.influence().cpu().numpy()),
    }


def _by_view(data: Prepared, names: list[str], influence: np.ndarray) -> np.ndarray:
    """The neurons' influence gathered by view, of all the table's views."""
    result = np.zeros(len(data.observed.names))
    for i, share in enumerate(influence):
        result[data.observed.names.index(names[i % len(names)])] += share
    return result


def row(fitted: FittedMultiview, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """What the model says of one row of the table, and what its neurons see there."""
    data = fitted.data
    word = query.get("index", query.get("row", 0))
    try:
        place = np.flatnonzero(data.places == int(word))
    except (TypeError, ValueError):
        place = np.empty(0, dtype=np.int64)
    if not len(place):
        raise BadInput(
            f"index: got {str(word)[:40]!r}; send the number of a row of known target, from "
            f"{data.places.min()} to {data.places.max()}."
        )
    x = data.observed.x[place]
    hidden, hidden_std = fitted.hidden(x)
    predicted, std, low, high = fitted.in_table_units(x)
    return {
        "index": data.places[place],
        "predicted": predicted,
        "predicted_std": std,
        "predicted_low": low,
        "predicted_high": high,
        "truth": data.observed.target[place],
        "hidden": hidden[0],
        "hidden_std": hidden_std[0],
    }


def patient(fitted: FittedMultiview, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """One patient's predicted time, what each of his rows says, and his survival function."""
    data = fitted.data
    if data.observed.task != "survival":
        raise BadInput("This model was not trained on survival times, so there are no patients.")
    name = str(query.get("name", query.get("patient", "")))
    if name not in data.observed.patients:
        raise BadInput(f"There is no patient {name!r}; there is {listed(data.observed.patients)}.")
    own = np.flatnonzero(data.observed.patient == data.observed.patients.index(name))
    if not len(own):
        raise BadInput(f"Patient {name!r} has no row of known time.")
    mean, variance = fitted.ask(data.observed.x[own])
    result = survival.patients(data.observed, own, mean, variance)
    last = float(np.exp(result.mean[0] + metrics.Z_95 * result.std[0]))
    grid = np.linspace(0, 1.2 * max(last, float(result.time[0])), survival.TIMES)
    z = (np.log(np.maximum(grid, 1e-12)) - result.mean[0]) / result.std[0]
    arrays = result.arrays()
    return {
        "time": arrays["patient_time"],
        "event": arrays["patient_event"],
        "predicted": arrays["patient_pred"],
        "low": arrays["patient_low"],
        "high": arrays["patient_high"],
        "rows": np.exp(mean),
        "curve_time": grid,
        "curve": ndtr(-z),
    }


def predictions(fitted: FittedMultiview, table: pd.DataFrame) -> pd.DataFrame:
    """The table, rows and order kept, with predictions.

    Classes: `label` (or `predicted`, where the table has labels), its `probability`, a column a
    class, and what the model doubts, where it tells. Values: `mean`, `std`, `low`, `high`. Times:
    `mean` (of a patient's predicted times, the same in all his rows), `std`, `median`, and the 95%
    interval `low`, `high`. Behind them those of all studies (`predicted_columns`).
    """
    observed = fitted.data.observed
    query = of(
        checked(table, observed.features),
        observed.task,
        features=observed.features,
        classes=observed.classes,
        **words(table),
    )
    x = query.x[:, [query.features.index(name) for name in observed.features]]
    told, outside = fitted.told(x, sources=True), fitted.outside(x)
    if isinstance(told, CategoricalPredictive):
        p = told.probabilities
        best = (p[:, 1] >= fitted.threshold).astype(int)
        each = dict(zip(observed.classes, p.T))
        names = [observed.classes[c] for c in best]
        doubt = {}
        if told.information is not None:
            doubt = {"entropy": told.entropy, "information": told.information}
        sure = p[np.arange(len(p)), best]
        return with_classes(table, names, sure, each, **doubt, outside=outside)
    if observed.task == "regression":
        added = dict(zip(("mean", "std", "low", "high"), fitted.data.in_table_units(told)))
        logs = rows.logs(fitted.data.settings, observed.task)
        back: Callable[..., Any] = np.expm1 if logs else np.asarray
    else:
        count = np.bincount(query.patient)
        mean, model, noise = (
            (np.bincount(query.patient, values) / count)[query.patient]
            for values in (told.mean, told.model_variance, told.noise_variance)
        )
        told = MixturePredictive.gaussian(mean, model + noise, noise)
        added = _lives(mean, told.variance)
        back = np.exp
    quantile = fitted.quantiles(x, told)
    ends = interval_columns(lambda p: np.asarray(back(quantile(p))))
    share = told.model_variance / told.variance
    more = {**parts(added["std"], share), **ends, "outside": outside}
    return with_columns(table, {**added, **more})


def _lives(m: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
    """Times by the mean and variance of their logarithms; moments are log-normal."""
    expected = np.exp(m + v / 2)
    wide = metrics.Z_95 * np.sqrt(v)
    return {
        "mean": expected,
        "std": expected * np.sqrt(np.expm1(v)),
        "median": np.exp(m),
        "low": np.exp(m - wide),
        "high": np.exp(m + wide),
    }

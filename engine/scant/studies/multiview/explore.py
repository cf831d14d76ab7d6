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

VIEW_STEPS = 60  # maximum steps of a model that is retrained on some of the views
VIEW_ROWS = 600  # maximum number of its training rows


def answer(fitted: FittedMultiview, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of the catalog for `question`.

    Raises:
        BadInput: The question, view, row or patient does not exist.
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
    """Retrain the run's model on some of the views, and compare it with their averaged kernels.

    Both learn from the run's rows (at most `VIEW_ROWS`) and predict the same held-out rows.
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
    prediction = data.ask(learner, transforms, data.observed.x[test])
    averaged = predicted(data, rows.AVERAGED[data.observed.task], train, test, transforms)
    selected = np.array([name in names for name in data.observed.names])
    return {
        "on": selected.astype(np.int64),
        "score": np.array([main(data, test, prediction)]),
        "averaged": np.array([main(data, test, averaged)]),
        "influence": _by_view(data, names, learner.influence().cpu().numpy()),
    }


def _by_view(data: Prepared, names: list[str], influence: np.ndarray) -> np.ndarray:
    """Sum the neurons' influence by view, for all views of the table."""
    result = np.zeros(len(data.observed.names))
    for i, share in enumerate(influence):
        result[data.observed.names.index(names[i % len(names)])] += share
    return result


def row(fitted: FittedMultiview, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Prediction of one row of the table, and its hidden neurons."""
    data = fitted.data
    index = query.get("index", query.get("row", 0))
    try:
        position = np.flatnonzero(data.places == int(index))
    except (TypeError, ValueError):
        position = np.empty(0, dtype=np.int64)
    if not len(position):
        raise BadInput(
            f"index: got {str(index)[:40]!r}; send the number of a row of known target, from "
            f"{data.places.min()} to {data.places.max()}."
        )
    x = data.observed.x[position]
    hidden, hidden_std = fitted.hidden(x)
    predicted, std, low, high = fitted.in_table_units(x)
    return {
        "index": data.places[position],
        "predicted": predicted,
        "predicted_std": std,
        "predicted_low": low,
        "predicted_high": high,
        "truth": data.observed.target[position],
        "hidden": hidden[0],
        "hidden_std": hidden_std[0],
    }


def patient(fitted: FittedMultiview, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """One patient's predicted time, the prediction of each row, and the survival function."""
    data = fitted.data
    if data.observed.task != "survival":
        raise BadInput("This model was not trained on survival times, so there are no patients.")
    name = str(query.get("name", query.get("patient", "")))
    if name not in data.observed.patients:
        raise BadInput(f"There is no patient {name!r}; there is {listed(data.observed.patients)}.")
    patient_rows = np.flatnonzero(data.observed.patient == data.observed.patients.index(name))
    if not len(patient_rows):
        raise BadInput(f"Patient {name!r} has no row of known time.")
    mean, variance = fitted.ask(data.observed.x[patient_rows])
    result = survival.patients(data.observed, patient_rows, mean, variance)
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
    """Return the table with predictions, in the same order of rows.

    Classes: `label` (or `predicted` if the table has labels), its `probability`, a column per
    class, and the uncertainty by source if known. Values: `mean`, `std`, `low`, `high`. Times:
    `mean` (of a patient's predicted times, the same in all rows of the patient), `std`, `median`,
    and the 95% interval `low`, `high`. Columns of all studies follow (`predicted_columns`).
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
    prediction, outside = fitted.told(x, sources=True), fitted.outside(x)
    if isinstance(prediction, CategoricalPredictive):
        p = prediction.probabilities
        predicted_class = (p[:, 1] >= fitted.threshold).astype(int)
        by_class = dict(zip(observed.classes, p.T))
        names = [observed.classes[c] for c in predicted_class]
        uncertainty = {}
        if prediction.information is not None:
            uncertainty = {"entropy": prediction.entropy, "information": prediction.information}
        confidence = p[np.arange(len(p)), predicted_class]
        return with_classes(table, names, confidence, by_class, **uncertainty, outside=outside)
    if observed.task == "regression":
        added = dict(zip(("mean", "std", "low", "high"), fitted.data.in_table_units(prediction)))
        log_target = rows.logs(fitted.data.settings, observed.task)
        inverse: Callable[..., Any] = np.expm1 if log_target else np.asarray
    else:
        count = np.bincount(query.patient)
        mean, model, noise = (
            (np.bincount(query.patient, values) / count)[query.patient]
            for values in (prediction.mean, prediction.model_variance, prediction.noise_variance)
        )
        prediction = MixturePredictive.gaussian(mean, model + noise, noise)
        added = _lives(mean, prediction.variance)
        inverse = np.exp
    quantile = fitted.quantiles(x, prediction)
    intervals = interval_columns(lambda p: np.asarray(inverse(quantile(p))))
    share = prediction.model_variance / prediction.variance
    extra = {**parts(added["std"], share), **intervals, "outside": outside}
    return with_columns(table, {**added, **extra})


def _lives(m: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
    """Moments and intervals of log-normal times, given mean and variance of their logarithm."""
    expected = np.exp(m + v / 2)
    half_width = metrics.Z_95 * np.sqrt(v)
    return {
        "mean": expected,
        "std": expected * np.sqrt(np.expm1(v)),
        "median": np.exp(m),
        "low": np.exp(m - half_width),
        "high": np.exp(m + half_width),
    }

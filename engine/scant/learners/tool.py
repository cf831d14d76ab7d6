"""General tools as learners: functions of one matrix, applied to each part of a problem."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from scant.deadline import NEVER, Deadline
from scant.inference.censored import uncensored
from scant.learners.cost import MOST_ROWS
from scant.learners.knocked_out import Blocks, knocked, with_contrasts
from scant.learners.learner import Capabilities, Learner, OutOfTime, X
from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive
from scant.problem import Problem

BOOSTING_COST = 3e7  # maximum of rows times columns times classes
PROBABLE = "predict_proba"

MeanVariance = tuple[Float[ndarray, " t"], Float[ndarray, " t"] | None]
Small = Callable[[int, int, int], bool]


def tool(
    name: str,
    ask: Callable[..., Any],
    code: str,
    small: Small = lambda rows, columns, classes: True,
    *,
    classes: bool = False,
    images: bool = False,
    density: bool = True,
    trees: bool = False,
) -> Learner:
    """Return a function of one matrix as a learner.

    Missing values are left to the function. Censored values are replaced by their expectations, and
    classes that compete in parts are learned part by part.

    Args:
        name: Name in the report.
        ask: Function `(x, y, x_test)` that returns mean and variance (None without a density);
            for classes `(x, y, x_test, classes)` that returns probabilities.
        code: See `Learner`.
        small: Function of the numbers of rows, columns and classes that returns True if a fit takes
            seconds and not minutes.
        classes: True if it predicts classes.
        images: True if it is only for images.
        density: True if it predicts densities or probabilities.
        trees: True if it splits along single columns, and gains from `Problem.contrasts`.
    """
    kind = Capabilities(
        values=not classes, classes=classes, missing=True, censored=not classes, parts=True,
        images=images, density=density, trees=trees,
    )  # fmt: skip
    answer = partial(_classes, ask, density) if classes else partial(_values, ask, trees)
    return Learner(name, answer, kind, partial(_too_large, small), code)


def _too_large(small: Small, problem: Problem) -> str:
    columns = problem.x.shape[1]
    for rows, _ in _parts(problem):
        classes = len(np.unique(problem.y[rows])) if problem.classes else 0
        if not small(len(rows), columns, classes):
            return "there are too many rows, columns or classes for it."
    return ""


def _parts(
    problem: Problem, deadline: Deadline = NEVER
) -> Iterator[tuple[Int[ndarray, " m"], Int[ndarray, " q"]]]:
    """Iterate over training and held-out rows of the parts, with at most `MOST_ROWS` to learn from.

    Raises:
        OutOfTime: After the first part, if the others would not end in time.
    """
    parts, begun = problem.parts(), deadline.used
    for k, (_, rows, query) in enumerate(parts):
        if k == 1 and (len(parts) - 1) * (deadline.used - begun) > deadline.left:
            raise OutOfTime
        if len(rows) > MOST_ROWS:
            rows = np.sort(np.random.default_rng(0).permutation(rows)[:MOST_ROWS])
        yield rows, query


def _classes(
    ask: Callable[..., Any], density: bool, problem: Problem, deadline: Deadline
) -> Predictive:
    p = np.zeros((len(problem.y_test), problem.classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence and of constant columns, one a fit
        for rows, query in _parts(problem, deadline):
            y = problem.y[rows].astype(int)
            if len(np.unique(y)) < 2:
                p[query, y[0] if len(y) else 0] = 1.0
            else:
                p[query] = ask(problem.x[rows], y, problem.x_test[query], problem.classes)
    if density:
        return CategoricalPredictive(p)
    return CategoricalPredictive.named(p.argmax(1), problem.classes)


def _values(
    ask: Callable[..., Any], trees: bool, problem: Problem, deadline: Deadline
) -> Predictive:
    contrasts = problem.contrasts if trees else None
    mean, variance = np.zeros((2, len(problem.y_test)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows, query in _parts(problem, deadline):
            y, unseen = problem.y[rows], 0.0
            if problem.late is not None:
                *_, y, rest = uncensored(y, problem.late[rows])
                unseen = float(rest.mean())
            x, x_test = problem.x[rows], problem.x_test[query]
            mean[query], spread = _with_gaps(ask, problem.blocks, contrasts, x, y, x_test)
            variance[query] = np.nan if spread is None else spread + unseen
    return MixturePredictive.gaussian(mean, None if np.isnan(variance).any() else variance)


def _with_gaps(
    ask: Callable[..., Any],
    blocks: Blocks | None,
    contrasts: Float[ndarray, "k d"] | None,
    x: X,
    y: Float[ndarray, " m"],
    query: X,
) -> MeanVariance:
    """Return mean and variance; rows with gaps are predicted by a fit to rows with gaps."""
    gaps = np.isnan(query).any(1)
    if blocks is None or not gaps.any():
        x, query = with_contrasts(x, query, contrasts)
        answer: MeanVariance = ask(x, y, query)
        return answer
    lacking = knocked(np.random.default_rng(0), x, blocks)
    mean, variance = np.zeros((2, len(query)))
    for rows, learned in ((~gaps, x), (gaps, lacking)):
        if rows.any():
            learned, unseen = with_contrasts(learned, query[rows], contrasts)
            mean[rows], spread = ask(learned, y, unseen)
            variance[rows] = np.nan if spread is None else spread
    return mean, None if np.isnan(variance).any() else variance


def filled(*steps: Any) -> Pipeline:
    """Return a pipeline with median imputation and missing-value indicators."""
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(imputer, *steps)


def probabilities(model: Any, x: X, y: Int[ndarray, " n"], query: X, classes: int) -> ndarray:
    """Fit a scikit-learn classifier and predict probabilities of all classes."""
    p = np.zeros((len(query), classes))
    model.fit(x, y)
    p[:, model.classes_.astype(int)] = model.predict_proba(query)
    return p


def code(
    module: str, model: str, call: str = "predict", filled: bool = True, also: str = ""
) -> str:
    """Return code in two lines, with imputation if `filled` and further imports `also`."""
    name = model.partition("(")[0]
    imports, pipeline = f"from {module} import {name}{also}", model
    if filled:
        imports += (
            "; from sklearn.impute import SimpleImputer; from sklearn.pipeline import "
            "make_pipeline; from sklearn.preprocessing import StandardScaler"
        )
        pipeline = f'make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), {model})'
    return f"{imports}\n{pipeline}.fit(X, y).{call}(X_new)"

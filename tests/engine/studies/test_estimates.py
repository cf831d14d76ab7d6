"""What a fit is said to take grows with what costs, and counts what the study does.

How near it comes is measured, and stands in the docstrings; nothing here looks at a clock.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from scant.runs.limits import HOURS, Size, check_cost, cost_of
from scant.studies import STUDIES, entry
from scant.studies.auto import AUTO
from scant.studies.base import Counts
from scant.tables.read import inspect_table
from scant.tables.schema import counts

SIZE = (600, 12)
LABELS: dict[str, Counts] = {
    "aggregation": {"task": {"a": 300, "b": 300}},
    "redshift": {},
    "genes": {"output": {"a": 300, "b": 300}, "replica": {"1": 300, "2": 300}},
    "omniglot": {"output": {"a": 300, "b": 300}, "label": {str(c): 20 for c in range(30)}},
    "mitosis": {"label": {"rare": 60, "other": 540}},
    "multiview": {"label": {"event": 100, "other": 500}, "a.1": {}, "b.1": {}},
    "clamp": {"label": {"clamp": 150, "no clamp": 450}},
}


AT_SCALE = {"redshift": {"training_size": 30_000}}  # rows beyond which no more are learned from


def estimate(
    study: str,
    rows: int = SIZE[0],
    columns: int = SIZE[1],
    labels: Counts | None = None,
    **values: Any,
) -> tuple[float, float]:
    """Seconds and bytes; what is `auto` is as in the demonstration."""
    result = entry(study)
    usual = {
        n: v
        for n, v in result.presets["demo"].items()
        if result.settings.param[n].default == AUTO and not n.endswith("_size")  # of its own table
    }
    given = {name: str(value) for name, value in values.items()}
    settings = result.settings.parse({**usual, **given})
    counts = LABELS[study] if labels is None else labels
    settled, _ = result.settled(settings, rows, columns, counts)
    return result.estimate(settled, rows, columns, counts)


@pytest.mark.parametrize("study", STUDIES)
def test_a_table_that_was_not_read_is_guessed_at(study: str) -> None:
    seconds, held = estimate(study, labels={})
    assert 1 < seconds < 600
    assert 4e8 < held < 4e9
    assert estimate(study, 60_000, labels={}, **AT_SCALE.get(study, {}))[1] > held


@pytest.mark.parametrize(
    ("study", "values"),
    [
        ("aggregation", {"max_steps": 8000}),
        ("aggregation", {"n_latent": 4}),
        ("aggregation", {"rank": 3}),
        ("aggregation", {"n_inducing": 300}),
        ("redshift", {"max_steps": 2400}),
        ("redshift", {"n_basis": 200}),
        ("redshift", {"restarts": 9}),
        ("redshift", {"errors": "as noise"}),
        ("genes", {"max_steps": 4000}),
        ("genes", {"n_inducing_inputs": 200}),
        ("genes", {"restarts": 5}),
        ("genes", {"model": "dhgp"}),
        ("omniglot", {"max_steps": 1000}),
        ("omniglot", {"n_latent": 32}),
        ("omniglot", {"n_inducing": 200}),
        ("omniglot", {"restarts": 4}),
        ("mitosis", {"max_steps": 8000}),
        ("mitosis", {"n_inducing": 90}),
        ("mitosis", {"n_private_dims": 19}),
        ("mitosis", {"restarts": 4}),
        ("multiview", {"max_steps": 1500}),
        ("multiview", {"n_inducing": 150}),
        ("multiview", {"neurons": 12}),
        ("multiview", {"repeats": 20}),
        ("multiview", {"restarts": 10}),
        ("clamp", {"budget": 330, "patience": 0}),
        ("clamp", {"repeats": 20}),
        ("clamp", {"feature_extractor": "InceptionV3"}),
        ("clamp", {"pace": 1.0}),
    ],
    ids=lambda v: v if isinstance(v, str) else next(iter(v)),
)  # fmt: skip
def test_more_work_takes_longer(study: str, values: dict[str, Any]) -> None:
    columns = 6 if "feature_extractor" in values else SIZE[1]
    usual = estimate(study, columns=columns)
    longer = estimate(study, columns=columns, **values)
    assert longer[0] > usual[0]
    assert longer[1] >= usual[1]


@pytest.mark.parametrize("study", [s for s in STUDIES if "baselines" in entry(s).settings.param])
def test_what_is_fitted_beside_the_run_is_counted(study: str) -> None:
    assert estimate(study, baselines=False)[0] < estimate(study)[0]


@pytest.mark.parametrize(
    ("study", "values"),
    [
        ("multiview", {}),
        ("omniglot", {}),
        ("redshift", {}),
    ],
)
def test_models_that_are_averaged_with_are_counted(study: str, values: dict[str, Any]) -> None:
    alone, more = (estimate(study, stack=stack, **values)[0] for stack in (False, True))
    assert alone < more


@pytest.mark.parametrize("study", [s for s in STUDIES if s != "clamp"])
def test_more_rows_take_longer(study: str) -> None:
    few = {c: {k: n // 6 for k, n in own.items()} for c, own in LABELS[study].items()}
    assert estimate(study, 100, labels=few)[0] < estimate(study)[0]


def test_two_tasks_share_a_function_and_four_have_two() -> None:
    def cost(count: int, **values: object) -> tuple[float, float]:
        tasks = {f"task {i}": 600 // count for i in range(count)}
        return estimate("aggregation", labels={"task": tasks}, test_share=0, **values)

    two, four, many = (cost(n) for n in (2, 4, 30))
    assert two[0] < four[0] < many[0]
    assert estimate("aggregation", labels={}, test_share=0) == two  # as it is guessed
    assert cost(2, n_latent=2) == four
    assert cost(30, n_latent=8) == many
    assert cost(4, leave_out="task 0, task 1")[0] < two[0]


def test_exact_inference_takes_little_for_few_rows_and_much_for_many() -> None:
    def of(rows: int, **values: Any) -> tuple[float, float]:
        labels: Counts = {"task": {"a": rows // 2, "b": rows // 2}}
        return estimate("aggregation", labels=labels, **{"inference": "auto", **values})

    sparse = {"inference": "variational"}
    assert of(200, likelihood="gaussian")[0] < of(200, **sparse)[0]
    assert of(200) == of(200, **sparse)  # the values may be counts
    assert of(6000, inference="exact")[0] > 10 * of(6000)[0]
    assert of(6000) == of(6000, **sparse)
    assert of(6000, inference="exact")[1] > 3e9


def test_rows_that_are_held_out_are_not_learnt_from() -> None:
    task = LABELS["aggregation"]["task"]
    for split in ({"test": 200, "train": 400}, {"train": 600}):
        labels = {"task": task, "split": split}
        result = estimate("aggregation", labels=labels)[0]
        assert (result < estimate("aggregation")[0]) == ("test" in split)
    marked: Counts = {"test": {"1": 300, "0": 300}}
    assert estimate("genes", labels=marked)[0] < estimate("genes")[0]


def test_an_expert_gives_no_more_labels_than_there_are() -> None:
    def few(n: int) -> Counts:
        return {"label": {"clamp": n // 4, "no clamp": n - n // 4}}

    seconds = [estimate("clamp", labels=few(n))[0] for n in (60, 120, 240, 600)]
    assert seconds == sorted(seconds)
    assert seconds[0] < seconds[-1]
    assert estimate("clamp", labels=few(60), budget=500) == estimate("clamp", labels=few(60))
    every = {"budget": 400, "patience": 0}
    assert estimate("clamp", imbalance=20, **every)[0] < estimate("clamp", **every)[0]
    assert estimate("clamp", labels={"f1": {}}, expert="you")[0] < seconds[-1]


def test_features_that_are_shipped_are_not_made() -> None:
    drawn = estimate("clamp", 756, 6, {})
    assert drawn < estimate("clamp", 756, 6, {}, data_seed=1)
    assert drawn < estimate("clamp", 756, 6, {"label": {"clamp": 150, "no clamp": 606}})
    assert drawn < estimate("clamp", 756, 6, {}, feature_extractor="InceptionV3")


def test_rare_rows_bring_others_and_classes_points_of_their_own() -> None:
    def label(*rows: int) -> Counts:
        return {"label": {f"class {i}": n for i, n in enumerate(rows)}}

    def cost(*rows: int, **values: int) -> float:
        return estimate("mitosis", labels=label(*rows), imbalance=10, **values)[0]

    few, more = (cost(n, 600 - n) for n in (6, 40))
    assert few < more
    assert cost(40, 560, rare_rows=6) < more
    assert cost(40, 60, 500) > more
    assert estimate("mitosis", labels=label(6, 594))[0] > few  # all rows are learned from


def test_outputs_and_views_are_counted() -> None:
    def outputs(count: int) -> Counts:
        return {"output": {str(i): 600 // count for i in range(count)}}

    few, many = (estimate("omniglot", labels=outputs(n), baselines=False)[0] for n in (2, 8))
    assert few < many
    assert estimate("omniglot", labels=outputs(8), n_outputs=2, baselines=False)[0] < many
    views = {"label": {"a": 300, "b": 300}, **{f"view {i}.{j}": {} for i in range(6) for j in "ab"}}
    assert estimate("multiview", labels=views)[0] > estimate("multiview")[0]
    assert (
        estimate("multiview", labels=views, views="view 1,view 2")[0]
        < estimate("multiview", labels=views)[0]
    )
    values = {name: {} for name in ("y", "a.1", "b.1")}
    assert estimate("multiview", labels=values)[1] < estimate("multiview")[1]  # with fewer points


def test_rows_of_each_label_are_counted() -> None:
    frame = pd.DataFrame(
        {"label": ["clamp", "", None, "no clamp", "clamp"], "f1": [1.0, 2.0, 3.0, 4.0, None]}
    )
    assert counts(frame, entry("clamp").table) == {"label": {"clamp": 2, "no clamp": 1}, "f1": {}}
    numbers = pd.DataFrame({"task": [1, 1, 2], "x": [0.0, 1.0, 2.0]})
    assert counts(numbers, entry("aggregation").table)["task"] == {"1": 2, "2": 1}
    lines = ["label,f1", *(f"{'clamp' if i % 3 else ''},{i}.5" for i in range(12))]
    preview = inspect_table("\n".join(lines).encode(), entry("clamp").table)
    assert preview.counts["label"] == {"clamp": 8}


@pytest.mark.parametrize("study", STUDIES)
def test_what_a_page_offers_by_itself_is_within_a_servers_hours(study: str) -> None:
    result = entry(study)
    for values in ({}, *result.presets.values()):
        settings = result.settings.parse(dict(values))
        for source in result.sources:
            if size := source.rows_and_columns(settings):
                cost = cost_of(result, settings, Size(*size, source.counts))
                check_cost(cost, HOURS, 8e9)

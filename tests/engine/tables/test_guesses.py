"""Of any common table the study, the target and the inputs are guessed; of most rightly."""

from __future__ import annotations

import pytest

from scant.studies import STUDIES, entry
from scant.studies.suits import suits
from scant.tables.choices import choose
from scant.tables.read import inspect_table, read_table
from tests.engine.tables.public_tables import Case, cases

CASES = {case.name: case for case in cases()}
# Tables whose form does not say what they are for: nobody could guess without reading about them.
WRONG = {
    "statsmodels ccard": "study: mitosis",  # a binary column is the last
    "statsmodels cpunish": "target: 'DEGREE'",  # of six numbers the second is learned
    "statsmodels grunfeld": "study: aggregation",  # a panel looks like series over years
    "statsmodels statecrime": "target: 'violent'",
    "statsmodels star98": "target: 'MATHTOT'",
}


def verdict(case: Case) -> str:
    """What is wrong about the guess; "" where nothing is."""
    preview = inspect_table(case.data, entry("redshift").table, name="mine")
    found = suits(preview.columns, preview.n_rows)
    if not found or found[0].study != case.study:
        return f"study: {found[0].study if found else None}"
    own = inspect_table(case.data, entry(case.study).table, name="mine")
    targets = {*entry(case.study).table.targets, "z"}
    target = next((name for name, to in own.mapping.items() if to in targets), "")
    if not case.target:
        return "" if set(own.names) == {"output", "replica", "x", "y"} else "not turned long"
    if target != case.target:
        return f"target: {target!r}"
    used = {name for name, to in own.mapping.items() if to in own.features}
    if used & set(case.left_out):
        return f"inputs: {sorted(used)}"
    return "" if used or case.study == "genes" else f"no inputs: {own.problems}"


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_understood(name: str) -> None:
    assert verdict(CASES[name]) == WRONG.get(name, "")


def test_nine_of_ten_tables_are_understood() -> None:
    assert len(CASES) >= 50
    assert len(WRONG) <= 0.1 * len(CASES)
    assert set(WRONG) <= set(CASES)
    assert {case.study for case in CASES.values()} == set(STUDIES)


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ("wins,age,income,incomesq", "wins"),  # made of another
        ("bills104,staff,age,bills103", "bills104"),  # an earlier value
        ("illness,age,population", "illness"),  # a covariate
        ("doctor,plan,goodh,poorh,fairh", "doctor"),  # 0 or 1 of a factor
        ("a,b,wins", "wins"),
    ],
)
def test_a_last_column_that_is_an_input_is_no_target(header: str, target: str) -> None:
    binary = [name.endswith("h") for name in header.split(",")]
    rows = [[k * 7 % (2 if b else 11 + i) for i, b in enumerate(binary)] for k in range(60)]
    text = "\n".join([header, *(",".join(map(str, row)) for row in rows)])
    preview = inspect_table(text.encode(), entry("redshift").table)
    (question,) = preview.questions  # with the more likely column as its answer
    assert question.guess == target
    assert preview.mapping[target] == "z"


def test_numbers_with_gaps_are_counts_and_text_alone_is_learned_from() -> None:
    rows = [f"{'ab'[k % 2]},{'xyz'[k % 3]},{(0, 1, 2, 3, 7, 12)[k * 5 % 6]}" for k in range(60)]
    preview = inspect_table("\n".join(["sex,place,trips", *rows]).encode(), entry("redshift").table)
    (found, *_) = suits(preview.columns, preview.n_rows)
    assert (found.study, found.target) == ("redshift", "trips")


def test_the_only_class_may_have_the_name_of_an_optional_column() -> None:
    rows = "\n".join(f"{kind},{i}.5,{i + 2}" for i in range(20) for kind in ("old", "new"))
    schema = entry("mitosis").table
    assert inspect_table(f"group,before,after\n{rows}".encode(), schema).mapping["group"] == "label"
    labeled = "group,before,label\n" + rows.replace(".5,2", ".5,no")
    assert inspect_table(labeled.encode(), schema).mapping["group"] == "group"


@pytest.mark.parametrize(
    ("target", "study"),
    [("yes,no", "multiview"), ("low,middle,high", "mitosis"), ("1.5,2.5,4,7,9.5", "multiview")],
)
def test_a_table_of_views_goes_to_a_study_that_takes_its_classes(target: str, study: str) -> None:
    levels = target.split(",")
    rows = [f"{k % 11}.5,{k % 7}.5,{k % 5}.5,{levels[k % len(levels)]}" for k in range(60)]
    file = "\n".join(["a.u,a.v,b.u,goal", *rows]).encode()
    preview = inspect_table(file, entry("redshift").table)
    assert suits(preview.columns, preview.n_rows)[0].study == study


@pytest.mark.parametrize(
    ("header", "study"),
    [
        ("mmin,mmax,a,b,c,goal", "redshift"),
        ("mmin,mmax,goal", "aggregation"),
        ("xmin,xmax,a,b,c,goal", "aggregation"),
    ],
)
def test_ranges_beside_many_numbers_are_inputs_unless_they_are_places(
    header: str, study: str
) -> None:
    each = [[k * 7 % (11 + i) + i + 0.5 for i in range(header.count(",") + 1)] for k in range(60)]
    file = "\n".join([header, *(",".join(map(str, row)) for row in each)])
    preview = inspect_table(file.encode(), entry("redshift").table)
    assert suits(preview.columns, preview.n_rows)[0].study == study


@pytest.mark.parametrize(("last", "role"), [(1, "label"), (2, "y")])
@pytest.mark.parametrize("header", ["y", "target"])
def test_a_target_of_zeros_and_ones_is_a_class(header: str, last: int, role: str) -> None:
    rows = [f"{k % 11}.5,{k % 7}.5,{k % 5}.5,{k % (last + 1)}" for k in range(60)]
    file = "\n".join([f"a.u,a.v,b.u,{header}", *rows]).encode()
    schema = entry("multiview").table
    assert inspect_table(file, schema).mapping[header] == role
    named = read_table(file, schema, name="mine.csv", columns={"y": header})
    assert named.frame["y"].nunique() == last + 1


def test_a_page_that_is_wrong_for_a_table_names_the_right_one() -> None:
    case = CASES["breast cancer"]
    preview = inspect_table(case.data, entry("redshift").table)
    suit = suits(preview.columns, preview.n_rows)[0]
    assert suit.sentence().startswith("This table suits Mitosis because 'diagnosis' holds 2")
    assert suit.study == "mitosis"


def test_of_two_targets_the_other_one_is_no_input() -> None:
    rows = "".join(f"{k * 3 % 17},{k * 7 % 13},{k / 3},{k % 11},{k % 2}\n" for k in range(1, 60))
    for study, header, known, name, left_out in (
        ("redshift", "u,g,target1,target2,flag", "z", "target1", {"target2"}),
        ("multiview", "a,b,score,log_score,label", "y", "score", {"log_score", "label"}),
        ("multiview", "a,b,tenure,y,died", "time", "tenure", {"y"}),
    ):
        schema = entry(study).table.with_target(None)
        preview = inspect_table(f"{header}\n{rows}".encode(), schema)
        columns = {c.name: c for c in preview.columns}
        before = choose(preview.mapping, columns, schema, known, [])
        assert known not in before.values()
        mapping = choose(preview.mapping, columns, schema, known, [name])
        assert mapping[name] == known
        assert {n for n in left_out if mapping[n] == ""} == left_out
        assert mapping[header[2]] == header[2]  # the second column stays an input


def test_of_places_and_times_one_value_or_all_are_learned() -> None:
    rows = "".join(f"2020-01-{k:02d} 0{k % 9}:00,{k}.5,{k % 7}.5,{k % 2}\n" for k in range(1, 29))
    file = f"start,pm25,wind,valid\n{rows}".encode()
    schema = entry("aggregation").table
    preview = inspect_table(file, schema)
    (question,) = preview.questions
    assert question.options[-1][0] == ("pm25", "wind")
    assert [o for o, _ in question.options[:-1]] == ["wind", "pm25", "valid"]
    mapping = {**preview.mapping, "pm25": "y", "wind": "y"}
    table = read_table(file, schema, mapping=mapping)
    assert len(table.frame) == 2 * 28
    assert set(table.frame["task"]) == {"pm25", "wind"}
    assert table.rows[28] == 2
    names = "".join(
        f"{'ab'[k % 2]},{'cd'[k % 3 == 0]},2020-01-{k + 1:02d},{k}\n" for k in range(28)
    )
    asked = inspect_table(f"place,kind,start,pm25\n{names}".encode(), schema).questions
    task = next(q for q in asked if q.column == "task")
    assert [o for o, _ in task.options] == ["", "place", "kind"]
    assert task.guess == ""


def test_what_instruments_say_of_themselves_is_no_value_and_words_with_gaps_are_no_tasks() -> None:
    schema = entry("aggregation").table
    rows = "".join(
        f"2020-01-{k:02d},2020-01-{k + 1:02d},{k * 7 % 11}.5,{k % 9},{k % 4}.0,{k % 2}\n"
        for k in range(1, 25)
    )
    preview = inspect_table(f"start,end,no2_ugm3,temp_c,flow,valid\n{rows}".encode(), schema)
    assert not preview.questions
    assert {n for n, to in preview.mapping.items() if to == "y"} == {"no2_ugm3"}
    winds = "".join(f"{k},{k * 7 % 11}.5,{('N', 'E', '')[k % 3]}\n" for k in range(24))
    (question,) = inspect_table(f"hour,no2,wind\n{winds}".encode(), schema).questions
    assert (question.column, question.guess) == ("task", "")
    # Orders of birth are four tasks, of which the command line is as sure as the page.
    orders = "".join(f"{k},{k + 1},{k * 3 % 7}.5,{k * 5 % 11}.25\n" for k in range(12))
    file = f"age_min,age_max,order1,order2\n{orders}".encode()
    (question,) = inspect_table(file, schema).questions
    assert question.guess == ("order1", "order2")
    assert set(read_table(file, schema).frame["task"]) == {"order1", "order2"}


def test_bounds_have_many_names_and_dates_are_times() -> None:
    for header, names in (
        ("begin,stop,pm", {"time_lo", "time_hi", "y"}),
        ("date_from,date_until,pm", {"date_lo", "date_hi", "y"}),
        ("start,end,pm", {"time_lo", "time_hi", "y"}),
        ("lon_min,lon_max,pm", {"lon_lo", "lon_hi", "y"}),
    ):
        dated = "" if "lon" in header else "2020-01-0"
        rows = "".join(f"{dated}{k},{dated}{k + 1},{k / 3}\n" for k in range(1, 9))
        preview = inspect_table(f"{header}\n{rows}".encode(), entry("aggregation").table)
        assert set(preview.mapping.values()) == names
        assert not preview.problems
        assert not preview.questions


@pytest.mark.parametrize(
    ("header", "cells", "wanted"),
    [
        ("time,a,b,y", "2020-01-{d:02d},{f},{g},{v}", {"time": "", "y": "y"}),
        ("months,a,b,kind", "{d},{f},{g},{c}", {"months": "months", "kind": "label"}),
        ("months,status,a,b", "{d},{e},{f},{g}", {"months": "time", "status": "event"}),
        ("label,time,y,a,b", "{c},{d},{v},{f},{g}", {"label": "label", "time": "", "y": ""}),
        ("label,time,event,a,b", "{c},{d},{e},{f},{g}", {"label": "", "time": "time"}),
    ],
)
def test_of_several_kinds_of_target_one_is_learned(
    header: str, cells: str, wanted: dict[str, str]
) -> None:
    rows = "\n".join(
        cells.format(d=k % 28 + 1, e=k % 2, f=k * 7 % 13, g=k * 5 % 11, v=k / 3, c="ab"[k % 2])
        for k in range(40)
    )
    preview = inspect_table(f"{header}\n{rows}".encode(), entry("multiview").table)
    assert {name: preview.mapping[name] for name in wanted} == wanted
    assert not preview.problems
    assert {"a", "b"} <= set(preview.features)

"""How few labels will do, when steps come to rest, and whether survival is calibrated."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scant.studies.multiview.entry import ENTRY
from scant.studies.multiview.models import rests
from scant.studies.multiview.scarcity import drawn
from scant.studies.multiview.settings import FIXED, MultiviewSettings
from scant.studies.multiview.simulate.cell_events import candidates
from scant.studies.multiview.splits import blocks, stops
from scant.studies.multiview.study import Study
from scant.studies.multiview.survival import Patients, calibrated
from scant.studies.multiview.table import MultiviewData
from tests.engine.studies.studying import run


def seen(
    group: list[int], task: str = "classification", patient: list[int] | None = None
) -> MultiviewData:
    n = len(group)
    return MultiviewData(
        task=task,
        names=["v"],
        features=["v.a"],
        classes=["other", "event"],
        patients=["p"] * n,
        groups=["g"] * n,
        view=np.zeros(1, dtype=np.int64),
        x=np.zeros((n, 1)),
        target=np.ones(n),
        event=np.ones(n, dtype=bool),
        patient=np.array(patient or [0] * n),
        group=np.array(group),
    )


@pytest.fixture(scope="module")
def fitted() -> Study:
    values = MultiviewSettings(
        **FIXED
        | {"training_share": 0.5, "max_steps": 25, "n_inducing": 8, "baselines": False}
        | {"repeats": 1, "views": "intensity,gradient"}
    )
    study = Study(values, candidates(sequences=6, each=40), torch.device("cpu"))
    run(study)
    return study


def test_labels_come_in_groups_or_patients_or_rows() -> None:
    rows = np.arange(60)
    films = [i // 20 for i in range(60)]
    assert stops(seen(films), rows) == ("groups", [1, 2, 3])
    people = seen(films, "survival", films)
    assert blocks(people, rows)[0] == "patients"
    name, counts = stops(seen([0] * 320), np.arange(320))
    assert stops(seen(list(range(320))), np.arange(320)) == (name, counts)
    assert (name, counts) == ("rows", [20, 40, 80, 160, 320])


@pytest.mark.slow
def test_the_curve_learns_from_fewer_films_and_ends_at_the_runs_own(fitted: Study) -> None:
    assert fitted.metadata["counts"] == [1, 2, 3]
    told = fitted.explore("scarcity", n=1)
    assert {s.name for s in ENTRY.explore["scarcity"]} == set(told)
    assert told["rows"].tolist() == [40]
    assert told["scores"].shape == (3,)
    assert np.array_equal(fitted.explore("scarcity", n=1)["scores"], told["scores"])
    once = [drawn(fitted.data, 1, draw) for draw in range(8)]
    assert len({tuple(rows) for rows in once}) == 3  # each film is drawn
    assert np.isin(once[0], drawn(fitted.data, 2, 0)).all()
    whole = fitted.explore("scarcity", n=3)
    assert whole["rows"].tolist() == [len(fitted.data.train)]


@pytest.mark.parametrize(
    ("name", "changed", "at_rest"),
    [
        ("dfgp", {}, True),
        ("dfgp", {"rate_falls": False}, False),
        ("dfgp", {"adam_steps": 50, "bound": "closed"}, False),  # L-BFGS goes on
        ("dfgp", {"adam_steps": 50, "bound": "stochastic"}, True),
        ("sgp", {"adam_steps": 50}, True),
        ("student-t", {}, False),
    ],
)
def test_steps_come_to_rest_where_adam_takes_the_last(
    name: str, changed: dict[str, object], at_rest: bool
) -> None:
    assert rests(MultiviewSettings(**FIXED | changed), name) is at_rest


def test_survival_is_calibrated_where_times_are_drawn_from_what_is_predicted() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(1, 1, 400), rng.uniform(0.3, 1, 400)
    time = np.exp(mean + std * rng.normal(size=400))
    end = np.exp(rng.normal(2, 1, 400))  # when each was last seen

    def told(mean: np.ndarray, std: np.ndarray) -> float:
        return calibrated(Patients(np.arange(400), np.minimum(time, end), time <= end, mean, std))

    assert told(mean, std) > 0.05
    assert told(mean, 3 * std) < 1e-3  # too unsure
    assert told(mean + 0.5, std) < 1e-3  # too long
    assert np.isnan(
        calibrated(Patients(np.arange(2), np.ones(2), np.zeros(2, bool), mean[:2], std[:2]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", ["dfgp", "sgp"])
def test_a_kept_run_comes_back_whatever_is_now_meant_by_no_number(model: str) -> None:
    device = torch.device("cpu")
    table = candidates(sequences=4, each=20)
    values = {"model": model, "max_steps": 2, "baselines": False, "repeats": 1, "views": "change"}
    values |= {"neurons": 0, "n_components": 0, "restarts": 1}
    study = Study(MultiviewSettings(**values, n_inducing=9), table, device)
    run(study)
    back = Study.restore(MultiviewSettings(**values), *study.fitted(), device)
    x = study.data.observed.x[study.data.test]
    np.testing.assert_allclose(back.present.ask(x)[0], study.present.ask(x)[0])


def test_the_rate_falls_to_a_hundredth(fitted: Study) -> None:
    rates = []
    fitted.start_restart(0, 0, None)
    trainer = fitted.trainer
    for _ in range(25):
        fitted.step()
        rates.append(trainer._first.param_groups[0]["lr"])  # type: ignore[attr-defined]
    assert rates[0] == 0.05
    assert (np.diff(rates) < 0).all()
    assert rates[-1] < 0.005
    assert fitted.scheduled

"""What the omniglot study answers once it is fitted."""

from __future__ import annotations

import base64

import numpy as np
import pandas as pd
import pytest
import torch

from scant.errors import BadInput
from scant.events import Report
from scant.studies.omniglot import simulate
from scant.studies.omniglot.study import Study
from tests.engine.studies.omniglot.alphabets import CPU, settings


@pytest.mark.slow
def test_a_drawing_is_answered_like_the_row_it_copies(alphabets: tuple[Study, Report]) -> None:
    study, _ = alphabets
    row = study.explore("response", row=40)
    ink = study.data.observed.x[40]
    query = {
        "list": ink.tolist(),
        "words": ",".join(str(v) for v in ink),
        "bytes": base64.b64encode((255 * ink).astype(np.uint8).tobytes()).decode(),
    }
    for pixels in query.values():
        told = study.explore("draw", pixels=pixels)
        assert all(np.array_equal(told[name], row[name]) for name in told)
    assert row["p"][:3].sum() == pytest.approx(1.0)
    assert row["p"][3:].sum() == pytest.approx(1.0)
    assert row["class"][0] == row["p"][:3].argmax() == row["top"][0, 0]
    assert (np.diff(row["p"][row["top"][1]]) <= 0).all()
    place = study.data.train[
        np.flatnonzero(study.data.observed.number[study.data.train] == row["top"][1, 0])
    ]
    assert any(
        np.array_equal(study.data.observed.x[i].reshape(12, 12), row["top_image"][1, 0])
        for i in place
    )
    asked_of = study.explore("response", row=40, label="Bel/Bel 3")
    assert asked_of["class"].tolist() == [5]
    assert not np.allclose(asked_of["map"], row["map"])


def test_a_map_adds_up_to_the_mean(alphabets: tuple[Study, Report]) -> None:
    """All patches' shares and the class's constant make the mean of its function."""
    study, _ = alphabets
    means = study.present.means(np.array([11]))[0]
    constants = study.model.rows_of_mixing(torch.arange(7))[:, -1].detach().numpy()
    for number, name in enumerate(["Anu/Anu 1", "Anu/Anu 2", "Anu/Anu 3", "Bel/Bel 1"]):
        told = study.explore("response", row=11, label=name)
        assert told["map"].shape == (10, 10)
        assert told["map"].sum() + constants[number] == pytest.approx(means[number], abs=1e-6)


def test_blocks_of_a_matrix(
    alphabets: tuple[Study, Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, report = alphabets
    q = int(report.arrays["latent"][0])
    told = study.explore("block", outputs=["Bel"], latent=q)
    assert told["class"].tolist() == [3, 4, 5, 6]
    assert told["matrix"] == pytest.approx(report.arrays["shown_B"][0][3:, 3:])
    monkeypatch.setattr("scant.studies.omniglot.explore.BLOCK", 5)
    several = study.explore("block", latent=q)
    assert several["aggregated"].tolist() == [1]
    whole = np.abs(report.arrays["shown_B"][0])
    assert several["matrix"][0, 1] == pytest.approx(whole[:3, 3:].mean())
    every = [np.abs(b) for b in np.einsum("qcr,qdr->qcd", *[study.present.factors()] * 2)]
    assert report.arrays["global"][1, 1] == pytest.approx(np.mean(every, 0)[3:, 3:].mean())


@pytest.mark.slow
def test_more_shots_are_better_and_the_run_stays_as_it_was() -> None:
    table = simulate.alphabets(0, 12, sizes={"Anu": (0, 8), "Bel": (0, 7)}, drawers=12).frame()
    study = Study(settings(n_latent=5, n_inducing=20), table, CPU)
    study.start_restart(0, 0, None)
    kept = {k: v.clone() for k, v in study.model.state_dict().items()}
    one, all_of_them = (study.explore("shots", k=k) for k in (1, 10))
    assert all_of_them["accuracy"].mean() > one["accuracy"].mean() + 0.05
    assert all_of_them["nearest"].mean() > one["nearest"].mean()
    assert all(torch.equal(v, study.model.state_dict()[k]) for k, v in kept.items())
    again = study.explore("shots", k=1)
    assert np.array_equal(again["accuracy"], one["accuracy"])


def test_nothing_is_drawn_where_there_are_no_images(features: pd.DataFrame) -> None:
    study = Study(settings(), features, CPU)
    study.start_restart(0, 0, None)
    with pytest.raises(BadInput, match="nothing to draw"):
        study.explore("draw", pixels="0,0,0")

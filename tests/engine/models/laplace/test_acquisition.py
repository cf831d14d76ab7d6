"""Which rows are asked about, and when to stop: against quadrature, brute force and refits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from scant.errors import BadInput
from scant.models.laplace import acquisition, stopping
from scant.models.laplace.acquisition import CandidatePool
from scant.models.laplace.classifier import LaplaceGPC
from scant.models.laplace.links import LINKS, probability

KINDS = pytest.mark.parametrize("link", list(LINKS))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pool(link: str, means: list[float], variances: list[float]) -> CandidatePool:
    mean, variance = torch.tensor(means).double(), torch.tensor(variances).double()
    return CandidatePool(probability(link, mean, variance), mean, variance)


def fitted(n: int = 60, d: int = 3, link: str = "logistic") -> tuple[LaplaceGPC, torch.Tensor]:
    x = torch.randn(n, d, generator=generator(), dtype=torch.float64)
    model = LaplaceGPC.build(x, (x[:, 0] + 0.3 * x[:, 1] > 0).long(), link)
    model.fit(20)
    return model, torch.randn(200, d, generator=generator(1), dtype=torch.float64)


@KINDS
def test_bald_in_closed_form_is_the_mutual_information(link: str) -> None:
    grid = [(m, v) for m in (-3.0, -1.0, 0.0, 0.5, 2.0) for v in (0.05, 0.5, 2.0, 8.0)]
    asked = pool(link, [m for m, _ in grid], [v for _, v in grid])
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    f = asked.mean[:, None] + asked.variance[:, None].sqrt() * torch.as_tensor(nodes)
    p = LINKS[link](f.ravel(), torch.ones(f.numel()).double()).log_p.exp()
    inner = acquisition.entropy(p).reshape(f.shape) @ torch.as_tensor(weights / weights.sum())
    exact = acquisition.entropy(asked.p) - inner
    found = acquisition.information(asked, link)
    assert (found - exact).abs().max() < (0.003 if link == "logistic" else 0.01)
    assert np.corrcoef(found, exact)[0, 1] > 0.995


def test_scores_rank_rows_as_their_names_say() -> None:
    asked = pool("probit", [0.0, 0.02, 1.0, -2.0, 0.05], [0.1, 9.0, 1.0, 1.0, 0.2])
    order = {
        m: acquisition.scores(m, asked, "probit", generator(), 0.05).argsort(descending=True)
        for m in acquisition.METHODS
    }
    assert order["rare class first"].tolist() == order["least confident"].tolist()  # enough of it
    seek = acquisition.scores("rare class first", asked, "probit", generator(), sought=1)
    assert seek.argsort(descending=True).tolist() == asked.p.argsort(descending=True).tolist()
    seek = acquisition.scores("rare class first", asked, "probit", generator(), sought=0)
    assert seek.argsort(descending=True).tolist() == asked.p.argsort().tolist()
    assert [acquisition.sought(c, 10) for c in ([30, 4], [4, 30], [30, 10])] == [1, 0, None]
    strict = acquisition.scores("band, strict", asked, "probit", generator(), 0.05)
    picks = acquisition.chosen(strict, asked.mean[:, None], 5, "distance")
    assert set(picks.tolist()) == {0, 1, 4}  # no others, though five are wanted
    assert order["least confident"].tolist() == order["entropy"].tolist()
    assert order["least confident"][0] == 0
    assert order["least confident"][-1] == 3
    assert order["BALD"][0] == 1  # even odds because nothing is known, not because it is between
    assert set(order["band"][:3].tolist()) == {0, 1, 4}
    assert order["band"][3:].tolist() == [2, 3]
    bands = [acquisition.scores("band", asked, "probit", generator(s)) for s in range(8)]
    assert len({int(b.argmax()) for b in bands}) > 1
    with pytest.raises(BadInput, match="no acquisition 'best'"):
        acquisition.scores("best", asked, "probit", generator())


def test_batches_are_spread_out() -> None:
    close = torch.randn(30, 2, generator=generator(), dtype=torch.float64) * 0.01
    x = torch.cat([close, torch.tensor([[3.0, 0.0], [0.0, 3.0], [50.0, 50.0]]).double()])
    score = torch.cat([torch.linspace(2, 1, 30), torch.tensor([0.9, 0.8, -9.0])]).double()
    assert acquisition.chosen(score, x, 3).tolist() == [0, 1, 2]
    assert acquisition.chosen(score, x[:, :2], 4, "distance")[0] == 0
    assert set(acquisition.chosen(score, x, 4, "distance").tolist()) >= {0, 30, 31}
    assert 32 not in acquisition.chosen(score[:], x, 4, "distance")  # not among the best
    assert len(acquisition.chosen(score, x, 99)) == 33
    assert len(acquisition.chosen(score[:0], x[:0], 3, "distance")) == 0
    with pytest.raises(BadInput, match="no diversity"):
        acquisition.chosen(score, x, 2, "much")


def test_the_determinant_grows_as_much_as_any_next_row_lets_it() -> None:
    model, new = fitted()
    score = torch.rand(len(new), generator=generator(2), dtype=torch.float64)
    picks = acquisition.chosen(score, new, 5, "determinant", model)
    assert picks[0] == score.argmax()
    assert len(set(picks.tolist())) == 5
    short = score.argsort(descending=True)[: acquisition.SHORTLIST * 5]
    K = acquisition.posterior_covariance(model, new, new)
    for i in range(1, 5):
        best = max(
            float(torch.logdet(K[s][:, s]))
            for c in short.tolist()
            if c not in picks[:i].tolist() and len(s := [*picks[:i].tolist(), c])
        )
        s = picks[: i + 1].tolist()
        assert float(torch.logdet(K[s][:, s])) == pytest.approx(best, abs=1e-8)


def test_the_diagonal_of_the_covariance_is_the_variance() -> None:
    model, new = fitted()
    own = acquisition.posterior_covariance(model, new, new).diagonal()
    torch.testing.assert_close(own, model.latent(new)[1], atol=1e-9, rtol=1e-7)


def test_reasons_say_where_a_row_stands() -> None:
    p = torch.tensor([0.52, 0.49, 0.70, 0.5]).double()
    near = torch.tensor([0.1, 0.95, 0.5, 0.5]).double()
    share = torch.tensor([0.9, 0.1, 0.8, 0.2]).double()
    told = acquisition.reasons(p, near, share, "band")
    assert told[0] == "p = 0.52, far from every labeled row"
    assert told[1] == "p = 0.49, much like a labeled row, and still undecided"
    assert "outside the band" in told[2]
    assert "say little yet" in told[2]
    assert told[3].endswith("between labeled rows of both kinds")
    sure = acquisition.reasons(p[:1] + 0.45, near[1:2], share[1:2], "entropy")
    assert sure == ["p = 0.97, hardly in doubt: what is left says little more"]
    assert "drawn at random" in acquisition.reasons(p, near, share, "random")[0]
    model, new = fitted()
    assert acquisition.nearness(model, model.x[:2], model.x).tolist() == pytest.approx([1, 1])
    assert acquisition.nearness(model, new, model.x[:0]).tolist() == [0.0] * 200


def test_changes_of_f1_are_told_without_labels() -> None:
    before = np.array([1, 1, 1, 0, 0, 0], dtype=bool)
    after = np.array([1, 1, 0, 1, 1, 0], dtype=bool)
    assert stopping.change(before, after) == pytest.approx(1 - 4 / 7)
    assert stopping.change(before, before) == 0
    assert stopping.change(before & False, after & False) == 1  # nothing is predicted: not settled
    assert stopping.change(before, after & False) == 1


def test_flips() -> None:
    p, q = torch.tensor([0.4, 0.6, 0.9]), torch.tensor([0.6, 0.55, 0.1])
    before, after = torch.stack([1 - p, p], 1), torch.stack([1 - q, q], 1)
    assert stopping.flips(before, after) == pytest.approx(2 / 3)
    assert stopping.flips(before[:0], after[:0]) == 0.0


def test_labels_still_needed_are_told_by_the_trend_of_the_changes() -> None:
    labels = 10 * np.arange(3, 26)
    falling = [0.6 / n for n in labels]  # comes to 0.002 at 300, its average of eight at 340
    left = stopping.remaining(falling, int(labels[-1]), 10)
    assert left == pytest.approx(340 - labels[-1], rel=0.15)
    assert stopping.remaining([0.001] * 10, 100, 10) == 0
    assert math.isnan(stopping.remaining([30 / n for n in labels], 250, 10))  # after thousands
    assert math.isnan(stopping.remaining([0.1] * 8, 100, 10))  # no trend
    assert math.isnan(stopping.remaining(falling[:3], 30, 10))


@KINDS
def test_expected_flips_are_those_of_fits_with_either_label(link: str) -> None:
    """Averaged over rows asked about: each by itself is rounded to whole rows."""
    model, new = fitted(30, 2, link)
    model.fit(0)
    mean, variance = model.latent(new)
    p = model.probability(new)
    asked = (p - 0.5).abs().argsort()[:15]
    K = acquisition.posterior_covariance(model, new, new[asked])
    found = stopping.expected_flips(model, mean, K, mean[asked], variance[asked])
    exact = []
    for i in asked.tolist():
        total = 0.0
        for label, weight in ((1, float(p[i])), (0, 1 - float(p[i]))):
            more = model.observe(new[i : i + 1], torch.tensor([label]))
            total += weight * float(((more.latent(new)[0] > 0) != (mean > 0)).sum())
        exact.append(total)
    assert np.mean(exact) > 1
    assert float(found.mean()) == pytest.approx(np.mean(exact), rel=0.2)
    assert np.corrcoef(found, exact)[0, 1] > 0.8


def advice(
    changes: list[float], counts: list[int], predicted: int, flipped: float = 0.01
) -> stopping.Advice:
    return stopping.advise(
        changes, counts, predicted, flipped=flipped, expected=3.0, rows=700,
        labels=sum(counts), batch=10, sought="clamp",
    )  # fmt: skip


def test_advice_in_words() -> None:
    rising = advice([3.0 / n**2 for n in range(3, 13)], [80, 40], 40, 0.05)
    assert not rising.stop
    assert rising.text.startswith(
        "Go on: a batch changed F1 by about 0.053 in the last 8, the last batch changed 5.0% of "
        "the pool's predictions, the next is expected to change 3 of 700, about "
    )
    assert rising.remaining > 0
    rest = advice([0.3, *[0.001] * 8], [60, 30], 40)
    assert (rest.stop, rest.remaining) == (True, 0.0)
    assert rest.text.startswith("You may stop: a batch changed F1 by about 0.001 in the last 8")
    assert not advice([0.0] * 4, [60, 30], 40).stop  # too few batches


def test_a_stop_is_never_advised_on_too_little() -> None:
    """Issue 23: 25 labels, one of them positive, none predicted, and "You may stop"."""
    settled = [0.0] * 9
    assert not advice(settled, [24, 1], 0).stop
    few = advice(settled, [24, 1], 30)
    assert not few.stop
    assert "the rarest class has 1 label, and" in few.text
    none = advice(settled, [60, 29], 0)
    assert not none.stop
    assert "no unlabeled row is predicted to be clamp yet" in none.text
    assert advice(settled, [60, 60], 0).stop  # all may have been found
    assert "all labels are of one class" in advice(settled, [9, 0], 5).text
    assert math.isnan(none.remaining)

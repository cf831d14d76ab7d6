"""Every trainer keeps the one protocol: ELBOs in nats of all rows, steps that resume bit by bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from gpytorch.priors import NormalPrior
from scipy.stats import multivariate_t
from torch import Tensor

from scant.models.dfgp.model import DFGP
from scant.models.dfgp.training import DFGPTrainer
from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.models.gplvm.sclvm import SCLVM
from scant.models.gplvm.training import GPLVMTrainer
from scant.models.gpz.model import GPz
from scant.models.gpz.training import GPzTrainer
from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.models.mogp_ar.baselines import build
from scant.models.mogp_ar.kernels import RbfArd
from scant.models.mogp_ar.training import MOGPARTrainer
from scant.models.mtgpa.exact import ExactGP, ExactTrainer
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data as Supports
from scant.models.mtgpa.training import MTGPATrainer
from scant.models.replicated.baselines import Pooled
from scant.models.replicated.hgp import DHGP, HGP, HGPInd
from scant.models.replicated.hmogp_lv.model import HMOGPLV
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from scant.models.replicated.training import ReplicaTrainer
from scant.models.student_t import StudentT, StudentTTrainer
from scant.models.svgp import SVGP, SVGPTrainer
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.trainer import Trainer
from tests.engine.models.replicated.replicas import data as replicas

N = 30
LENGTHS = ((5, 3, 4), (4, 6), (5, 5))  # rows of each replica, of each output
Elbo = Callable[[], float]  # of the model as it is, without its trainer
Case = tuple[Any, Trainer, Elbo]


SHIFT = {"rows": 0, "start": 0}  # of seeds, where a state has to bring rows and start along


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed + SHIFT["start"])


def _rows() -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(7 + SHIFT["rows"])
    x = torch.randn(N, 3, generator=g, dtype=torch.float64)
    return x, 4 * torch.sin(2 * x[:, 0]) + x[:, 1] + 2


def _labels() -> Tensor:
    return (torch.arange(N) % 5 == 0).long()


def gpz() -> Case:
    x, y = _rows()
    model = GPz(3, 6)
    model.init_from_data(x, y, _generator())

    def dense() -> float:
        phi, design = model.design(x)
        K = (design / model.log_alpha.exp()) @ design.T
        K = K + torch.diag((-model.log_beta(phi)).exp())
        evidence = torch.distributions.MultivariateNormal(torch.zeros_like(y), K).log_prob(y)
        prior = torch.distributions.Normal(0.0, (-model.log_tau / 2).exp())
        return float(evidence + prior.log_prob(model.v).sum())

    return model, GPzTrainer(model, x, y), dense


def student_t() -> Case:
    x, y = _rows()
    model = StudentT.build(x, y, 5.0, ard=False)

    def dense() -> float:
        """By SciPy, on the scale of the targets as given."""
        d = torch.cdist(model.x, model.x) / model.log_lengthscale.exp()
        K = model.log_variance.exp() * (-d.square() / 2).exp() + model.noise * torch.eye(N)
        shape = (K * model.scale.square() * 3 / 5).detach().numpy()
        centre = [float(model.centre)] * N
        return float(multivariate_t(centre, shape, df=5).logpdf(y.numpy()))

    return model, StudentTTrainer(model), dense


def svgp(likelihood: Any = "gaussian") -> Case:
    x, y = _rows()
    y = y if likelihood == "gaussian" else _labels().double()
    model = SVGP.build(x, y, likelihood, 8, _generator())

    def direct() -> float:
        model.train()
        expected = model.likelihood.expected_log_prob(model.y, model(model.x)).sum()
        kl = model.variational_strategy.kl_divergence()
        return float(expected - kl - N * model.scale.log())

    return model, SVGPTrainer(model, horizon=10), direct


def bgplvm() -> Case:
    model = BGPLVM.build(torch.cat(_outputs(), 1), 2, 8, _generator())
    return model, GPLVMTrainer(model, adam=3), lambda: float(model.bound())


def _outputs() -> tuple[Tensor, Tensor]:
    x, y = _rows()
    return x, torch.stack([y, y.cos(), x[:, 0] * x[:, 1]], 1)


def sclvm() -> Case:
    model = SCLVM.build(torch.cat(_outputs(), 1), _labels(), 2, 1, 1, 4, generator=_generator())
    return model, GPLVMTrainer(model, adam=3), lambda: float(model.bound())


def dgplvm() -> Case:
    model = DGPLVM.build(torch.cat(_outputs(), 1), _labels(), 2)

    def direct() -> float:
        return float(model.log_likelihood() + model.log_prior())

    return model, GPLVMTrainer(model, adam=0), direct


def mtgpa(scheme: str = "adam", batch: int | None = None) -> Case:
    lower = torch.arange(N, dtype=torch.float64).unsqueeze(1)
    supports = torch.cat([lower, lower + 1 + (lower % 2)], 1)
    y, task = torch.sin(lower.squeeze(1) / 4 + SHIFT["rows"]), torch.arange(N) % 2
    rows = Supports(supports, y, task)
    if scheme == "exact":
        exact = ExactGP.build(rows, 2, 1, _generator())
        return exact, ExactTrainer(exact), lambda: float(exact.elbo())
    natural = scheme == "natural"
    model = MTGPA.build(rows, ["gaussian"] * 2, 1, _generator(), inducing=8, natural=natural)
    trainer = MTGPATrainer(model, rows, _generator(1), scheme, batch=batch)
    return model, trainer, lambda: float(model.elbo(rows))


def mogp_ar(name: str = "mogp-ar", batch: int | None = None, sampled: int = 0) -> Case:
    x, output, label = _rows()[0], torch.arange(N) % 2, torch.arange(N) // 2 % 3
    kernel = RbfArd(x, 1 if name.startswith("g-") else 2)
    rows = kernel.prepare(x)
    model = build(name, kernel, rows, output, [3, 3], 6, _generator())
    trainer = MOGPARTrainer(model, rows, output, label, _generator(1), batch, sampled, horizon=9)
    return model, trainer, lambda: float(model.bound(rows, output, label))


def replica_gp(kind: Any = DHGP, scheme: str = "lbfgs") -> Case:
    model = kind.build(replicas(LENGTHS, seed=SHIFT["rows"]), _generator())
    return model, ReplicaTrainer(model, scheme), lambda: float(model.elbo())


def hmogp_lv(scheme: str = "lbfgs", batch: int = 0) -> Case:
    rows = replicas(LENGTHS, seed=SHIFT["rows"])
    model = HMOGPLV.build(rows, _generator(), dense=scheme == "lbfgs")
    trainer = HMOGPLVTrainer(model, rows, _generator(1), scheme, batch=batch)
    return model, trainer, lambda: float(model.elbo())


def dfgp(bound: Any = "closed", batch: int | None = None, classes: bool = False) -> Case:
    x, y = _rows()
    y, kind = (_labels().double(), "bernoulli") if classes else (y, "gaussian")
    model = DFGP.build([x[:, :2], x], y, kind, inducing=5, generator=_generator(), bound=bound)
    trainer = DFGPTrainer(model, adam=3, batch=batch, generator=_generator(0), horizon=9)
    return model, trainer, lambda: float(model.bound())


WHOLE: dict[str, Callable[[], Case]] = {
    "gpz": gpz,
    "student-t": student_t,
    "svgp": svgp,
    "svgp classes": lambda: svgp("bernoulli"),
    "bgplvm": bgplvm,
    "sclvm": sclvm,
    "dgplvm": dgplvm,
    "mtgpa": mtgpa,
    "mtgpa natural": lambda: mtgpa("natural"),
    "mtgpa em": lambda: mtgpa("em"),
    "mogp-ar": mogp_ar,
    "dhgp": replica_gp,
    "dhgp adam": lambda: replica_gp(scheme="adam"),
    "pooled": lambda: replica_gp(Pooled),
    "hmogp-lv": hmogp_lv,
    "hmogp-lv natural": lambda: hmogp_lv("natural"),
    "hmogp-lv adam": lambda: hmogp_lv("adam"),
    "dfgp": dfgp,
    "mtgpa exact": lambda: mtgpa("exact"),
    "hgp": lambda: replica_gp(HGP),
    "hgp-ind": lambda: replica_gp(HGPInd),
}
BATCHES: dict[str, Callable[[], Case]] = {
    "mtgpa batches": lambda: mtgpa(batch=6),
    "mtgpa natural batches": lambda: mtgpa("natural", batch=6),
    "mtgpa em batches": lambda: mtgpa("em", batch=6),
    "mogp-ar batches": lambda: mogp_ar(batch=5, sampled=1),
    **{name: lambda name=name: mogp_ar(name, batch=8) for name in ("mg-m", "g-m", "g-a")},
    "hmogp-lv batches": lambda: hmogp_lv("adam", batch=1),
    "hmogp-lv natural batches": lambda: hmogp_lv("natural", batch=1),
    "dfgp stochastic": lambda: dfgp("stochastic", batch=9),
    "dfgp stochastic classes": lambda: dfgp("stochastic", batch=9, classes=True),
    "dfgp classes": lambda: dfgp(classes=True),
    "dfgp published classes": lambda: dfgp("published", classes=True),
}
# Whose state does not hold the rows, which their builder or trainer is given.
GIVEN_ROWS = (
    "gpz",
    "student-t",
    "mtgpa",
    "mogp-ar",
    "mg-m",
    "g-",
    "dhgp",
    "hgp",
    "pooled",
    "hmogp-lv",
)
# L-BFGS from the start
ARRIVED = {"gpz", "student-t", "dgplvm", "dhgp", "hgp", "hgp-ind", "pooled", "hmogp-lv"}
ARRIVED |= {"mtgpa exact"}


def laplace() -> Case:
    model = LaplaceGPC.build(_rows()[0], _labels(), prior=Prior())

    def direct() -> float:
        return float(model.log_evidence() + model.log_prior())

    return model, AdamLBFGS(model, model.elbo, 1, adam=0), direct


@pytest.mark.parametrize("name", WHOLE)
def test_a_step_gives_the_elbo_of_all_rows_in_nats(name: str) -> None:
    _, trainer, elbo = WHOLE[name]()
    assert isinstance(trainer, Trainer)
    assert trainer.steps == 0
    for taken in (1, 2):
        before = elbo()
        value = trainer.step()
        there = elbo() if name in ARRIVED else before
        assert value == pytest.approx(there, rel=1e-8, abs=1e-8)
        assert trainer.steps == taken
    assert not trainer.stalled


@pytest.mark.parametrize("name", WHOLE)
def test_steps_lead_to_a_greater_elbo(name: str) -> None:
    _, trainer, _ = WHOLE[name]()
    first = trainer.step()
    assert max(trainer.step() for _ in range(15)) > first


@pytest.mark.parametrize("name", [*WHOLE, *BATCHES, "laplace"])
def test_what_a_step_raises_has_the_priors_that_were_registered(name: str) -> None:
    build = (WHOLE | BATCHES | {"laplace": laplace})[name]
    model, trainer, _ = build()
    twin, plain, elbo = build()
    parameter = next(p for p in model.parameters() if p.requires_grad)
    prior = NormalPrior(0.5, 0.3)
    model.register_prior("belief", prior, lambda _: parameter)
    before = prior.log_prob(parameter).sum().item()
    value = trainer.step()
    if name in ARRIVED | {"laplace"}:
        twin.load_state_dict(model.state_dict(), strict=False)  # the prior has a state, too
        expected = elbo() + prior.log_prob(parameter).sum().item()
    else:
        expected = plain.step() + before
    assert abs(before) > 1e-3
    assert value == pytest.approx(expected, rel=1e-8, abs=1e-6)


@pytest.mark.parametrize("name", [*WHOLE, *BATCHES])
@pytest.mark.parametrize("taken", [2, 5])  # by Adam; by what follows it
def test_a_state_is_all_that_a_run_goes_on_from(
    name: str, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = (WHOLE | BATCHES)[name]
    model, trainer, elbo = make()
    for _ in range(taken):
        assert math.isfinite(trainer.step())
    parameters = {k: v.clone() for k, v in model.state_dict().items()}
    state = {k: v.clone() for k, v in trainer.state_dict().items()}
    there = elbo()
    values = [trainer.step() for _ in range(5)]

    monkeypatch.setitem(SHIFT, "start", 99)
    if name == "mtgpa exact" or not name.startswith(GIVEN_ROWS):
        monkeypatch.setitem(SHIFT, "rows", 5)
    again, resumed, other = make()
    again.load_state_dict(parameters)
    resumed.load_state_dict(state)
    if name not in ("mg-m", "g-m"):  # whose expectations are sampled
        assert other() == there
    assert [resumed.step() for _ in range(5)] == values
    assert resumed.steps == trainer.steps == taken + 5
    for k, v in model.state_dict().items():
        assert torch.equal(again.state_dict()[k], v), k

"""Construction of the models of the engine for benchmarks.

Functions return the trainer of a model, or the model if it has none. Rows are moved to their device
and dtype (`On`) first, as in the studies; models that are built on a CPU or in double precision are
moved afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scant.bench import rows
from scant.bench.rows import On, seeded
from scant.bench.timing import Step
from scant.kernels.patch.kernel import PatchKernel
from scant.models.dfgp.model import DFGP
from scant.models.dfgp.training import DFGPTrainer
from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.models.gplvm.sclvm import SCLVM
from scant.models.gplvm.training import GPLVMTrainer
from scant.models.gpz.model import GPz
from scant.models.gpz.training import GPzTrainer
from scant.models.laplace.classifier import LaplaceGPC
from scant.models.mogp_ar.baselines import build as build_mogp
from scant.models.mogp_ar.kernels import RbfArd
from scant.models.mogp_ar.training import MOGPARTrainer
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data as Supported
from scant.models.mtgpa.training import MTGPATrainer
from scant.models.replicated import hgp
from scant.models.replicated.data import Data as Replicated
from scant.models.replicated.hmogp_lv.lvmogp import LVMOGP
from scant.models.replicated.hmogp_lv.model import HMOGPLV
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from scant.models.student_t import StudentT
from scant.models.svgp import SVGP

HERE = On()
UNLIMITED = 10**6  # Adam steps, more than in any measurement


def gradient_of(model: nn.Module, objective: Callable[[], Tensor] | None = None) -> Step:
    """Return a step that computes the ELBO, or another objective, and its gradient."""
    value = objective or cast(Callable[[], Tensor], model.elbo)

    def step() -> Tensor:
        model.zero_grad()
        found = value()
        found.backward()  # type: ignore[no-untyped-call]
        return found.detach()

    return step


def gpz(x: Float[Tensor, "n d"], y: Float[Tensor, " n"], m: int, covariance: str = "VC") -> GPz:
    """Build an initialized GPz on the device of the rows."""
    model = GPz(x.shape[1], m, covariance).to(x)
    model.init_from_data(x, y, seeded())
    return model


def gpz_training(model: GPz, x: Float[Tensor, "n d"], y: Float[Tensor, " n"]) -> GPzTrainer:
    """Build a trainer with L-BFGS on all rows."""
    return GPzTrainer(model, x, y)


def mtgpa(
    data: Supported,
    scheme: str = "adam",
    inducing: int = 100,
    on: On = HERE,
    **of: Any,
) -> MTGPATrainer:
    """Build an MTGPA trainer with Gaussian tasks; `of` are options of the trainer."""
    g, tasks = seeded(), int(data.task.max()) + 1
    data = Supported(*map(on, data[:3]))
    model = MTGPA.build(
        data, ["gaussian"] * tasks, 2, g, inducing=inducing, natural=scheme == "natural"
    )
    return MTGPATrainer(model, data, g, scheme, **of)


def _moved(data: Replicated, on: On) -> Replicated:
    parts = (data.output, data.replica, data.x, data.y, data.samplings)
    return Replicated(*map(on, parts))


def hmogp_lv(
    data: Replicated,
    scheme: str = "lbfgs",
    batch: int = 0,
    outputs: int = 5,
    inputs: int = 32,
    on: On = HERE,
    kind: type[HMOGPLV] = HMOGPLV,
) -> HMOGPLVTrainer:
    """Build a trainer of HMOGP-LV, or of LVMOGP with `kind`."""
    g, there = seeded(), _moved(data, On(on.device))
    sizes: Any = {"n_inducing_outputs": outputs, "n_inducing_inputs": inputs}
    model = on(kind.build(there, g, **sizes, dense=scheme == "lbfgs"))
    trainer = HMOGPLVTrainer(model, _moved(data, on), g, scheme, batch=batch)
    model.layout = trainer.layout
    return trainer


def lvmogp(data: Replicated, **of: Any) -> HMOGPLVTrainer:
    """Build a trainer of LVMOGP, without replicas."""
    return hmogp_lv(data, kind=LVMOGP, **of)


def hierarchy(data: Replicated, kind: str = "DHGP", on: On = HERE, **of: Any) -> Any:
    """Build an HGP, HGPInd or DHGP; `of` are options of its `build`."""
    data = _moved(data, on)
    return on(getattr(hgp, kind).build(data, **of)).on(data)


def mogp_ar(
    sizes: Sequence[int],
    n: int = 1600,
    features: int = 5,
    latent: int = 5,
    inducing: int = 100,
    name: str = "mogp-ar",
    batch: int = 200,
    sampled: int = 0,
    on: On = HERE,
) -> MOGPARTrainer:
    """Build a MOGPs-AR trainer with random rows and an RBF kernel; `sizes` are class counts."""
    g = seeded()
    x = torch.randn(n, features, generator=g, dtype=torch.float64)
    output = torch.arange(n) % len(sizes)
    label = (torch.rand(n, generator=g) * torch.tensor(sizes)[output]).long()
    kernel = RbfArd(x, latent)
    prepared = kernel.prepare(x)
    model = on(build_mogp(name, kernel, prepared, output, sizes, inducing, g))
    x, output, label = map(on, (prepared, output, label))
    return MOGPARTrainer(model, x, output, label, g, batch=batch, sampled=sampled)


def patches(
    sizes: Sequence[int],
    grey: bool = False,
    patch: int = 3,
    latent: int = 10,
    inducing: int = 50,
    name: str = "mogp-ar",
    batch: int = 50,
    sampled: int = 0,
    on: On = HERE,
    each: int = 20,
) -> MOGPARTrainer:
    """Build a MOGPs-AR trainer with `each` drawings per class and the patch kernel."""
    n = each * sum(sizes)
    number = torch.arange(n) // each
    output = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes) * each)
    first = torch.tensor([0, *sizes]).cumsum(0)[:-1]
    kernel = PatchKernel(20, 20, patch, n_latent=latent)
    g = seeded()
    prepared = kernel.prepare(rows.drawings(n, grey))
    model = on(build_mogp(name, kernel, prepared, output, sizes, inducing, g))
    x, output, label = map(on, (prepared, output, number - first[output]))
    return MOGPARTrainer(model, x, output, label, g, batch=batch, sampled=sampled)


def bgplvm(n: int, d: int, m: int, on: On = HERE) -> Any:
    """Build a BGPLVM with five latent dimensions."""
    return on(BGPLVM.build(rows.outputs(n, d), 5, m, seeded()))


def sclvm(n: int, d: int, q: int, m: int, classes: int = 2, on: On = HERE) -> Any:
    """Build an SCLVM with q / 2 shared dimensions; rare classes have an eleventh of the rows."""
    rare = max(n // 11 // (classes - 1), 1)
    label = (torch.arange(n) // rare + 1) * (torch.arange(n) < rare * (classes - 1))
    y = rows.outputs(n, d)
    return on(SCLVM.build(y, label, classes, q // 2, q - q // 2, m, seeded()))


def latent_training(model: BGPLVM | DGPLVM) -> GPLVMTrainer:
    """Build a trainer with Adam."""
    return GPLVMTrainer(model, adam=UNLIMITED)


def dgplvm(n: int, classes: int, d: int = 100, on: On = HERE) -> Any:
    """Build a DGPLVM with five latent dimensions and classes of equal size."""
    return on(DGPLVM.build(rows.outputs(n, d), torch.arange(n) % classes, 5))


def dfgp(views: list[Tensor], y: Tensor, on: On = HERE, **of: Any) -> DFGPTrainer:
    """Build a DFGP trainer with Adam; `of` are options of the model."""
    model = on(DFGP.build([v.to(on.device) for v in views], y.to(on.device), **of))
    return DFGPTrainer(model, adam=UNLIMITED)


def svgp(n: int, m: int, on: On = HERE) -> Any:
    """Build an SVGP with 27 inputs."""
    x, y = (v.to(on.device) for v in rows.features(n))
    return on(SVGP.build(x, y, inducing=m))


def student_t(n: int, d: int = 27, on: On = HERE) -> Any:
    """Build a StudentT with five degrees of freedom and ARD."""
    x, y = (v.to(on.device) for v in rows.features(n, d))
    return on(StudentT.build(x, y, df=5))


def laplace(n: int, ard: bool = False, on: On = HERE) -> Any:
    """Build a LaplaceGPC with 20 inputs; modes start from the last one, as in training."""
    x, y = (v.to(on.device) for v in rows.two_classes(n))
    return on(LaplaceGPC.build(x, y, ard=ard))


def laplace_step(model: LaplaceGPC) -> Step:
    """Return a step that computes evidence and gradient after a small hyperparameter change."""

    def step() -> None:
        model.zero_grad()
        with torch.no_grad():
            model.kernel.raw_outputscale.mul_(1.001)
        model.log_evidence().backward()  # type: ignore[no-untyped-call]

    return step

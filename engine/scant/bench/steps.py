"""Steps of all benchmark cases by size.

A step is a function without arguments. Steps of the engine use `builders` with further sizes from
the publications; steps of other packages use `stock` with the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import torch

from scant.bench import builders as ours
from scant.bench import rows, stock
from scant.bench.rows import On
from scant.bench.timing import Step
from scant.models.gpz.distributed import DistributedRows, Processes
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.row_sums import LocalRows
from scant.models.svgp import SVGPTrainer


def gpz(covariance: str) -> Callable[..., Step]:
    def build(n: int, m: int, on: On) -> Step:
        x, y = map(on, rows.galaxies(n))
        return ours.gpz_training(ours.gpz(x, y, m, covariance), x, y).step

    return build


def many_rows(workers: int) -> Callable[..., Step]:
    """Build the log evidence of GPz and its gradient, with rows in one or several processes."""

    def build(n: int, m: int, on: On) -> Step:
        x, y = map(on, rows.galaxies(n))
        model = ours.gpz(x, y, m)
        row_sums: Any = LocalRows
        if workers > 1:
            row_sums = partial(DistributedRows, processes=Processes(workers))
        return ours.gradient_of(model, LogEvidence(model, x, y, place=row_sums))

    return build


def missing_bands(n: int, m: int, on: On) -> Step:
    x, y = map(on, rows.galaxies(n))
    model = ours.gpz(x, y, m)
    ours.gpz_training(model, x, y).step()
    model.fit_posterior(x, y)
    x[:, [1, 3, 6, 8]] = torch.nan  # two bands and their errors
    return lambda: model.predict(x)


def gpytorch_sparse(
    n: int,
    m: int,
    on: On,
    make: Any = rows.features,
) -> Step:
    x, y = map(on, make(n))
    return stock.sparse(x, y, m)


def galaxies_sparse(n: int, m: int, on: On) -> Step:
    return gpytorch_sparse(n, m, on, rows.galaxies)


def mtgpa(scheme: str = "adam", batch: int | None = None) -> Callable[..., Step]:
    def build(n: int, m: int, on: On) -> Step:
        return ours.mtgpa(rows.fertility(n), scheme, m, on, batch=batch).step

    return build


def centres(n: int, m: int, on: On) -> Step:
    data = rows.fertility(n)
    middle = (data.supports[:, :2] + data.supports[:, 2:4]) / 2
    shuffled = torch.randperm(n, generator=rows.seeded())  # the first m rows are inducing points
    parts = (middle[shuffled] / 10, data.y[shuffled], data.task[shuffled])
    x, y, task = map(on, parts)
    return stock.mixed_tasks(x, y, task, m)


def curves(n: int, same: bool = False) -> Any:
    return rows.curves(n // 40, 4, 10, same)


def hmogp(scheme: str = "lbfgs", batch: int = 0, same: bool = False) -> Callable[..., Step]:
    def build(n: int, m: int, on: On) -> Step:
        return ours.hmogp_lv(curves(n, same), scheme, batch, inputs=m, on=on).step

    return build


def published_hmogp(n: int, m: int, on: On) -> Step:
    data = rows.curves(4, 8, n // 32)
    return ours.hmogp_lv(data, "adam", outputs=4, inputs=m, on=on).step


def lvmogp(n: int, m: int, on: On) -> Step:
    return ours.lvmogp(curves(n), inputs=m, on=on).step


def hgp(kind: str) -> Callable[..., Step]:
    def build(n: int, on: On, m: int = 0) -> Step:
        others = {"inducing_inputs": m} if m else {}
        model = ours.hierarchy(rows.curves(4, 8, n // 32), kind, on, **others)
        return ours.gradient_of(model)

    return build


def gpytorch_dhgp(n: int, on: On) -> Step:
    model = ours.hierarchy(rows.curves(4, 8, n // 32), "DHGP", on)
    points, y, noise = (v[0].detach() for v in model.observed())
    return stock.exact_with(model.kernel, points, y, float(noise[0]))


def mogp(
    latent: int = 5, features: int = 5, sampled: int = 0, name: str = "mogp-ar"
) -> Callable[..., Step]:
    def build(n: int, m: int, classes: int, on: On) -> Step:
        return ours.mogp_ar([classes], 1600, features, latent, m, name, n, sampled, on).step

    return build


def alphabets(n: int, m: int, classes: int, on: On) -> Step:
    sizes = [len(part) for part in torch.arange(classes).split(33)]  # 50 of Omniglot's 1,623
    each = n // len(sizes)
    return ours.mogp_ar(sizes, 20_000, 5, 10, m, batch=each, sampled=1, on=on).step


def gpytorch_lmc(latent: int = 5, features: int = 5) -> Callable[..., Step]:
    def build(n: int, m: int, classes: int, on: On) -> Step:
        g = rows.seeded()
        x = torch.randn(1600, features, generator=g, dtype=torch.float64)
        label = (torch.rand(1600, generator=g) * classes).long()
        return stock.mixed_classes(on(x), on(label), classes, latent, m, n, g)

    return build


def patches(**of: Any) -> Callable[..., Step]:
    def build(n: int, m: int, classes: int, on: On) -> Step:
        halves = [classes // 2, classes - classes // 2]
        return ours.patches(halves, inducing=m, batch=n // 2, on=on, each=10, **of).step

    return build


def bgplvm(n: int, m: int, on: On) -> Step:
    return ours.gradient_of(ours.bgplvm(n, 100, m, on))


def sclvm(n: int, m: int, classes: int, on: On) -> Step:
    return ours.gradient_of(ours.sclvm(n, 900, 10, m, classes, on))


def placing(n: int, m: int, classes: int, on: On) -> Step:
    model = ours.sclvm(1640, 40, 10, m, classes, on)
    ours.latent_training(model).step()
    new = on(rows.outputs(n, 40))
    return lambda: model.class_log_evidence(new)


def eight_views(n: int, m: int, on: On) -> Step:
    views = [rows.features(n, d)[0] for d in (26, 58, 58, 128) for _ in range(2)]
    label = (rows.features(n)[1] > 0).double()
    return ours.dfgp(views, label, on, inducing=m, likelihood="bernoulli").step


def dfgp(bound: str) -> Callable[..., Step]:
    def build(n: int, m: int, on: On) -> Step:
        x, y = rows.features(n)
        return ours.dfgp([x], y, on, inducing=m, neurons=7, bound=bound).step

    return build


def laplace(ard: bool) -> Callable[..., Step]:
    def build(n: int, classes: int, on: On) -> Step:
        return ours.laplace_step(ours.laplace(n, ard, on))

    return build


def laplace_fit(n: int, classes: int, on: On) -> Step:
    model = ours.laplace(n, on=on)
    return lambda: deepcopy(model).fit()


def laplace_refit(n: int, classes: int, on: On) -> Step:
    model, more = ours.laplace(n, on=on), map(on, rows.two_classes(10))
    model.fit()
    grown = on(model.observe(*more))  # built in double precision
    return lambda: grown.fit(5)


def sklearn_laplace(ard: bool) -> Callable[..., Step]:
    return lambda n, classes, on: stock.classifier(*rows.two_classes(n), ard)


def gpytorch_gplvm(n: int, m: int, on: On) -> Step:
    return stock.latent(on(rows.outputs(n, 100)), 5, m)


def student_t(inputs: int) -> Callable[..., Step]:
    def step(n: int, on: On) -> Step:
        return ours.gradient_of(ours.student_t(n, inputs, on))

    return step


def exact(inputs: int) -> Callable[..., Step]:
    def step(n: int, on: On) -> Step:
        return stock.exact(*map(on, rows.features(n, inputs)))

    return step


def regressor(inputs: int) -> Callable[..., Step]:
    return lambda n, on: stock.regressor(*rows.features(n, inputs))


def dgplvm(n: int, classes: int, on: On) -> Step:
    return ours.gradient_of(ours.dgplvm(n, classes, on=on))


def svgp(n: int, m: int, on: On) -> Step:
    return SVGPTrainer(ours.svgp(n, m, on)).step

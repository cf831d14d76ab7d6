"""Write data/notebooks/gpytorch_families.ipynb: each family of models as GPyTorch's examples do it.

    python scripts/write_families_notebook.py

A cell of at most `LINES` lines trains a family with a kernel of the user's own and predicts. The
notebook is kept without outputs; a test runs it from top to bottom.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import nbformat

FILE = Path(__file__).parent.parent / "data" / "notebooks" / "gpytorch_families.ipynb"
LINES = 15  # of a cell, blank ones not counted

INTRODUCTION = """
# Scant's models by GPyTorch's interface

Every model is a `gpytorch.Module`. Its objective `elbo()` is in nats and has registered priors
(`register_prior`), `model(x)` is the distribution of f, and its likelihood that of y. Where the
mathematics allows, a kernel of your own takes the place of the model's.
"""

START = """
import torch
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel

generator = torch.Generator().manual_seed(0)
x = torch.randn(120, 2, generator=generator, dtype=torch.float64)
noise = 0.2 * torch.randn(120, generator=generator, dtype=torch.float64)
y = 3 + torch.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + noise
new = torch.randn(5, 2, generator=generator, dtype=torch.float64)


def train(model, objective, steps=40, rate=0.05):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -objective()
        loss.backward()
        optimizer.step()
    return -loss.item()
"""

# A title, a sentence or two, and a cell.
FAMILIES: tuple[tuple[str, str, str], ...] = (
    (
        "GPz",
        "A sparse GP of basis functions, of six covariance structures in place of kernels, with"
        " noise that depends on the input. The objective is the log evidence.",
        """
        from scant.models.gpz.likelihood import GPzLikelihood
        from scant.models.gpz.log_evidence import LogEvidence
        from scant.models.gpz.model import GPz

        model = GPz(n_features=2, n_basis=8, covariance="VC")
        model.init_from_data(x, y, generator)
        print("log evidence", train(model, LogEvidence(model, x, y)))
        model.fit_posterior(x, y)
        with torch.no_grad():
            f = model(new)
            predicted = GPzLikelihood(model)(f, new)
        print(f.mean, f.variance, predicted.variance)
        """,
    ),
    (
        "Deep feed-forward GP",
        "Hidden neurons, each a sparse GP over a view of a row, into an output GP. The kernel is"
        " that of the neurons; the output's has expectations in closed form.",
        """
        from scant.models.dfgp.model import DFGP

        kernel = MaternKernel(nu=2.5, ard_num_dims=2, batch_shape=torch.Size([3]))
        model = DFGP.build([x], y, bound="closed", inducing=12, neurons=3, kernel=kernel)
        print("bound", train(model, model.elbo))
        with torch.no_grad():
            f = model(new)
            predicted = model.likelihood(f)
        print(f.mean, f.variance, predicted.variance)
        """,
    ),
    (
        "Censored times in a model of GPyTorch's",
        "Targets of which some are only known to lie above a value: a likelihood for any"
        " variational GP. Here it is a sparse one, with a kernel of two parts.",
        """
        from gpytorch.mlls import VariationalELBO

        from scant.likelihoods.gaussian import CensoredGaussianLikelihood
        from scant.models.svgp import SVGP

        kernel = ScaleKernel(RBFKernel(active_dims=0)) + ScaleKernel(MaternKernel(active_dims=1))
        model = SVGP.build(x, y, inducing=15, kernel=kernel)
        late = y > 3.5
        model.likelihood = CensoredGaussianLikelihood().double()
        mll = VariationalELBO(model.likelihood, model, num_data=len(y))
        print("bound of a row", train(model, lambda: mll(model(model.x), model.y, censored=late)))
        mean, variance = model.predict(new)
        print(mean, variance)
        """,
    ),
    (
        "Student-t process",
        "Exact regression whose predictions are t distributions.",
        """
        from scant.models.student_t import StudentT

        model = StudentT.build(x, y, kernel=ScaleKernel(RBFKernel()) * PeriodicKernel())
        print("log density", train(model, model.elbo))
        with torch.no_grad():
            predicted = model.likelihood(model(new))
        print(predicted.df, predicted.mean, predicted.variance)
        """,
    ),
    (
        "Hierarchical GP of replicated outputs",
        "Rows are (output, replica, x). A kernel for what the replicas of an output share, and"
        " one for what each has of its own; replica -1 is one that was never seen.",
        """
        from scant.models.replicated.data import Data
        from scant.models.replicated.hgp import HGP

        output, replica = torch.arange(120) % 2, torch.arange(120) // 2 % 3
        centred = (y - y.mean()) / y.std()
        data = Data.of(output, replica, x[:, 0], centred)
        own = ScaleKernel(RBFKernel(batch_shape=torch.Size([2])), batch_shape=torch.Size([2]))
        model = HGP.build(data, kernel_shared=ScaleKernel(PeriodicKernel()), kernel_replica=own)
        print("log density", train(model, model.elbo))
        rows = torch.tensor([[0, 1, 0.5], [0, -1, 0.5], [1, 2, -1.0]]).double()
        with torch.no_grad():
            f = model(rows)
            predicted = model.likelihood(f, rows)
        print(f.covariance_matrix, predicted.variance)
        """,
    ),
    (
        "Multi-task GP of aggregated values",
        "Rows are supports: here intervals, over which the first task has averages, and points,"
        " where the second has values. A kernel of points is averaged over supports by quadrature.",
        """
        from scant.kernels.box_average.support import boxes, join
        from scant.models.mtgpa.model import MTGPA
        from scant.models.mtgpa.prior import Data as Averages

        supports = join([boxes(x[:60, :1], x[:60, :1] + 0.4), x[60:, :1]], 1)
        averages = Averages(supports, centred, torch.arange(120) // 60)
        kernels = [ScaleKernel(PeriodicKernel()) + RBFKernel()]
        model = MTGPA.build(averages, ["gaussian"] * 2, 1, generator, inducing=12, kernels=kernels)
        print("bound", train(model, lambda: model.elbo(averages)))
        with torch.no_grad():
            f = model(boxes(new[:, :1], new[:, :1] + 0.5), task=1)
            predicted = model.likelihoods[1](f)
        print(f.mean, f.variance, predicted.variance)
        """,
    ),
    (
        "Hierarchical GP with latent variables",
        "The same rows; outputs now have places in a latent space, which are learned with the"
        " inducing variables.",
        """
        from scant.models.replicated.hmogp_lv.model import HMOGPLV

        kernel = ScaleKernel(MaternKernel(nu=2.5))
        settings = {"n_inducing_outputs": 2, "n_inducing_inputs": 12, "dense": False}
        model = HMOGPLV.build(data, generator, kernel_shared=kernel, **settings)
        print("bound", train(model, model.elbo))
        with torch.no_grad():
            f = model(rows)
            predicted = model.likelihood(f, rows)
        print(f.mean, predicted.variance, model.outputs_covariance())
        """,
    ),
    (
        "GP latent variable model",
        "Positions of rows from their outputs, here pulled apart by class. f is of all outputs at"
        " positions.",
        """
        from scant.models.gplvm.dgplvm import DGPLVM

        outputs = torch.cat([x, x.prod(1, keepdim=True), x.square()], 1)
        label = (y > 3).long()
        model = DGPLVM.build(outputs, label, 2, kernel=ScaleKernel(MaternKernel(nu=2.5)).double())
        print("log density", train(model, model.elbo))
        with torch.no_grad():
            f = model(model.infer(outputs[:3]))
            predicted = model.likelihood(f)
        print(f.mean, predicted.variance)
        """,
    ),
    (
        "Multi-output classes by augment and reduce",
        "The classes of several outputs mix the same latent functions, three here. Rows of the"
        " mixing matrix have sparse gradients, so that `fit` has an optimizer of its own for them.",
        """
        from scant.models.mogp_ar.training import fit

        output, label = torch.arange(120) % 2, (y > 3).long() + (x[:, 1] > 0).long()
        kernel = MaternKernel(nu=2.5, ard_num_dims=2, batch_shape=torch.Size([3])).double()
        model = fit(x, output, label, kernel=kernel, inducing=15, steps=40)
        with torch.no_grad():
            print("bound", model.bound(model.kernel.prepare(x), output, label).item())
            predicted = model.likelihood(model(new), output=output[:5])
        print(predicted.probs)
        """,
    ),
    (
        "Laplace's approximation for two classes",
        "The objective is the approximate log evidence at the mode, which each evaluation seeks.",
        """
        from scant.models.laplace.classifier import LaplaceGPC

        kernel = ScaleKernel(PeriodicKernel()) + ScaleKernel(RBFKernel())
        model = LaplaceGPC.build(x, (y > 3).long(), kernel=kernel.double())
        print("log evidence", train(model, model.elbo))
        with torch.no_grad():
            f = model(new)
            predicted = model.likelihood(f)
        print(f.mean, f.variance, predicted.mean)
        """,
    ),
)


def notebook() -> Any:
    """The notebook, without outputs."""
    v4 = nbformat.v4
    cells = [v4.new_markdown_cell(INTRODUCTION.strip()), v4.new_code_cell(START.strip())]
    for title, text, code in FAMILIES:
        cells.append(v4.new_markdown_cell(f"## {title}\n\n{text}"))
        cells.append(v4.new_code_cell(dedent(code).strip()))
    for number, cell in enumerate(cells):
        cell["id"] = f"c{number}"  # the same file each time
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    nbformat.write(notebook(), FILE)

"""Models of outputs with classes, built, trained and read in one way, of one piece or many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from scant.deadline import NEVER, Deadline
from scant.kernels.patch.kernel import PatchKernel
from scant.models.mogp_ar import baselines as mogp_baselines
from scant.models.mogp_ar.baselines import Independent
from scant.models.mogp_ar.kernels import Kernel, RbfArd
from scant.models.mogp_ar.model import MOGPAR
from scant.models.mogp_ar.training import MOGPARTrainer
from scant.studies.omniglot.settings import (
    COVARIANCES,
    PATCH_LENGTHSCALES,
    PATCH_WEIGHTS,
    SCHEDULES,
    OmniglotSettings,
)

Model = MOGPAR | Independent
SINGLE = ("g-m", "g-a")  # a model of each output
SHOT_STEPS = 200  # of a model with fewer examples, whose kernel stays
SHOT_RATE = 0.1
SHOT_ROWS = 400  # held-out rows that it is asked


def kernel_for(
    s: OmniglotSettings,
    name: str,
    x: Float[Tensor, "n v"],
    image: tuple[int, int] | None,
    single: bool,
) -> Any:
    """The kernel by that name, scaled to the rows that are learned from.

    Args:
        s: Settings.
        name: "patch" or "rbf-ard".
        x: Rows to learn from.
        image: Height and width of images; None: there are none.
        single: Of one latent function, for the models of one output.
    """
    n_latent = 1 if single else s.n_latent
    if name == "patch":
        assert image is not None
        return PatchKernel(
            image[1],
            image[0],
            min(s.patch, *image),
            n_latent=n_latent,
            own_weights=s.patch_weights == PATCH_WEIGHTS[0],
            ard=s.patch_lengthscales == PATCH_LENGTHSCALES[0],
        ).to(x)
    return RbfArd(x, n_latent, standardize=image is None)


def build(
    s: OmniglotSettings,
    name: str,
    kernel: Kernel,
    rows: Any,
    output: Int[Tensor, " n"],
    n_classes: Sequence[int],
    generator: torch.Generator,
) -> Model:
    """A model at its starting values.

    Args:
        s: Settings.
        name: One of `scant.studies.omniglot.entry.MODELS`.
        kernel: As `kernel_for` gives it.
        rows: To learn from, as the kernel prepared them.
        output: Of each row.
        n_classes: C_d.
        generator: A CPU generator, which scatters the start.
    """
    made: Model = mogp_baselines.build(
        name,
        kernel,
        rows,
        output,
        n_classes,
        s.n_inducing,
        generator,
        rank=s.rank,
        covariance="kept" if s.covariance == COVARIANCES[0] else "dropped",
        constant=s.class_constants,
    )
    return made


def horizon(s: OmniglotSettings, steps: int) -> int | None:
    """Steps over which the learning rate decays in a fit of so many steps; None: it is constant."""
    return steps if s.learning_rate_schedule == SCHEDULES[0] else None


def pieces(model: Model) -> list[MOGPAR]:
    """The model, or the models of the outputs."""
    return list(model.models) if isinstance(model, Independent) else [model]  # type: ignore[arg-type]


def owner(model: Model, output: int, label: int) -> tuple[MOGPAR, int]:
    """The piece that has a class, and the number of the class in it."""
    own = pieces(model)
    if isinstance(model, Independent):
        return own[output], label
    return own[0], int(own[0].first[output]) + label


@torch.no_grad()
def kl_divergence(model: Model) -> float:
    """KL(q(u) || p(u)) of all pieces, in nats."""
    return float(sum(float(piece.kl_divergence()) for piece in pieces(model)))


@torch.no_grad()
def factors(model: Model, rows: Any) -> Float[Tensor, "q c r"]:
    """A_q of all classes, scaled by the prior deviation of u_q at the rows on average."""
    variance = torch.cat([piece.kernel.diagonal(rows).mean(1) for piece in pieces(model)])
    return model.factors() * variance.sqrt()[:, None, None]


@torch.no_grad()
def means(model: Model, rows: Any) -> Float[Tensor, "n c"]:
    """Posterior means of the functions of all classes of all outputs."""
    results = []
    for piece in pieces(model):
        mean, _ = piece.latent(rows)
        mixing = piece.rows_of_mixing(torch.arange(int(piece.sizes.sum()), device=mean.device))
        results.append(mean.mT @ mixing[:, : len(mean)].mT + mixing[:, len(mean) :].sum(1))
    return torch.cat(results, 1)


@torch.no_grad()
def inducing_patches(model: Model) -> tuple[Float[Tensor, "k e"], Float[Tensor, " k"]]:
    """All inducing patches, and their influence: root mean square weight over the classes."""
    patches, influence = [], []
    for piece in pieces(model):
        mixed = piece.factors().square().mean(1)  # [q, r]
        weight = (piece.solved().square() * mixed.unsqueeze(1)).sum(2).sqrt()
        patches.append(piece.inducing_points.flatten(0, 1))
        influence.append(weight.flatten())
    return torch.cat(patches), torch.cat(influence)


@torch.no_grad()
def response(
    model: Model, x: Float[Tensor, " v"], output: int, label: int
) -> Float[Tensor, "h w"] | None:
    """What each patch of an image adds to the mean of a class's function; None without patches."""
    piece, number = owner(model, output, label)
    kernel = piece.kernel
    if not isinstance(kernel, PatchKernel):
        return None
    maps = kernel.responses(piece.inducing_points, piece.solved(), kernel.prepare(x.unsqueeze(0)))
    return torch.einsum("qr,qrbhw->hw", piece.factors()[:, number], maps)


class Frozen(nn.Module):
    """A kernel whose covariances with all rows were computed once; rows are their numbers."""

    def __init__(self, kernel: Kernel, z: Float[Tensor, "q m e"], rows: Any) -> None:
        super().__init__()
        self._z = z
        with torch.no_grad():
            self._inducing, self._cross = kernel.covariances(z, rows)
            self._diagonal = kernel.diagonal(rows)

    def prepare(self, x: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Numbers of rows, as they are."""
        return x

    def start(self, rows: Int[Tensor, " n"], m: int, generator: torch.Generator) -> Tensor:
        """The inducing points, which stay."""
        return self._z

    def inducing(self, z: Tensor) -> Tensor:
        """Among the inducing points."""
        return self._inducing

    def covariances(self, z: Tensor, rows: Int[Tensor, " b"]) -> tuple[Tensor, Tensor]:
        """Among the inducing points, and between them and rows."""
        return self._inducing, self._cross[..., rows]

    def diagonal(self, rows: Int[Tensor, " b"]) -> Tensor:
        """Variances at the rows."""
        return self._diagonal[:, rows]


def with_fewer(
    model: Model,
    s: OmniglotSettings,
    rows: Any,
    output: Int[Tensor, " n"],
    label: Int[Tensor, " n"],
    n_train: int,
) -> Float[Tensor, "n c"]:
    """Class probabilities of all rows by a model that learns from the first of them anew.

    Kernel and inducing points are the model's, and stay; q(u) and the mixing matrix, which know
    the labels, begin afresh. So covariances are computed once, and a step costs milliseconds.

    Args:
        model: Of which the kernel is taken.
        s: Settings.
        rows: As the model's kernel prepared them.
        output: Of each row.
        label: Of each row.
        n_train: How many rows are learned from.
    """
    result = pieces(model)[0].q_mean.new_zeros(len(output), model.width)
    for at, fresh, own in anew(model, s, rows, output, label, n_train, SHOT_STEPS):
        every = torch.arange(len(at), device=at.device)
        result[at, : fresh.width] = fresh.probabilities(every, own)
    return result


def anew(
    model: Model,
    s: OmniglotSettings,
    rows: Any,
    output: Int[Tensor, " n"],
    label: Int[Tensor, " n"],
    n_train: int,
    steps: int = SHOT_STEPS,
    rate: float = SHOT_RATE,
    deadline: Deadline = NEVER,
) -> Iterator[tuple[Int[Tensor, " k"], MOGPAR, Int[Tensor, " k"]]]:
    """The piece, or the pieces of outputs that have rows besides, trained as in `with_fewer`.

    Args:
        model, s, rows, output, label, n_train: As there.
        steps: Of training.
        rate: Of its steps, at the beginning.
        deadline: Of training.

    Yields:
        The rows that a piece is of, the piece, which knows these rows by their numbers among
        themselves, and the output in the piece of each.
    """
    if not isinstance(model, Independent):
        at = torch.arange(len(output), device=output.device)
        fresh = _afresh(model, s, rows, output, label, n_train, steps, rate, deadline)
        yield at, fresh, output
        return
    for d, piece in enumerate(pieces(model)):
        at = (output == d).nonzero().squeeze(1)
        if int((at >= n_train).sum()):
            zero = torch.zeros_like(at)
            count = int((at < n_train).sum())
            own = _afresh(piece, s, rows[at], zero, label[at], count, steps, rate, deadline)
            yield at, own, zero


def _afresh(
    model: MOGPAR,
    s: OmniglotSettings,
    rows: Any,
    output: Tensor,
    label: Tensor,
    n_train: int,
    steps: int,
    rate: float,
    deadline: Deadline,
) -> MOGPAR:
    generator = torch.Generator().manual_seed(s.seed)
    z = model.inducing_points.detach()
    fresh = type(model)(
        Frozen(model.kernel, z, rows),
        z,
        model.sizes.tolist(),
        generator,
        rank=model.rank,
        covariance=model.covariance,
        constant=model.constant,
    )
    fresh.inducing_points.requires_grad_(False)
    at = torch.arange(len(output), device=output.device)
    trainer = MOGPARTrainer(
        fresh,
        at[:n_train],
        output[:n_train],
        label[:n_train],
        generator,
        batch=s.batch_size,
        sampled=s.sampled_classes,
        rate=rate,
        horizon=steps,
    )
    for _ in deadline.units(range(steps), "steps of the model for the temperature"):
        trainer.step()
    return fresh

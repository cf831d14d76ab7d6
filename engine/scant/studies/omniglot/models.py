"""Common interface to models of outputs with classes, of one piece or one for each output."""

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
SINGLE = ("g-m", "g-a")  # one model for each output
SHOT_STEPS = 200  # of a model with fewer examples and the same kernel
SHOT_RATE = 0.1
SHOT_ROWS = 400  # held-out rows that it predicts


def kernel_for(
    s: OmniglotSettings,
    name: str,
    x: Float[Tensor, "n v"],
    image: tuple[int, int] | None,
    single: bool,
) -> Any:
    """Kernel by name, scaled to the training rows.

    Args:
        s: Settings.
        name: "patch" or "rbf-ard".
        x: Training rows.
        image: Height and width of images; None: there are none.
        single: Whether it has one latent function, for models of one output.
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
    """Model with initial values.

    Args:
        s: Settings.
        name: One of `scant.studies.omniglot.entry.MODELS`.
        kernel: Kernel from `kernel_for`.
        rows: Training rows, prepared by the kernel.
        output: Output of each row.
        n_classes: Numbers of classes C_d.
        generator: CPU generator of the initial values.
    """
    model: Model = mogp_baselines.build(
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
    return model


def horizon(s: OmniglotSettings, steps: int) -> int | None:
    """Steps over which the learning rate decays in a fit of `steps`; None: it is constant."""
    return steps if s.learning_rate_schedule == SCHEDULES[0] else None


def pieces(model: Model) -> list[MOGPAR]:
    """List of the model, or of the models of the outputs."""
    return list(model.models) if isinstance(model, Independent) else [model]  # type: ignore[arg-type]


def owner(model: Model, output: int, label: int) -> tuple[MOGPAR, int]:
    """The piece with a class, and the number of the class in it."""
    parts = pieces(model)
    if isinstance(model, Independent):
        return parts[output], label
    return parts[0], int(parts[0].first[output]) + label


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
    """Part of each patch of an image in the mean of a class's function; None without patches."""
    piece, number = owner(model, output, label)
    kernel = piece.kernel
    if not isinstance(kernel, PatchKernel):
        return None
    maps = kernel.responses(piece.inducing_points, piece.solved(), kernel.prepare(x.unsqueeze(0)))
    return torch.einsum("qr,qrbhw->hw", piece.factors()[:, number], maps)


class Frozen(nn.Module):
    """A kernel with stored covariances of all rows; rows are given by their indices."""

    def __init__(self, kernel: Kernel, z: Float[Tensor, "q m e"], rows: Any) -> None:
        super().__init__()
        self._z = z
        with torch.no_grad():
            self._inducing, self._cross = kernel.covariances(z, rows)
            self._diagonal = kernel.diagonal(rows)

    def prepare(self, x: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Return indices of rows unchanged."""
        return x

    def start(self, rows: Int[Tensor, " n"], m: int, generator: torch.Generator) -> Tensor:
        """The fixed inducing points."""
        return self._z

    def inducing(self, z: Tensor) -> Tensor:
        """Covariances among the inducing points."""
        return self._inducing

    def covariances(self, z: Tensor, rows: Int[Tensor, " b"]) -> tuple[Tensor, Tensor]:
        """Covariances among the inducing points, and between them and rows."""
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
    """Class probabilities of all rows by a model retrained on the first `n_train` rows.

    Kernel and inducing points of the model stay; q(u) and the mixing matrix, which depend on the
    labels, are retrained. Covariances are thus computed once, and a step takes milliseconds.

    Args:
        model: Model with the kernel.
        s: Settings.
        rows: Rows, prepared by the model's kernel.
        output: Output of each row.
        label: Label of each row.
        n_train: Number of training rows.
    """
    result = pieces(model)[0].q_mean.new_zeros(len(output), model.width)
    for at, retrained, output_in_piece in anew(model, s, rows, output, label, n_train, SHOT_STEPS):
        index = torch.arange(len(at), device=at.device)
        result[at, : retrained.width] = retrained.probabilities(index, output_in_piece)
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
    """Retrain the piece, or the pieces of outputs that have further rows, as in `with_fewer`.

    Args:
        model, s, rows, output, label, n_train: See `with_fewer`.
        steps: Number of training steps.
        rate: Initial learning rate.
        deadline: Deadline of training.

    Yields:
        Indices of the rows of a piece, the piece, which takes indices among these rows, and their
        outputs in the piece.
    """
    if not isinstance(model, Independent):
        at = torch.arange(len(output), device=output.device)
        retrained = _retrained(model, s, rows, output, label, n_train, steps, rate, deadline)
        yield at, retrained, output
        return
    for d, piece in enumerate(pieces(model)):
        at = (output == d).nonzero().squeeze(1)
        if int((at >= n_train).sum()):
            zero = torch.zeros_like(at)
            count = int((at < n_train).sum())
            retrained_piece = _retrained(
                piece, s, rows[at], zero, label[at], count, steps, rate, deadline
            )
            yield at, retrained_piece, zero


def _retrained(
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
    retrained = type(model)(
        Frozen(model.kernel, z, rows),
        z,
        model.sizes.tolist(),
        generator,
        rank=model.rank,
        covariance=model.covariance,
        constant=model.constant,
    )
    retrained.inducing_points.requires_grad_(False)
    at = torch.arange(len(output), device=output.device)
    trainer = MOGPARTrainer(
        retrained,
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
    return retrained

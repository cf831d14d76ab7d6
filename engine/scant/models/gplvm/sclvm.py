"""SCLVM: a GP latent variable model with shared and class-private latent dimensions.

The structure consolidation latent variable model of Yousefi (2021), section 3.2: a Bayesian GPLVM
(`bgplvm`) with a kernel over (position, class) (`scant.kernels.shared_private`) and inducing inputs
for each class. A class with few rows keeps its private space and inducing inputs, and shares the
common structure with the other classes.

    model = SCLVM.build(Y, label, 2, generator=generator)
    trainer = GPLVMTrainer(model)              # scant.models.gplvm.training
    elbo = trainer.step()                        # repeat
    model.probabilities(Y_new)

Class probabilities follow from Bayes' rule over the bounds of a new row under each class (`infer`).
The bounds sum over all outputs, assumed independent given the position. For dependent outputs
(pixels) the probabilities are overconfident, and `calibrate` fits a temperature on held-out rows.
Better still, represent images by few leading principal components, not whitened: the residual of an
image carries no information on the class, but dominates the sum over pixels.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.errors import BadInput
from scant.inference.kmeans import kmeans_centres
from scant.kernels.shared_private import ClassPrivateKernel
from scant.models.gplvm.bgplvm import BGPLVM, check, principal
from scant.models.gplvm.collapsed_bound import Targets

TEMPERATURES = torch.logspace(-1, 4, 501, dtype=torch.float64)


class SCLVM(BGPLVM):
    """Structure consolidation latent variable model; construct it with `build`."""

    temperature: Tensor

    @classmethod
    def build(  # type: ignore[override]
        cls,
        Y: Float[Tensor, "n d"],
        label: Int[Tensor, " n"],
        n_classes: int,
        shared: int = 5,
        private: int = 5,
        inducing: int = 50,
        generator: torch.Generator | None = None,
        rank: int | None = None,
    ) -> SCLVM:
        """Build a model initialized with principal components of all rows and of the residuals.

        Args:
            Y: Outputs, NaN where missing.
            label: Class of each row, 0 ... n_classes - 1; every class has a row.
            n_classes: Number of classes.
            shared: Number of shared latent dimensions.
            private: Number of private latent dimensions of each class.
            inducing: Number of inducing inputs of each class, initialized by k-means.
            generator: A CPU generator; by default one with seed 0.
            rank: See `Targets.from_outputs`.

        Raises:
            BadInput: A class without rows, labels outside, a number below one.
        """
        check(Y, {"class": n_classes, "inducing input of each class": inducing})
        _check_labels(label, n_classes, len(Y))
        generator = generator or torch.Generator().manual_seed(0)
        kernel = ClassPrivateKernel(shared, private, n_classes)
        targets = Targets.from_outputs(Y.double(), rank)
        mean, noise = start(targets, label, kernel)
        Z = [kmeans_centres(mean[label == c], inducing, generator) for c in range(n_classes)]
        inducing_label = torch.arange(n_classes).repeat_interleave(inducing)
        model = cls(targets, kernel, mean, label.clone(), torch.cat(Z), inducing_label, noise)
        model.register_buffer("temperature", torch.ones((), dtype=torch.float64))
        return model

    def class_log_evidence(
        self, Y: Float[Tensor, "k d"], restarts: int = 2, steps: int = 50
    ) -> Float[Tensor, "k c"]:
        """Lower bound on ln p(y* | c) of each row and class, in nats (see `BGPLVM.infer`)."""
        classes = range(self.kernel.n_classes)
        return torch.stack([self.infer(Y, restarts, steps, c).bound for c in classes], dim=1)

    def prior(self) -> Float[Tensor, " c"]:
        """Class frequencies of the training rows."""
        return torch.bincount(self.label, minlength=self.kernel.n_classes) / float(len(self.label))

    def probabilities(
        self, Y: Float[Tensor, "k d"], prior: Float[Tensor, " c"] | None = None
    ) -> Float[Tensor, "k c"]:
        """p(c | y*) of new rows.

        Args:
            Y: Outputs, NaN where missing.
            prior: Class probabilities; by default the training frequencies.
        """
        return self.class_posterior(self.class_log_evidence(Y), prior)

    def class_posterior(
        self, evidence: Float[Tensor, "k c"], prior: Float[Tensor, " c"] | None = None
    ) -> Float[Tensor, "k c"]:
        """p(c | y*) by Bayes' rule from `class_log_evidence`, with the calibrated temperature.

        Raises:
            BadInput: The prior has the wrong length, negative entries or a zero sum.
        """
        prior = self.prior() if prior is None else prior.double()
        if prior.shape != (evidence.shape[1],) or bool((prior < 0).any()) or not prior.sum() > 0:
            raise BadInput(
                f"The prior must have a share, zero or more, for each of {evidence.shape[1]}"
                f" classes, got {prior.tolist()}."
            )
        logits = evidence / self.temperature + (prior / prior.sum()).log().to(evidence)
        return logits.softmax(1)

    @torch.no_grad()
    def calibrate(
        self, evidence: Float[Tensor, "k c"], label: Int[Tensor, " k"]
    ) -> Float[Tensor, ""]:
        """Set and return the temperature that maximizes the likelihood of held-out classes.

        Args:
            evidence: `class_log_evidence` of held-out rows.
            label: Classes of these rows.
        """
        _check_labels(label, evidence.shape[1], len(evidence), every=False)
        prior = torch.bincount(label, minlength=evidence.shape[1]).clamp(min=1).double()
        tempered = evidence / TEMPERATURES.to(evidence)[:, None, None] + prior.log().to(evidence)
        log_likelihood = tempered.log_softmax(2)[:, torch.arange(len(label)), label].sum(1)
        self.temperature.copy_(TEMPERATURES[int(log_likelihood.argmax())])
        return self.temperature.clone()

    @torch.no_grad()
    def generate(self, label: int, k: int, generator: torch.Generator) -> Float[Tensor, "k d"]:
        """Generate new rows of a class by decoding latent positions sampled from its rows.

        The spaces are independent a priori: the shared position is sampled from q(X) of one row of
        the class, the private position from that of another.

        Raises:
            BadInput: The class has no rows.
        """
        same_class = (self.label == label).nonzero().squeeze(1)
        if not len(same_class):
            raise BadInput(f"No row of class {label} was learned from.")
        pick = torch.randint(len(same_class), (2, k), generator=generator).to(same_class.device)
        noise = torch.randn(k, self.mean.shape[1], generator=generator, dtype=torch.float64)
        draws = self.mean[same_class[pick]] + self.log_std[same_class[pick]].exp() * noise.to(
            self.mean
        )
        shared = self.kernel.split[0]
        return self.decode(torch.cat([draws[0, :, :shared], draws[1, :, shared:]], 1), None, label)[
            0
        ]

    @torch.no_grad()
    def covariances(
        self, rows: Int[Tensor, " k"] | None = None
    ) -> tuple[Float[Tensor, "k k"], Float[Tensor, "k k"], Float[Tensor, "k k"]]:
        """Shared and private parts of the kernel matrix at the means of q(X), and their sum.

        See Fig. 3.4.

        Args:
            rows: Row indices; default all (n^2 elements each).
        """
        rows = torch.arange(len(self.label)) if rows is None else rows
        at = self.mean[rows], self.label[rows]
        shared, private = self.kernel.parts(*at, *at)
        return shared, private, shared + private


def start(
    targets: Targets, label: Int[Tensor, " n"], kernel: ClassPrivateKernel
) -> tuple[Float[Tensor, "n q"], float]:
    """Initial positions, and the unexplained share of the variance."""
    shared, private = kernel.split
    y = targets.y
    shared_scores, _ = principal(y, shared, targets.squares)
    residual = y - shared_scores @ (shared_scores.T @ y) / len(y)
    private_scores = y.new_zeros(len(y), private)
    explained = (y.square().sum() - residual.square().sum()) / targets.squares
    for c in range(kernel.n_classes if private else 0):
        rows = label == c
        private_scores[rows], _ = principal(residual[rows], private, targets.squares)
        fitted = private_scores[rows] @ (private_scores[rows].T @ residual[rows]) / rows.sum()
        explained = explained + fitted.square().sum() / targets.squares
    return torch.cat([shared_scores, private_scores], 1), min(max(1 - float(explained), 0.01), 0.99)


def _check_labels(label: Tensor, n_classes: int, rows: int, every: bool = True) -> None:
    if len(label) != rows:
        raise BadInput(f"There must be a label for each of {rows} rows, got {len(label)}.")
    if not len(label) or int(label.min()) < 0 or int(label.max()) >= n_classes:
        raise BadInput(f"Labels must be whole numbers from 0 to {n_classes - 1}, one for each row.")
    without = set(range(n_classes)) - set(label.tolist())
    if every and without:
        raise BadInput(f"Class {min(without)} has no rows; leave it out or add some.")

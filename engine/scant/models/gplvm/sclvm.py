"""SCLVM: a latent space that classes share, and one that each has to itself.

The structure consolidation latent variable model of Yousefi (2021), section 3.2: a Bayesian GPLVM
(`bgplvm`) whose kernel (`scant.kernels.shared_private`) is over (position, class), with inducing
inputs that belong to classes. However few its rows, a class keeps its private space and its
inducing inputs; what it has in common with others it learns from theirs. Of any number of classes.

    model = SCLVM.build(Y, label, 2, generator=generator)
    trainer = GPLVMTrainer(model)              # scant.models.gplvm.training
    elbo = trainer.step()                        # as often as wanted
    model.probabilities(Y_new)

The posterior of a class follows from Bayes' rule over the bounds of a new row under each class
(`infer`). They are sums over all outputs, which the model takes to be independent given the
position; where they are not (pixels), the probabilities are too sure of themselves, and
`calibrate` finds on rows not learned from by how much to temper them. Better still are few outputs:
give images as their leading principal components, not whitened. What is left out of an image tells
no class, but a class of few rows is less sure of it, and a sum over pixels is mostly that.
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
    """See the module; made by `build`."""

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
        """A model that starts from principal components: of all rows, and of what they leave.

        Args:
            Y: Outputs, NaN where missing.
            label: Class of each row, 0 ... n_classes - 1; every class has a row.
            n_classes: How many.
            shared: Dimensions of the space of all classes.
            private: Dimensions of the space of each.
            inducing: Inducing inputs of each class, by k-means among its rows.
            generator: A CPU generator; by default one of seed 0.
            rank: See `Targets.of`.

        Raises:
            BadInput: A class without rows, labels outside, a number below one.
        """
        check(Y, {"class": n_classes, "inducing input of each class": inducing})
        _check_labels(label, n_classes, len(Y))
        generator = generator or torch.Generator().manual_seed(0)
        kernel = ClassPrivateKernel(shared, private, n_classes)
        targets = Targets.of(Y.double(), rank)
        mean, noise = start(targets, label, kernel)
        Z = [kmeans_centres(mean[label == c], inducing, generator) for c in range(n_classes)]
        of_class = torch.arange(n_classes).repeat_interleave(inducing)
        model = cls(targets, kernel, mean, label.clone(), torch.cat(Z), of_class, noise)
        model.register_buffer("temperature", torch.ones((), dtype=torch.float64))
        return model

    def class_log_evidence(
        self, Y: Float[Tensor, "k d"], restarts: int = 2, steps: int = 50
    ) -> Float[Tensor, "k c"]:
        """The bound on ln p(y* | c) of each row under each class; see `BGPLVM.infer`."""
        classes = range(self.kernel.n_classes)
        return torch.stack([self.infer(Y, restarts, steps, c).bound for c in classes], dim=1)

    def prior(self) -> Float[Tensor, " c"]:
        """Shares of the classes among the rows learned from."""
        return torch.bincount(self.label, minlength=self.kernel.n_classes) / float(len(self.label))

    def probabilities(
        self, Y: Float[Tensor, "k d"], prior: Float[Tensor, " c"] | None = None
    ) -> Float[Tensor, "k c"]:
        """p(c | y*) of new rows.

        Args:
            Y: Outputs, NaN where missing.
            prior: Of the classes; by default their shares among the rows learned from.
        """
        return self.class_posterior(self.class_log_evidence(Y), prior)

    def class_posterior(
        self, evidence: Float[Tensor, "k c"], prior: Float[Tensor, " c"] | None = None
    ) -> Float[Tensor, "k c"]:
        """Bayes' rule over what `class_log_evidence` found, tempered as `calibrate` found best.

        Raises:
            BadInput: A prior of another length, or that is no prior.
        """
        prior = self.prior() if prior is None else prior.double()
        if prior.shape != (evidence.shape[1],) or bool((prior < 0).any()) or not prior.sum() > 0:
            raise BadInput(
                f"The prior must have a share, zero or more, for each of {evidence.shape[1]}"
                f" classes, got {prior.tolist()}."
            )
        odds = evidence / self.temperature + (prior / prior.sum()).log().to(evidence)
        return odds.softmax(1)

    @torch.no_grad()
    def calibrate(
        self, evidence: Float[Tensor, "k c"], label: Int[Tensor, " k"]
    ) -> Float[Tensor, ""]:
        """Take the temperature under which these classes are likeliest, and return it.

        Args:
            evidence: `class_log_evidence` of rows that were not learned from.
            label: Their classes.
        """
        _check_labels(label, evidence.shape[1], len(evidence), every=False)
        prior = torch.bincount(label, minlength=evidence.shape[1]).clamp(min=1).double()
        tempered = evidence / TEMPERATURES.to(evidence)[:, None, None] + prior.log().to(evidence)
        right = tempered.log_softmax(2)[:, torch.arange(len(label)), label].sum(1)
        self.temperature.copy_(TEMPERATURES[int(right.argmax())])
        return self.temperature.clone()

    @torch.no_grad()
    def generate(self, label: int, k: int, generator: torch.Generator) -> Float[Tensor, "k d"]:
        """New rows of a class: decoded draws from where its rows lie.

        The spaces are independent a priori, so that the shared position is that of one row of the
        class and the private one that of another, both drawn from q(X).

        Raises:
            BadInput: A class without rows.
        """
        own = (self.label == label).nonzero().squeeze(1)
        if not len(own):
            raise BadInput(f"No row of class {label} was learned from.")
        pick = torch.randint(len(own), (2, k), generator=generator).to(own.device)
        noise = torch.randn(k, self.mean.shape[1], generator=generator, dtype=torch.float64)
        draws = self.mean[own[pick]] + self.log_std[own[pick]].exp() * noise.to(self.mean)
        shared = self.kernel.split[0]
        return self.decode(torch.cat([draws[0, :, :shared], draws[1, :, shared:]], 1), None, label)[
            0
        ]

    @torch.no_grad()
    def covariances(
        self, rows: Int[Tensor, " k"] | None = None
    ) -> tuple[Float[Tensor, "k k"], Float[Tensor, "k k"], Float[Tensor, "k k"]]:
        """The shared and private parts of k at the means of q(X), and their sum (Fig. 3.4).

        Args:
            rows: Which, all by default (n^2 numbers each).
        """
        rows = torch.arange(len(self.label)) if rows is None else rows
        at = self.mean[rows], self.label[rows]
        shared, private = self.kernel.parts(*at, *at)
        return shared, private, shared + private


def start(
    targets: Targets, label: Int[Tensor, " n"], kernel: ClassPrivateKernel
) -> tuple[Float[Tensor, "n q"], float]:
    """Positions to start from, and the share of variance that they do not explain."""
    shared, private = kernel.split
    y = targets.y
    common, _ = principal(y, shared, targets.squares)
    left = y - common @ (common.T @ y) / len(y)
    own = y.new_zeros(len(y), private)
    explained = (y.square().sum() - left.square().sum()) / targets.squares
    for c in range(kernel.n_classes if private else 0):
        rows = label == c
        own[rows], _ = principal(left[rows], private, targets.squares)
        fitted = own[rows] @ (own[rows].T @ left[rows]) / rows.sum()
        explained = explained + fitted.square().sum() / targets.squares
    return torch.cat([common, own], 1), min(max(1 - float(explained), 0.01), 0.99)


def _check_labels(label: Tensor, n_classes: int, rows: int, every: bool = True) -> None:
    if len(label) != rows:
        raise BadInput(f"There must be a label for each of {rows} rows, got {len(label)}.")
    if not len(label) or int(label.min()) < 0 or int(label.max()) >= n_classes:
        raise BadInput(f"Labels must be whole numbers from 0 to {n_classes - 1}, one for each row.")
    without = set(range(n_classes)) - set(label.tolist())
    if every and without:
        raise BadInput(f"Class {min(without)} has no rows; leave it out or add some.")

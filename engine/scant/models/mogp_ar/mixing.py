"""Coregionalization matrices of the classes of all outputs (Ma 2023, 3.7)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Coregionalised:
    """Mixin for models whose class functions mix latent ones; `sizes` are the outputs' C_d."""

    sizes: Tensor

    def factors(self) -> Float[Tensor, "q c r"]:
        """A_q of each kernel: B_q = A_q A_q' (3.7)."""
        raise NotImplementedError

    def coregionalization(self, classes: Int[Tensor, " c"] | None = None) -> Float[Tensor, "q c c"]:
        """B_q between classes numbered over all outputs; by default all classes."""
        A = self.factors() if classes is None else self.factors()[:, classes]
        return A @ A.mT  # (3.7)

    def global_matrix(self) -> Float[Tensor, "d d"]:
        """Global absolute coregionalization matrix of the outputs (3.42-3.43).

        The matrices of all classes are computed one at a time, to bound memory.
        """
        outputs = torch.arange(len(self.sizes), device=self.sizes.device)
        owner, A = outputs.repeat_interleave(self.sizes), self.factors()
        mean = (owner == outputs.unsqueeze(1)).to(A) / self.sizes.unsqueeze(1)
        # (3.42-3.43)
        return torch.stack([mean @ (a @ a.mT).abs() @ mean.mT for a in A]).mean(0)

"""L-BFGS one step at a time, with each evaluation used once and a serializable state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress

import torch
from jaxtyping import Float
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

LINE_SEARCH_EVALUATIONS = 25
HISTORY = ("old_dirs", "old_stps", "ro")  # of a state, without which steps go on otherwise
SCALARS = ("t", "H_diag", "prev_loss", "n_iter", "func_evals")


class LBFGS:
    """Steps of `torch.optim.LBFGS` with strong Wolfe line searches.

    torch evaluates the objective again at the start of each step, where the last line search has
    just been; the closure here remembers what it saw, so that a step costs its line search alone.
    A value that is not finite, or a matrix without a factor on the way to it, counts as a high
    wall, from which the line search turns back.

        optimizer = LBFGS(model.parameters(), lambda: model.objective(X, y))
        while not optimizer.stalled:
            value = optimizer.step()

    Args:
        parameters: All on one device and of one dtype.
        objective: Computes the value to be minimized at the parameters' present values.
        history: Number of past steps that shape the inverse Hessian.
        scale: Gradients and line searches are of the objective divided by it, the number of rows
            say; `step` returns the objective itself.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        objective: Callable[[], Float[Tensor, ""]],
        history: int = 20,
        scale: float = 1.0,
    ) -> None:
        self.parameters = list(parameters)
        self.objective = objective
        self.history, self.scale = history, scale
        self.evaluations = 0
        self.idle = 0  # steps in a row that went nowhere
        self._seen: list[tuple[Tensor, float, Tensor]] = []
        self._inner = self._fresh()

    def _fresh(self) -> torch.optim.LBFGS:
        return torch.optim.LBFGS(
            self.parameters,
            max_iter=1,
            max_eval=LINE_SEARCH_EVALUATIONS + 1,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            history_size=self.history,
            line_search_fn="strong_wolfe",
        )

    @property
    def stalled(self) -> bool:
        """Whether even steepest descent finds no lower point: a minimum, as far as can be told."""
        return self.idle >= 2

    def step(self) -> float:
        """Move to a lower point and return the objective there; NaN where it is not finite.

        A step that goes nowhere drops the history, so that the next one is steepest descent.
        """
        before, value, gradient = self._evaluate()
        if not math.isfinite(value):
            return math.nan
        self._inner.step(lambda: self._closure(value / self.scale))
        after, value, gradient = self._evaluate()
        self._seen = [(after, value, gradient)]
        if torch.equal(before, after):
            self.idle += 1
            self._inner = self._fresh()
        else:
            self.idle = 0
        return value

    def _vector(self) -> Tensor:
        return parameters_to_vector([p.detach() for p in self.parameters])

    def _evaluate(self) -> tuple[Tensor, float, Tensor]:
        """Parameters, value and gradient at this very point, computed once."""
        here = self._vector()
        for seen in reversed(self._seen):
            if torch.equal(seen[0], here):
                return seen
        for p in self.parameters:
            p.grad = None
        loss = math.nan
        with torch.enable_grad(), suppress(NanError, NotPSDError, torch.linalg.LinAlgError):
            value = self.objective()
            (value / self.scale).backward()  # type: ignore[no-untyped-call]
            loss = value.item()
        gradient = torch.cat(
            [
                torch.zeros_like(p).ravel() if p.grad is None else p.grad.ravel()
                for p in self.parameters
            ]
        )
        self.evaluations += 1
        if not bool(torch.isfinite(gradient).all()):
            loss = math.nan
        self._seen.append((here, loss, gradient))
        return self._seen[-1]

    def _closure(self, start: float) -> Tensor:
        _, value, gradient = self._evaluate()
        value /= self.scale
        if not math.isfinite(value):
            value, gradient = start + 1e6 * (1 + abs(start)), torch.zeros_like(gradient)
        for p in self.parameters:
            p.grad = torch.empty_like(p)
        vector_to_parameters(gradient.clone(), [p.grad for p in self.parameters])  # type: ignore[misc]
        return torch.tensor(value, dtype=torch.float64)

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next step depends on besides the parameters, as tensors.

        A run that loads it, and the parameters, goes on bit by bit where the first would have.
        """
        inner = self._inner.state[self.parameters[0]]
        state = {
            "counts": torch.tensor([self.evaluations, self.idle], dtype=torch.int64),
        }
        if self._seen:
            point, value, gradient = self._seen[-1]
            state |= {"point": point, "value": torch.tensor(value, dtype=torch.float64)}
            state["gradient"] = gradient
        if inner.get("d") is None:
            return {k: v.clone() for k, v in state.items()}
        for name in SCALARS:
            state[name] = torch.as_tensor(inner[name], dtype=torch.float64)
        state |= {"d": inner["d"], "prev_flat_grad": inner["prev_flat_grad"]}
        if inner["old_dirs"]:
            for name in HISTORY:
                state[name] = torch.stack([torch.as_tensor(v) for v in inner[name]])
        return {k: v.detach().clone() for k, v in state.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take up the state of another run; load the parameters besides."""
        device = self.parameters[0].device
        state = {k: v.clone().to(device) for k, v in state.items()}
        self.evaluations, self.idle = (int(v) for v in state["counts"])
        self._seen = []
        if "point" in state:
            self._seen = [(state["point"], state["value"].item(), state["gradient"])]
        self._inner = self._fresh()
        if "d" not in state:
            return
        inner = self._inner.state[self.parameters[0]]
        for name in HISTORY:
            inner[name] = list(state[name]) if name in state else []
        inner |= {"d": state["d"], "prev_flat_grad": state["prev_flat_grad"]}
        inner |= {k: state[k].item() for k in ("t", "prev_loss")}
        inner |= {k: int(state[k]) for k in ("n_iter", "func_evals")}
        inner["H_diag"] = state["H_diag"].to(state["d"].dtype)

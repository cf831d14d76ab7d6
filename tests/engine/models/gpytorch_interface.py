"""What holds of every model that has GPyTorch's interface."""

import torch
from gpytorch import Module


def check_constraints(model, free=()):
    """All parameters that are held as logarithms have a constraint, and none of it is state.

    Args:
        free: Names that end another way, and are bound to no sign.
    """
    assert isinstance(model, Module)
    constrained = {
        name: bound for name, _, bound in model.named_parameters_and_constraints() if bound
    }
    positive = {
        name
        for name, _ in model.named_parameters()
        if name.split(".")[-1].startswith("log_") and name not in free
    }
    assert positive <= set(constrained)
    assert not any("log_" in key and "_constraint" in key for key in model.state_dict())
    for name in positive:
        parameter = model.get_parameter(name)
        torch.testing.assert_close(constrained[name].transform(parameter), parameter.exp())


def check_gradients(model, value):
    """The objective is finite, and moves every parameter that is learned."""
    assert bool(torch.isfinite(value))
    value.backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert bool(torch.isfinite(parameter.grad).all()), name

"""A device that computes on the processor and mixes with it no more than a GPU would.

    with pretended():
        x = torch.zeros(3, device=DEVICE)
        x + torch.zeros(3)  # RuntimeError, as on CUDA

Tensors on it carry their values, so that data-dependent steps run, which PyTorch's own
`FakeTensorMode` cannot do; and its "cuda" has no backward pass in a build without CUDA. It goes by
the name "meta", the one device other than the processor that every build can differentiate on.

What CUDA allows is allowed: a number (a tensor without axes) of the processor in arithmetic,
indices of the processor, copies. A mixture beyond that and a generator of the processor for numbers
of the device raise a RuntimeError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("meta")
CPU = torch.device("cpu")
aten = torch.ops.aten
COPIES = {aten.copy_.default, aten._to_copy.default}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
INDEXED |= {aten._index_put_impl_.default, aten._unsafe_index.Tensor}
MADE_EMPTY = {aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default}
MADE_EMPTY |= {aten.new_empty.default, aten.new_empty_strided.default}
WHOLE = {aten.cat.default, aten.stack.default}  # of one device, numbers too
MADE_FROM_DATA = {torch.tensor, torch.as_tensor, torch.asarray}


class Pretended(Tensor):
    """A tensor on `DEVICE`; `held` has its values, on the processor."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Pretended:
        made = Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), dtype=held.dtype, device=DEVICE
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(op, args, kwargs or {})


def _is_there(device: Any) -> bool:
    return device is not None and torch.device(device).type == DEVICE.type


def _held(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_held, value))
    return value.held if isinstance(value, Pretended) else value


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _computed(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The operation on the values, its results where a GPU would have them."""
    given = list(_tensors((*args, *kwargs.values())))
    ours = {id(v.held): v for v in given if isinstance(v, Pretended)}
    theirs = [v for v in given if not isinstance(v, Pretended)]
    asked = kwargs.get("device")
    there = _is_there(asked) if asked is not None else bool(ours)
    if ours and theirs and op not in COPIES:
        _refuse_mixture(op, args, theirs)
    if there and isinstance(kwargs.get("generator"), torch.Generator):
        raise RuntimeError(f"{op}: a generator of the processor for numbers of {DEVICE}")
    if asked is not None:
        kwargs = {**kwargs, "device": CPU}
    out = op(*map(_held, args), **{k: _held(v) for k, v in kwargs.items()})
    if op is aten.copy_.default:
        return args[0]
    if torch.Tag.inplace_view in op.tags and isinstance(args[0], Pretended):
        with no_dispatch():  # a shape changed in place, as by squeeze_, is the wrapper's, too
            op(*args, **kwargs)
    if op in MADE_EMPTY and out.is_floating_point():
        out.fill_(float("nan"))  # what nobody writes is seen each time, not by chance
    if not there:
        return out

    def put(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(put, value))
        if not isinstance(value, Tensor):
            return value
        return ours[id(value)] if id(value) in ours else Pretended(value)

    return put(out)


def _refuse_mixture(op: Any, args: Any, theirs: list[Tensor]) -> None:
    if op in INDEXED:
        at = {id(v) for v in args[1] if v is not None}
        theirs = [v for v in theirs if id(v) not in at]
    written = op._schema.is_mutable and not isinstance(args[0], Pretended)
    if any(v.dim() for v in theirs) or (theirs and (op in WHOLE or written)):
        shapes = [tuple(v.shape) for v in theirs]
        raise RuntimeError(f"{op} mixes tensors of {DEVICE} with {shapes} of the processor")


class _Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(op, args, kwargs or {})


def _as_indices(at: Any) -> Any:
    if isinstance(at, tuple):
        return tuple(map(_as_indices, at))
    return torch.as_tensor(at) if isinstance(at, list | np.ndarray) else at


class _Functions(TorchFunctionMode):
    """What PyTorch does by itself, below the dispatcher."""

    def __torch_function__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if f in MADE_FROM_DATA and _is_there(kwargs.get("device")):
            device = kwargs.pop("device")
            return f(*args, **kwargs).to(device)
        if f is Tensor.new_tensor and isinstance(args[0], Pretended):
            return f(args[0].held, *args[1:], **kwargs).to(DEVICE)
        if f is Tensor.tolist and isinstance(args[0], Pretended):
            return args[0].held.tolist()
        if f in (Tensor.__getitem__, Tensor.__setitem__):
            args = (args[0], _as_indices(args[1]), *args[2:])
        if f == Tensor.data.__set__ and isinstance(args[0], Pretended):
            args[0].held = _held(args[1])
            return None
        if f in (Tensor.untyped_storage, Tensor.data_ptr):
            return f(_held(args[0]))
        return f(*args, **kwargs)


@contextmanager
def pretended() -> Iterator[torch.device]:
    """Within it tensors can be on `DEVICE`."""
    fused = mock.patch(
        "torch.optim.optimizer._get_fused_kernels_supported_devices",
        return_value=[DEVICE.type, "cpu"],
    )
    with fused, _Dispatch(), _Functions():
        yield DEVICE

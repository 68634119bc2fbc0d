"""Calls of PyTorch's operators: what a call passes, and which calls armpy is proved to compute.

Notes
-----
``proved_operators.json`` is made by ``lab/prove_torch_operators.py``, which compares armpy with
PyTorch on PyTorch's own samples. For each operator and each combination of types it has the
features of arguments with which no sample differs.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves

Features: TypeAlias = "frozenset[str]"

_UNRELATED = frozenset(
    {"device", "generator", "layout", "memory_format", "non_blocking", "pin_memory"}
)
"""Parameters that no value depends on."""


class Signature(NamedTuple):
    """What armpy's right to compute a call depends on."""

    operator: str  # with its overload: aten.add.Tensor
    types: str  # of the tensors, each once, in the order of the arguments
    features: Features  # kinds of the arguments: "dim=-", "keepdim=True", "bias=None"


class OperatorCall(NamedTuple):
    """An operator and what it is called with: tensors, or stand-ins of them."""

    target: Any  # torch._ops.OpOverload
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    # Which of several results are read; None if there is one tensor, or a list of any length.
    reads: tuple[int, ...] | None = None

    @classmethod
    def of(cls, node: Node, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> OperatorCall:
        """The call that a node of a graph is, with values of its arguments."""
        if len(node.target._schema.returns) < 2:
            return cls(node.target, args, kwargs)
        is_item = [user.target is operator.getitem for user in node.users]
        everything = range(len(node.target._schema.returns))
        reads = {user.args[1] for user in node.users} if all(is_item) else everything
        return cls(node.target, args, kwargs, tuple(sorted(reads)))

    @property
    def result(self) -> Any:
        """What PyTorch computes, of several results those that are read."""
        results = self.target(*self.args, **self.kwargs)
        return results if self.reads is None else [results[number] for number in self.reads]

    @property
    def arguments(self) -> Iterator[tuple[str, Any]]:
        """Names and values of all arguments; defaults for those that are not passed."""
        for position, parameter in enumerate(self.target._schema.arguments):
            if position < len(self.args):
                yield parameter.name, self.args[position]
            else:
                yield parameter.name, self.kwargs.get(parameter.name, parameter.default_value)

    @property
    def signature(self) -> Signature:
        """Types and kinds of the arguments."""
        leaves = tree_leaves((self.args, dict(self.kwargs)))
        types = dict.fromkeys(_name(x.dtype) for x in leaves if isinstance(x, torch.Tensor))
        features = [
            f"{name}={kind}"
            for name, value in self.arguments
            if name not in _UNRELATED
            for kind in _kinds(value)
        ]
        features += [f"reads={number}" for number in self.reads or ()]
        return Signature(str(self.target), " ".join(types), frozenset(features))


def unproved_reason(signature: Signature) -> str:
    """Why the table of proved operators does not have a call; empty if it has."""
    name, types, features = signature
    rows = _proved_operators().get(name)
    if rows is None:
        return "is not among the operators whose results are proved to be PyTorch's"
    if types not in rows:
        return f"is not proved for {types or 'these arguments'}"
    if unproved := sorted(features - rows[types]):
        return f"is not proved for {types} with {', '.join(unproved)}"
    return ""


@cache
def _proved_operators() -> Mapping[str, Mapping[str, Features]]:
    """Features by operator and types."""
    text = files("armpy_torch").joinpath("proved_operators.json").read_text("utf-8")
    return {
        name: {types: frozenset(features.split()) for types, features in rows.items()}
        for name, rows in json.loads(text)["operators"].items()
    }


def _kinds(value: Any) -> set[str]:
    """The kind of an argument, without spaces, or those of the elements of a list."""
    if isinstance(value, (list, tuple)):
        return {f"[{_kind(item)}]" for item in value} or {"[]"}
    return {_kind(value)}


def _kind(value: Any) -> str:
    """The kind of an argument that is no list."""
    if isinstance(value, torch.Tensor):
        return _kind_of_tensor(value)
    if isinstance(value, torch.dtype):
        return _name(value)
    if isinstance(value, (bool, torch.SymBool, str, type(None))):
        return "bool" if isinstance(value, torch.SymBool) else str(value)
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return "+"
    return _kind_of_number(value)


def _kind_of_tensor(tensor: torch.Tensor) -> str:
    """Whether a tensor has one element without dimensions, none, or others."""
    if tensor.dim() == 0:
        return "scalar"
    is_empty = any(isinstance(size, int) and size == 0 for size in tensor.shape)
    return "empty" if is_empty else "tensor"


def _kind_of_number(value: Any) -> str:
    """Type and sign of a number."""
    prefix = "" if isinstance(value, int) else f"{type(value).__name__}"
    if not isinstance(value, (int, float)):
        return prefix
    if math.isnan(value) or math.isinf(value):
        return f"{prefix}:{value}"
    return prefix + ("0" if value == 0 else "+" if value > 0 else "-")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class ElementCheck(NamedTuple):
    """What PyTorch checks of a tensor's elements when it runs an operator, and armpy does not."""

    tensor: Any
    sized: Any = None  # a tensor with the dimension that elements are indices of
    dim: int = 0
    counts_from_end: bool = False  # whether indices may be negative
    bound: int = 1  # of indices that no dimension bounds
    ignored: int | None = None  # an element that is no index
    refuses_zero: bool = False  # of divisors

    @property
    def has_size(self) -> bool:
        """Return whether a dimension bounds the elements; there is none of a scalar."""
        return self.sized is not None and self.sized.dim() > 0


def checks_of(call: OperatorCall) -> Sequence[ElementCheck]:
    """What PyTorch checks of the elements of a call's tensors."""
    find = _CHECKS.get(str(call.target).split(".")[1])
    return () if find is None else find(dict(call.arguments))


Arguments: TypeAlias = "Mapping[str, Any]"


def _along_dimension(arguments: Arguments) -> Sequence[ElementCheck]:
    """Indices along a dimension, which do not count from the end."""
    return [ElementCheck(arguments["index"], arguments["self"], arguments["dim"])]


def _of_rows(arguments: Arguments) -> Sequence[ElementCheck]:
    """Rows of an embedding."""
    return [ElementCheck(arguments["indices"], arguments["weight"])]


def _of_targets(arguments: Arguments) -> Sequence[ElementCheck]:
    """Classes that a loss is of; probabilities of classes are not checked."""
    scores, target = arguments["self"], arguments["target"]
    if target.is_floating_point():
        return ()
    dim = 1 if scores.dim() > 1 else 0
    return [ElementCheck(target, scores, dim, ignored=arguments["ignore_index"])]


def _from_both_ends(arguments: Arguments) -> Sequence[ElementCheck]:
    """Indices of several dimensions, which may count from the end."""
    return [
        ElementCheck(index, arguments["self"], dim, counts_from_end=True)
        for dim, index in enumerate(arguments["indices"])
        if index is not None and index.dtype not in {torch.bool, torch.uint8}
    ]


def _divisor(arguments: Arguments) -> Sequence[ElementCheck]:
    """A divisor of integers; true division makes real numbers of them."""
    pair = [x for x in (arguments["self"], arguments["other"]) if isinstance(x, torch.Tensor)]
    is_true = arguments.get("rounding_mode", "floor") is None
    if is_true or len(pair) < 2 or any(x.is_floating_point() for x in pair):
        return ()
    return [ElementCheck(pair[1], refuses_zero=True)]


_CHECKS: Mapping[str, Callable[[Arguments], Sequence[ElementCheck]]] = {
    "_unsafe_index": _from_both_ends,
    "cross_entropy_loss": _of_targets,
    "div": lambda arguments: _divisor({"rounding_mode": None, **arguments}),
    "embedding": _of_rows,
    "floor_divide": _divisor,
    "fmod": _divisor,
    "gather": _along_dimension,
    "index": _from_both_ends,
    "index_put": _from_both_ends,
    "index_select": _along_dimension,
    "nll_loss": _of_targets,
    "remainder": _divisor,
    "scatter": _along_dimension,
    "scatter_add": _along_dimension,
    "scatter_reduce": _along_dimension,
}
"""Operators that refuse some elements of their arguments."""

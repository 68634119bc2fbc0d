"""Operations that compute each element from one element of every input."""

from __future__ import annotations

from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs.call import ANY_RANK, RandomOperation, Recipe, Source

_C = OperationCode
_NEVER_NEGATIVE = (_C.EXP, _C.LOGISTIC, _C.SOFTMAX, _C.RELU, _C.RELU6, _C.ABS, _C.SQRT)
_LEAST = 0.05
"""Least input of operations that are defined above 0 only."""


def unary(call: RandomOperation) -> None:
    """One input of any rank, an output like it."""
    call.data("input", ranks=_ranks(call, "input"))


def positive_unary(call: RandomOperation) -> None:
    """One input without negative elements."""
    call.data("input", ranks=ANY_RANK, accept=_is_not_negative, low=_LEAST)


def _is_not_negative(source: Source) -> bool:
    """Return whether an earlier tensor has no negative elements."""
    return source.made_by in _NEVER_NEGATIVE


def _ranks(call: RandomOperation, name: str) -> tuple[int, ...]:
    """The ranks that an argument may have."""
    return call.argument(name).ranks or ANY_RANK


def broadcast_shape(call: RandomOperation, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another one: some axes 1, some in front left out."""
    sizes = tuple(1 if call.chance(0.2) else dim for dim in shape)
    return sizes[call.integer(0, len(sizes) - 1) :] if call.chance(0.3) else sizes


def pair(call: RandomOperation, first: str, second: str) -> None:
    """Two inputs that broadcast, either one the larger."""
    names = (first, second) if call.chance(0.8) else (second, first)
    shape = call.data(names[0], ranks=_ranks(call, first))
    call.data(names[1], broadcast_shape(call, shape))


def arithmetic(call: RandomOperation) -> None:
    """Two inputs that broadcast, and a fused activation."""
    pair(call, "input0", "input1")
    has_activation = call.code("input0") != OperandCode.TENSOR_INT32
    call.scalar("activation", call.integer(0, 3) if has_activation else 0)
    call.any_output_quant()


def product(call: RandomOperation) -> None:
    """Arithmetic whose output has a scale above the inputs' product."""
    arithmetic(call)
    if call.is_quantized("output"):
        scale = call.quant_of("input0")[0] * call.quant_of("input1")[0]
        zero_point = call.quantized["output"][1]
        call.output("output", scale * call.real(1.01, 100), zero_point)


def comparison(call: RandomOperation) -> None:
    """Two inputs that broadcast, of a quantisation each."""
    pair(call, "input0", "input1")


def extremum(call: RandomOperation) -> None:
    """Two inputs that broadcast, and an output of a quantisation of its own."""
    pair(call, "input0", "input1")
    call.any_output_quant()


def power(call: RandomOperation) -> None:
    """Bases above 0, and any exponents."""
    shape = call.data("input0", ranks=ANY_RANK, accept=_is_not_negative, low=_LEAST)
    call.data("input1", broadcast_shape(call, shape))


def prelu(call: RandomOperation) -> None:
    """An input, and factors that broadcast with it."""
    shape = call.data("input", ranks=ANY_RANK)
    call.data("alpha", broadcast_shape(call, shape))
    call.any_output_quant()


def select(call: RandomOperation) -> None:
    """Three tensors of one shape."""
    shape = call.data("condition", ranks=ANY_RANK)
    call.data("input0", shape)
    call.data("input1", shape)
    call.any_output_quant()


_COMPARISONS = (_C.EQUAL, _C.NOT_EQUAL, _C.GREATER, _C.GREATER_EQUAL, _C.LESS, _C.LESS_EQUAL)

RECIPES: dict[OperationCode, Recipe] = {
    **dict.fromkeys((_C.ADD, _C.SUB, _C.DIV), arithmetic),
    _C.MUL: product,
    **dict.fromkeys((_C.FLOOR, _C.ABS, _C.EXP, _C.LOGICAL_NOT, _C.NEG, _C.SIN), unary),
    **dict.fromkeys((_C.LOG, _C.RSQRT, _C.SQRT), positive_unary),
    **dict.fromkeys((*_COMPARISONS, _C.LOGICAL_AND, _C.LOGICAL_OR), comparison),
    **dict.fromkeys((_C.MAXIMUM, _C.MINIMUM), extremum),
    _C.POW: power,
    _C.PRELU: prelu,
    _C.SELECT: select,
}

"""Activations, normalisations and conversions: operations on one tensor."""

from __future__ import annotations

from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs.call import ANY_RANK, RandomOperation, Recipe, Source

_C = OperationCode
_FIXED: dict[OperationCode, dict[OperandCode, tuple[float, int]]] = {
    code: {
        OperandCode.TENSOR_QUANT8_ASYMM: (1 / steps, unsigned),
        OperandCode.TENSOR_QUANT8_ASYMM_SIGNED: (1 / steps, unsigned - 128),
    }
    for code, steps, unsigned in (
        (_C.LOGISTIC, 256, 0),
        (_C.SOFTMAX, 256, 0),
        (_C.TANH, 128, 128),
        (_C.L2_NORMALIZATION, 128, 128),
    )
}
"""Scales and zero points that operations prescribe for their outputs."""


def activation(call: RandomOperation) -> None:
    """One input."""
    call.data("input")
    fixed_output(call)


def fixed_output(call: RandomOperation) -> None:
    """Quantise the output as the operation prescribes it, if it does."""
    fixed = _FIXED.get(call.definition.code, {}).get(call.code("output"))
    if fixed is not None:
        call.output("output", *fixed)


def hard_swish(call: RandomOperation) -> None:
    """One input, and an output of a quantisation of its own."""
    call.data("input", ranks=ANY_RANK)
    call.any_output_quant()


def elu(call: RandomOperation) -> None:
    """One input, and a factor."""
    call.data("input", ranks=ANY_RANK)
    call.scalar("alpha", call.real(0.1, 2))


def axis(call: RandomOperation, rank: int) -> int:
    """Any axis, counted from the start or from the end; chosen as the argument."""
    chosen = call.integer(-rank, rank - 1)
    call.scalar("axis", chosen)
    return chosen % rank


def along_axis(call: RandomOperation) -> None:
    """One input, an axis, and a factor where the operation has one."""
    ranks = call.argument("input").ranks or ANY_RANK
    axis(call, len(call.data("input", ranks=ranks)))
    call.scalar("beta", call.real(0.1, 3))
    fixed_output(call)


def local_response(call: RandomOperation) -> None:
    """A window and factors that keep the divisor away from 0."""
    axis(call, len(call.data("input")))
    call.scalar("radius", call.integer(0, 4))
    call.scalar("bias", call.real(0.5, 2))
    call.scalar("alpha", call.real(0, 2))
    call.scalar("beta", call.real(0.1, 1))


def instance(call: RandomOperation) -> None:
    """An image in either layout, with enough added to its variance."""
    call.data("input", ranks=(4,))
    call.scalar("gamma", call.real(-2, 2))
    call.scalar("beta", call.real(-2, 2))
    call.scalar("epsilon", call.real(0.01, 0.1))
    call.scalar("nchw", call.chance())


def cast(call: RandomOperation) -> None:
    """Any tensor; floats that become unsigned are not negative."""
    call.data("input", ranks=ANY_RANK, accept=_is_small)
    call.any_output_quant()


def _is_small(source: Source) -> bool:
    """Return whether elements of an earlier tensor fit into an integer."""
    return source.made_by not in (_C.EXP, _C.DIV, _C.POW, _C.RSQRT, _C.MUL, _C.REDUCE_PROD)


def quantize(call: RandomOperation) -> None:
    """Floats, and an output of any quantisation."""
    call.data("input", ranks=ANY_RANK)
    scale = call.real(0.01, 0.1)
    call.output("output", scale, call.quantization(call.code("output"))[1])


def dequantize(call: RandomOperation) -> None:
    """A quantised tensor; one of per-channel scales is made for it."""
    if call.code("input") == OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL:
        call.per_channel("input", call.shape(call.integer(1, 4)))
    else:
        call.data("input")


RECIPES: dict[OperationCode, Recipe] = {
    **dict.fromkeys((_C.RELU, _C.RELU1, _C.RELU6, _C.LOGISTIC, _C.TANH), activation),
    _C.HARD_SWISH: hard_swish,
    _C.ELU: elu,
    **dict.fromkeys((_C.SOFTMAX, _C.LOG_SOFTMAX, _C.L2_NORMALIZATION), along_axis),
    _C.LOCAL_RESPONSE_NORMALIZATION: local_response,
    _C.INSTANCE_NORMALIZATION: instance,
    _C.CAST: cast,
    _C.QUANTIZE: quantize,
    _C.DEQUANTIZE: dequantize,
}

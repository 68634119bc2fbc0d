"""Activations, paddings and layouts, shared by the operations of several families."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from armpy.errors import LayerValidationError
from armpy.graph import Value
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Operand, Operation, require
from armpy.ops.recurrent import RecurrentActivation
from armpy.ops.reshaping import Reshape
from armpy.ops.shapes import Padding
from armpy.tensor import TensorInfo
from armpy.types import DataLayout
from armpy_nnapi.codes import FuseCode, OperandCode, PaddingCode
from armpy_nnapi.operations.form import Argument, rows
from armpy_nnapi.operations.lowering_context import LoweringContext

ANY_NUMBERS_FROM_29 = rows(
    "T",
    (OperandCode.TENSOR_FLOAT16, 29),
    (OperandCode.TENSOR_FLOAT32, 29),
    (OperandCode.TENSOR_INT32, 29),
    (OperandCode.TENSOR_QUANT8_ASYMM, 29),
    (OperandCode.TENSOR_QUANT8_ASYMM_SIGNED, 30),
)
"""Types of operations that came with feature level 29."""


def fused_activation(lower: LoweringContext, name: str = "activation") -> FusedActivation:
    """The fused activation that a FuseCode argument names.

    Raises
    ------
    LayerValidationError
        If there is no such code.
    """
    code = lower.integer(name)
    if code not in tuple(FuseCode):
        raise LayerValidationError(
            "unknown activation", expected="a FuseCode, 0 to 3", actual=str(code)
        )
    # The core's numbers are those of FuseCode.
    return FusedActivation(code)


def data_layout(lower: LoweringContext, name: str = "nchw") -> DataLayout:
    """The layout of image tensors: NHWC unless a boolean argument says NCHW."""
    return DataLayout.NCHW if lower.number(name) else DataLayout.NHWC


def implicit_padding(lower: LoweringContext, name: str = "padding") -> Padding:
    """The padding that a PaddingCode argument names.

    Raises
    ------
    LayerValidationError
        If there is no such code.
    """
    code = lower.integer(name)
    if code == PaddingCode.SAME:
        return Padding.SAME
    if code == PaddingCode.VALID:
        return Padding.VALID
    raise LayerValidationError(
        "unknown padding", expected="a PaddingCode, 1 or 2", actual=str(code)
    )


def recurrent_activation(lower: LoweringContext, name: str = "activation") -> RecurrentActivation:
    """The activation that an argument of a recurrent operation names.

    Raises
    ------
    LayerValidationError
        If there is no such code.
    """
    code = lower.integer(name)
    if code not in {activation.value for activation in RecurrentActivation}:
        raise LayerValidationError(
            "unknown activation",
            expected=", ".join(f"{a.value} ({a.name})" for a in RecurrentActivation),
            actual=str(code),
        )
    return RecurrentActivation(code)


def recurrent_activation_argument() -> Argument:
    """The argument that `recurrent_activation` reads."""
    names = ", ".join(f"{activation.value} {activation.name}" for activation in RecurrentActivation)
    return Argument("activation", OperandCode.INT32, names)


def operand_arguments(operands: Iterable[Operand], column: str = "T") -> tuple[Argument, ...]:
    """Arguments that are operands of a core operation, all of one type.

    Notes
    -----
    They have no ranks, for operations whose ranks the reference looks at when they run: the
    core operation does so too, and an operand without a value may be declared with any rank.
    """
    return tuple(Argument(o.name, column, optional=o.optional) for o in operands)


def add_by_name(lower: LoweringContext, operation: Operation) -> tuple[Value, ...]:
    """Add the one layer that an operation is, whose operands have the arguments' names.

    Returns
    -------
    tuple of Value
        Outputs that the form has, in its order.

    Raises
    ------
    LayerValidationError
        If the operation lacks one of them.
    """
    names = [operand.name for operand in operation.outputs[: operation.num_outputs]]
    wanted = [argument.name for argument in lower.arguments.match.outputs]
    missing = set(wanted).difference(names)
    require(not missing, "too many outputs", expected=", ".join(names), actual=", ".join(wanted))
    outputs = lower.add_layer(
        operation,
        [lower.get(operand.name) for operand in operation.inputs],
        # The layer also has the outputs that the form leaves out; they are not read.
        [lower.output_info(wanted.index(name)) if name in wanted else None for name in names],
    )
    return tuple(outputs[names.index(name)] for name in wanted)


def quantized_like(lower: LoweringContext, name: str = "input", index: int = 0) -> TensorInfo:
    """Info of an output that is quantised like an input; the layer infers its shape.

    Raises
    ------
    LayerValidationError
        If the model declares another quantisation for an output of the model.
    """
    source = lower[name].info
    if source.data_type.is_quantized:
        return lower.fixed_output(source.scale, source.zero_point, index).with_shape(None)
    return lower.output_info(index).with_shape(None)


def with_an_axis(lower: LoweringContext, value: Value) -> Value:
    """A value of rank 1 in place of one of rank 0, which NNAPI does not have."""
    if value.info.rank != 0:
        return value
    return lower.add(Reshape((1,)), value, output=value.info.with_shape(None))


def vector(lower: LoweringContext, name: str, length: int | None = None) -> tuple[int, ...]:
    """The elements of a decisive argument of rank 1.

    Parameters
    ----------
    length : int, optional
        The number of elements that there must be.

    Raises
    ------
    LayerValidationError
        If the argument has another rank or length.
    """
    shape = lower.shape(name)
    require(
        len(shape) == 1 and length in (None, shape[0]),
        f"{name} has the wrong shape",
        expected="rank 1" if length is None else f"({length},)",
        actual=shape,
    )
    return lower.integers(name)


def float32_product(first: float, second: float) -> float:
    """Product of two numbers as float32 rounds it, infinite where it is too large."""
    # Too large a product is an answer here, and no reason to warn.
    with np.errstate(all="ignore"):
        return float(np.float32(first) * np.float32(second))

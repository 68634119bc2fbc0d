"""Operations that are products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.activations import FusedActivation
from armpy.ops.convolution import BIAS, WEIGHTED_RULES, check_weighted
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule, same
from armpy.ops.shapes import broadcast_shapes, product
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataType

__all__ = ["BatchMatMul", "BlockwiseFullyConnected", "FullyConnected"]

_BYTES = (DataType.QASYMM_U8, DataType.QASYMM_S8)
_F32 = DataType.FLOAT32
_MATRIX_RANKS = tuple(range(2, 9))
_EXACT_TYPES = (
    DataType.FLOAT64,
    DataType.SIGNED32,
    DataType.SIGNED64,
    DataType.UNSIGNED32,
    DataType.UNSIGNED64,
)
"""Plain types whose products are summed in the type itself."""


@dataclass(frozen=True, slots=True)
class FullyConnected(Operation):
    """Multiply vectors by a matrix of weights.

    Notes
    -----
    input (..., depth), or any shape whose elements split into vectors of that length; weights
    (units, depth); bias (units); output (vectors, units), or (..., units). Bias and int32 outputs
    as of ``Convolution2d``.

    References
    ----------
    Arm NN FullyConnected with transposed weights; NNAPI and TFLite FULLY_CONNECTED; ONNX
    MatMulInteger.
    """

    activation: FusedActivation = FusedActivation.NONE
    keep_num_dims: bool = False
    """Whether the output keeps the input's dimensions but the last, instead of two."""
    asymmetric_quantize_inputs: bool = False
    """Whether float inputs of quantised weights are quantised, vector by vector, with a zero point.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=tuple(range(1, 9))),
        Operand("weights", ranks=(2,)),
        BIAS,
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = WEIGHTED_RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(vectors, units), or the input's dimensions with units at the end."""
        shape = inputs[0].shape or ()
        units, depth = (inputs[1].shape or ())[:2]
        if not self.keep_num_dims:
            return ((_num_vectors(shape, depth), units),)
        require(
            shape[-1] is None or depth is None or shape[-1] == depth,
            "the input's last dimension is not the weights' depth",
            expected=str(depth),
            actual=shape,
        )
        return ((*shape[:-1], units),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bias length, axis of the weights' scales, no activation of plain sums."""
        check_weighted(self.activation, inputs, outputs)


def _num_vectors(shape: Shape, depth: Dimension) -> Dimension:
    """Return how many vectors of the weights' depth the input's elements make."""
    if depth == 0 and shape[-1] == 0:
        return product(shape[:-1])
    count = product(shape)
    if count is None or depth is None:
        return None
    require(
        depth > 0 and count % depth == 0,
        "the input's elements do not split into vectors of the weights' depth",
        expected=f"a multiple of {depth} elements",
        actual=shape,
    )
    return count // depth


@dataclass(frozen=True, slots=True)
class BlockwiseFullyConnected(Operation):
    """Multiply vectors by a matrix of numbers of few bits with a scale for each block.

    Notes
    -----
    input (..., depth); weights (units, blocks, bytes), the first number of a byte in its lowest
    bits; scales (units, blocks); zero_points (units, blocks), the middle of the range without them;
    bias (units); output (..., units). A weight is ``scale * (number - zero point)``, in float32;
    numbers beyond the depth are ignored.

    References
    ----------
    ONNX Runtime MatMulNBits.
    """

    bits: int = 4
    """Bits of each number: 2, 4 or 8."""
    quantizes_input: bool = False
    """Whether blocks of the input are quantised to 8 bits, symmetrically, each by its range."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=tuple(range(1, 9))),
        Operand("weights", ranks=(3,)),
        Operand("scales", ranks=(2,)),
        Operand("zero_points", optional=True, ranks=(2,)),
        BIAS,
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule((_F32, DataType.UNSIGNED8, _F32, DataType.UNSIGNED8, _F32), (_F32,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's dimensions with units at the end."""
        shape, weights = inputs[0].shape or (), inputs[1].shape or ()
        shapes = weights[:2], weights[:2], weights[:1]
        for operand, expected in zip(inputs[2:], shapes, strict=False):
            own = None if operand is None else operand.shape
            require(
                own is None or None in (*own, *expected) or own == expected,
                "an operand's shape does not match the weights",
                expected=str(expected),
                actual=own,
            )
        return ((*shape[:-1], weights[0]),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Whole blocks of numbers that end after the depth."""
        depth, (_, blocks, size) = inputs[0].known_shape[-1], inputs[1].known_shape
        require(
            self.bits in (2, 4, 8)
            and (blocks - 1) * size * 8 < depth * self.bits <= blocks * size * 8,
            "the weights do not hold as many numbers as the input's depth",
            expected=f"{depth} numbers of 2, 4 or 8 bits",
            actual=f"{blocks} blocks of {size} bytes, bits {self.bits}",
        )


@dataclass(frozen=True, slots=True)
class BatchMatMul(Operation):
    """Multiply the matrices at the last two axes of two tensors.

    Notes
    -----
    x (..., rows, depth); y (..., depth, columns); output (..., rows, columns). The other axes
    broadcast. FLOAT64 and plain integers are summed in their own type; integers wrap around. An
    int32 output of 8-bit inputs has the scale ``x scale * y scale``: it is the sums.

    References
    ----------
    Arm NN BatchMatMul; NNAPI feature level 6 and TFLite BATCH_MATMUL, whose ``adj_x`` and
    ``adj_y`` are `transpose_x` and `transpose_y` for real numbers; ONNX MatMulInteger.
    """

    transpose_x: bool = False
    transpose_y: bool = False
    """`transpose_x` and `transpose_y`: whether the last two axes of the input are swapped first."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("x", ranks=_MATRIX_RANKS),
        Operand("y", ranks=_MATRIX_RANKS),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        *same(DataType.FLOAT32, also=(DataType.FLOAT32,)),
        *same(DataType.FLOAT16, also=(DataType.FLOAT16,)),
        *same(DataType.QASYMM_U8, also=(DataType.QASYMM_U8,)),
        *same(DataType.QASYMM_S8, also=((DataType.QASYMM_S8, DataType.QSYMM_S8),)),
        *same(DataType.QSYMM_S16, also=(DataType.QSYMM_S16,)),
        *(rule((exact, exact), (exact,)) for exact in _EXACT_TYPES),
        rule((_BYTES, _BYTES), (DataType.SIGNED32,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Broadcast axes, then rows of x and columns of y."""
        x = _swapped(inputs[0].shape or (), self.transpose_x)
        y = _swapped(inputs[1].shape or (), self.transpose_y)
        require(
            x[-1] is None or y[-2] is None or x[-1] == y[-2],
            "the depths of the matrices differ",
            expected=f"{x[-1]} rows of y, as many as x has columns",
            actual=y[-2],
            fix="Reshape or transpose x or y",
        )
        batches = broadcast_shapes(x[:-2], y[:-2]) or ()
        return ((*batches, x[-2], y[-1]),)


def _swapped(shape: Shape, is_transposed: bool) -> Shape:
    """A shape with its last two dimensions swapped, if they are to be."""
    return (*shape[:-2], shape[-1], shape[-2]) if is_transposed else shape

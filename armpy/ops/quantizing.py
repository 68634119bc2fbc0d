"""Operations that convert elements to another data type or quantisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.elementwise import FLOAT_TYPES
from armpy.ops.operation import NUMBER_TYPES, Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo, format_shape
from armpy.types import DataType

__all__ = ["BitCast", "Cast", "Dequantize", "Quantize"]

_QUANTIZED = tuple(t for t in DataType if t.is_quantized)


def _unchanged(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> int | None:
    """The input, if the output has its type and quantisation."""
    source, target = inputs[0], outputs[0]
    same_type = source.data_type is target.data_type
    return 0 if same_type and source.quantization == target.quantization else None


@dataclass(frozen=True, slots=True)
class Quantize(Operation):
    """Convert real or quantised numbers to the output's quantised type.

    Notes
    -----
    input (...); output as input. Floats are divided by the output's scale, perhaps along an axis,
    in float32 and rounded half away from zero by default. Quantised inputs, also int32 with a
    scale, are rescaled in fixed point; the output may be int32 with a scale. All saturate; NaN
    becomes real 0.

    References
    ----------
    Arm NN Quantize; NNAPI and TFLite QUANTIZE; ONNX QuantizeLinear, which rounds to even.
    """

    rounds_to_even: bool = False
    """Whether halves of floats are rounded to even."""

    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule((FLOAT_TYPES,), (_QUANTIZED,)),
        rule(((*_QUANTIZED, DataType.SIGNED32),), ((*_QUANTIZED, DataType.SIGNED32),)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """QASYMM_S8 from floating point, as the input otherwise."""
        first = inputs[0].data_type
        return (DataType.QASYMM_S8 if first.is_float else first,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Scales along an axis on the output of a floating-point input only."""
        per_axis = inputs[0].has_per_axis_quantization or (
            outputs[0].has_per_axis_quantization and not inputs[0].data_type.is_float
        )
        unchanged = self.identity_of(inputs, outputs) == 0
        require(
            unchanged or not per_axis,
            "scales that run along an axis cannot be rescaled",
            expected="one scale per tensor, or a floating-point input",
            actual=f"{inputs[0]} -> {outputs[0]}",
        )

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if it has the output's type and quantisation."""
        return _unchanged(inputs, outputs)


@dataclass(frozen=True, slots=True)
class Dequantize(Operation):
    """Convert quantised numbers, or float16, to floating point.

    Notes
    -----
    input (...); output float32 or float16, as input. ``scale * (stored - zero_point)``,
    rounded to float32; the input's scales may run along an axis.

    References
    ----------
    Arm NN Dequantize, ConvertFp16ToFp32; NNAPI and TFLite DEQUANTIZE.
    """

    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule(((*_QUANTIZED, DataType.SIGNED32),), (FLOAT_TYPES,)),
        rule((DataType.FLOAT16,), (FLOAT_TYPES,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """FLOAT32."""
        return (DataType.FLOAT32,)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if it is float16 and stays so."""
        return _unchanged(inputs, outputs)


@dataclass(frozen=True, slots=True)
class Cast(Operation):
    """Convert stored numbers to another data type, whatever their quantisation.

    Notes
    -----
    input (...); output as input, of its info's type. Floats lose their fraction and saturate, NaN
    becomes the highest integer; integers wrap in plain types, of 4 and 2 bits always, and saturate
    in quantised ones; BOOLEAN is whether a number is not 0. Small floats get the nearest number,
    ties to even. Strings are numbers as Python reads and writes them, without their fraction as
    integers; BOOLEAN is 0 or 1.

    References
    ----------
    Arm NN, NNAPI and TFLite CAST; ONNX Cast, CastLike.
    """

    saturate: bool = True
    """Whether numbers too large for 8-bit floats become the largest one, not infinity (NaN where
    there is none).
    """
    rounding: str = "nearest"
    """Rounding to FLOAT8_E8M0: ``nearest``, ``up`` or ``down``."""

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if it has the output's type already."""
        return _unchanged(inputs, outputs)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """A way of rounding that there is; no text for stored numbers of other meanings."""
        for info in (inputs[0], outputs[0]):
            other = info.data_type
            is_pair = inputs[0].data_type.is_string is not outputs[0].data_type.is_string
            require(
                not (is_pair and (other.is_quantized or other.is_narrow)),
                "a quantised or small integer is not converted from or to a string",
                expected="a float, an integer of at least 8 bits, or BOOLEAN",
                actual=other.name,
            )
        require(
            self.rounding in ("nearest", "up", "down"),
            "unknown rounding",
            expected="nearest, up or down",
            actual=self.rounding,
        )


@dataclass(frozen=True, slots=True)
class BitCast(Operation):
    """Read the bits of elements as elements of another type.

    Notes
    -----
    input (...); output as input if elements are as large. Smaller ones lie along an additional last
    axis, lowest byte first; larger ones take up the last axis, which has as many elements as they
    have parts. Types of 4 and 2 bits go with types of as many bits.

    References
    ----------
    TFLite BITCAST; ONNX BitCast.
    """

    output_type: DataType = DataType.UNSIGNED8

    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule((NUMBER_TYPES,), (NUMBER_TYPES,)),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """An axis more or less where elements are smaller or larger."""
        shape, source = inputs[0].shape or (), inputs[0].data_type
        small = min(source.bits, self.output_type.bits)
        require(
            small >= 8 or source.bits == self.output_type.bits,
            "a type of less than a byte goes with types of as many bits",
            expected=f"a type of {source.bits} bits",
            actual=self.output_type.name,
        )
        parts = max(source.bits, self.output_type.bits) // small
        if source.bits >= self.output_type.bits:
            return ((*shape, parts) if parts > 1 else shape,)
        require(
            bool(shape) and shape[-1] in (None, parts),
            "the last axis does not make up elements of the other type",
            expected=f"{parts} elements",
            actual=format_shape(shape),
        )
        return (shape[:-1],)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The type that is asked for."""
        return (self.output_type,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """An output of that type; not every byte is a truth value."""
        require(
            outputs[0].data_type is self.output_type,
            "the output has another type than the attribute says",
            expected=self.output_type.name,
            actual=outputs[0].data_type.name,
        )
        require(
            self.output_type is not DataType.BOOLEAN or inputs[0].data_type is DataType.BOOLEAN,
            "not every pattern of bits is a truth value",
            expected="another type than BOOLEAN",
            actual=f"{inputs[0].data_type.name} to BOOLEAN",
        )

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if it has the output's type already."""
        return _unchanged(inputs, outputs)

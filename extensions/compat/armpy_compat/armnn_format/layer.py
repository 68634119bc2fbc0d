"""One of Arm NN's layers, of a file or of a program, while layers of a network are made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from armpy import DataLayout, DataType, Network, Quantization, TensorInfo, ops
from armpy.core.dataclass import dataclass
from armpy.errors import ParserError
from armpy.graph import Value
from armpy.ops import Operation
from armpy.ops.data_movement import DataMovement
from armpy.ops.operation import Array

_Choice = TypeVar("_Choice")

Converter: TypeAlias = Callable[["ArmnnLayer"], Sequence[Value]]
"""Adds the layers for one of Arm NN's, and returns a value for each of its output slots."""

IMAGE_LAYOUTS: Mapping[int, DataLayout] = {0: DataLayout.NHWC, 1: DataLayout.NCHW}
VOLUME_LAYOUTS: Mapping[int, DataLayout] = {2: DataLayout.NDHWC, 3: DataLayout.NCDHW}
"""`IMAGE_LAYOUTS` and `VOLUME_LAYOUTS`: by the format's numbers, which are not those of Arm NN."""


class LayerTable(Protocol):
    """Attributes of a layer, by the names that .armnn files have for them."""

    where: str

    def table(self, field: str) -> LayerTable | None:
        """A table that is an attribute; None if it is left out."""

    def tables(self, field: str, kind: str) -> Iterable[LayerTable]:
        """A list of tables; `kind` says what they are, for messages."""

    def integer(self, field: str) -> int:
        """A whole number."""

    def real(self, field: str) -> float:
        """A real number."""

    def flag(self, field: str) -> bool:
        """A truth value."""

    def numbers(self, field: str) -> list[Any]:  # Any: whole or real
        """A list of numbers."""

    def choice(self, field: str, choices: Mapping[int, _Choice], kind: str) -> _Choice:
        """The choice for an enumerator of the enumeration `kind`, by the format's numbers."""

    def leaves_out(self, field: str) -> bool:
        """Return whether there is no such attribute."""

    def charge(self, num_bytes: int) -> None:
        """Count memory that is made for it."""

    def error(self, failed: str, *, expected: str = "", actual: str = "") -> ParserError:
        """An error about the layer."""


@dataclass(eq=False)
class ArmnnLayer:
    """One of Arm NN's layers, and the network that it is added to."""

    network: Network
    kind: str
    name: str
    table: LayerTable
    tensor_of: Callable[[LayerTable, str], tuple[Array, TensorInfo]]
    """Reads a constant that is an attribute of a table; `ParserError` if it is left out."""
    inputs: Sequence[Value]
    outputs: Sequence[TensorInfo | None]
    """Declared infos of the outputs; None where nothing is declared."""
    transposed: dict[tuple[Value, tuple[int, ...]], Value]
    """Weights that have been put into armpy's order, for all layers of the network."""
    has_old_weights: bool = False
    """Whether the weights of a depthwise convolution are (M, I, H, W)."""
    rounds_once: bool = False
    """Whether 8-bit sums of products are rounded once, as Arm NN's kernels do it."""
    keeps_dimensions: bool = False
    """Whether the output of a fully connected layer has the dimensions of its input."""
    output_shape: tuple[int, ...] | None = None
    """Shape that a transposed convolution gives; None if it follows from the input."""

    @property
    def descriptor(self) -> LayerTable:
        """The table of the layer's attributes.

        Raises
        ------
        ParserError
            If the file leaves it out.
        """
        descriptor = self.table.table("descriptor")
        if descriptor is None:
            raise self.error("the layer has no descriptor")
        return descriptor

    def error(self, failed: str, *, expected: str = "", actual: object = "") -> ParserError:
        """An error about this layer."""
        return self.table.error(failed, expected=expected, actual=str(actual))

    def expect_inputs(self, *counts: int) -> None:
        """Check the number of inputs."""
        if len(self.inputs) not in counts:
            raise self.error(
                "the number of inputs is wrong",
                expected=" or ".join(map(str, counts)),
                actual=len(self.inputs),
            )

    def expect_outputs(self, count: int) -> None:
        """Check the number of output slots."""
        if len(self.outputs) != count:
            raise self.error(
                "the number of outputs is wrong", expected=str(count), actual=len(self.outputs)
            )

    def add(
        self, operation: Operation, *inputs: Value | None, output: TensorInfo | None = None
    ) -> Value:
        """Add the layer that makes the only output.

        Parameters
        ----------
        output : TensorInfo, optional
            Other type and quantisation than is declared.

        Notes
        -----
        Operations that move elements keep their quantisation. Where another is declared,
        the stored elements are read with that, as Arm NN's kernels copy bytes; other operations
        are followed by a Quantize layer.
        """
        if output is None:
            self.expect_outputs(1)
            output = self.outputs[0]
        if output is None:
            return self.network.add(operation, *inputs, name=self.name)
        declared = output.with_shape(None)
        first = inputs[0]
        if operation.requantizes or first is None or _same_elements(first.info, declared):
            return self.network.add(operation, *inputs, name=self.name, output=declared)
        output_info = TensorInfo(None, declared.data_type, first.info.quantization)
        value = self.network.add(operation, *inputs, name=self.name, output=output_info)
        is_moved = isinstance(operation, DataMovement) and not isinstance(operation, ops.Resize)
        return self.reinterpreted(value, declared) if is_moved else self.encoded(value, declared)

    def helper(
        self, operation: Operation, *inputs: Value | None, output: TensorInfo | None = None
    ) -> Value:
        """Add a layer beside the main one, named after it and the operation."""
        name = f"{self.name}/{operation.name}" if self.name else ""
        return self.network.add(operation, *inputs, name=name, output=output)

    def reinterpreted(self, value: Value, info: TensorInfo) -> Value:
        """The stored elements of a value with another quantisation."""
        declared = info.with_shape(value.info.shape)
        return self.helper(ops.BitCast(info.data_type), value, output=declared)

    def decoded(self, value: Value) -> Value:
        """The real numbers of a value in float32."""
        data_type = value.info.data_type
        if data_type is DataType.FLOAT32:
            return value
        float32 = TensorInfo(None, DataType.FLOAT32)
        operation = ops.Dequantize() if data_type.is_quantized else ops.Cast()
        return self.helper(operation, value, output=float32)

    def encoded(self, value: Value, info: TensorInfo | None) -> Value:
        """Real numbers in the type and quantisation of a tensor, if there is one."""
        if info is None:
            return value
        declared = info.with_shape(None)
        if _same_elements(value.info, declared):
            return value
        operation = ops.Quantize() if info.data_type.is_quantized else ops.Cast()
        return self.helper(operation, value, output=declared)

    def constant(self, data: Array, info: TensorInfo | None = None) -> Value:
        """Add a constant; `info` gives type and quantisation where the dtype does not."""
        if info is None:
            return self.network.constant(data, name=self.name)
        return self.network.constant(
            data, name=self.name, data_type=info.data_type, quantization=info.quantization
        )

    def output(self, default: TensorInfo, index: int = 0) -> TensorInfo:
        """Return the description of an output, or the default."""
        return self.outputs[index] or default

    def stored(self, field: str, parent: LayerTable | None = None) -> Value:
        """A constant that is an attribute of the layer, or of one of its tables.

        Raises
        ------
        ParserError
            If it is left out.
        """
        data, info = self.tensor_of(parent or self.table, field)
        return self.network.constant(
            data,
            name=f"{self.name}/{field}" if self.name else "",
            data_type=info.data_type,
            quantization=info.quantization,
        )

    def in_order(self, value: Value, perm: tuple[int, ...]) -> Value:
        """A value with its axes in another order; constants are transposed once."""
        key = value, perm
        if perm == tuple(range(len(perm))):
            return value
        if key not in self.transposed:
            self.transposed[key] = self._transposed(value, perm)
        return self.transposed[key]

    def _transposed(self, value: Value, perm: tuple[int, ...]) -> Value:
        if value.info.rank != len(perm):
            raise self.error(
                "the weights have the wrong rank", expected=str(len(perm)), actual=value.info.rank
            )
        info = TensorInfo(
            None, value.info.data_type, permuted_quantization(value.info.quantization, perm)
        )
        if value.data is None:
            return self.helper(ops.Transpose(perm), value, output=info)
        self.table.charge(value.data.nbytes)
        data = np.ascontiguousarray(value.data.transpose(perm))
        return self.network.constant(
            data, name=value.name, data_type=info.data_type, quantization=info.quantization
        )

    def layout(self, choices: Mapping[int, DataLayout] = IMAGE_LAYOUTS) -> DataLayout:
        """The data layout of the descriptor."""
        return self.descriptor.choice("dataLayout", choices, "DataLayout")


def permuted_quantization(
    quantization: Quantization | None, perm: Sequence[int]
) -> Quantization | None:
    """The quantisation of a tensor after its axes have changed their order."""
    if quantization is None or quantization.axis is None or quantization.axis >= len(perm):
        return quantization
    return Quantization(
        quantization.scales, quantization.zero_points, list(perm).index(quantization.axis)
    )


def signed(number: int) -> int:
    """A negative number that the format stores as an unsigned one."""
    return number - (1 << 32) if number >= 1 << 31 else number


def pairs(numbers: Sequence[int], layer: ArmnnLayer) -> tuple[tuple[int, int], ...]:
    """Consecutive numbers as pairs; `ParserError` if one is left over."""
    if len(numbers) % 2:
        raise layer.error("the numbers are not pairs", actual=len(numbers))
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _same_elements(info: TensorInfo, other: TensorInfo) -> bool:
    """Compare type and quantisation; the axis of scales may move with the elements."""
    if info.data_type is not other.data_type or not info.data_type.is_quantized:
        return info.data_type is other.data_type
    first, two = info.quantization, other.quantization
    if first is None or two is None:
        return first == two
    return first.scales == two.scales and first.zero_points == two.zero_points

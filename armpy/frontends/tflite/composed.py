"""Operators that become several layers, which shapes or parameters may decide on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.frontends.building import Layers
from armpy.frontends.tflite.node import BoundOperator, Converter
from armpy.graph import Value
from armpy.graph.network import OperatorBuilder
from armpy.ops.composite import Composite, LayerBuilder
from armpy.ops.operation import Array, require
from armpy.ops.quantizing import BitCast
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType

_STORED = {
    DataType.QASYMM_S8: DataType.SIGNED8,
    DataType.QASYMM_U8: DataType.UNSIGNED8,
    DataType.QSYMM_S16: DataType.SIGNED16,
}
"""Types of stored integers of quantised types that have one scale."""
_QUANTIZED = {plain: quantized for quantized, plain in _STORED.items()}


class ComposedOperator(Layers):
    """An operator with its inputs in place, all of known shape, while its layers are added."""

    def __init__(
        self,
        build: LayerBuilder,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo],  # types and quantisations that the file declares
        options: bytes = b"",  # of a custom operator
    ) -> None:
        super().__init__(build)
        self.inputs = inputs
        self.outputs = outputs
        self.options = options

    def has(self, index: int) -> bool:
        """Return whether an input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Value:
        """An input that has to be there."""
        value = self.inputs[index] if index < len(self.inputs) else None
        require(value is not None, f"input {index} is missing")
        assert value is not None  # as required above
        return value

    def shape(self, index: int) -> tuple[int, ...]:
        """Shape of an input."""
        return self.value(index).info.known_shape

    def type(self, index: int) -> DataType:
        """Data type of an input."""
        return self.value(index).info.data_type

    def stored(self, value: Value) -> Value:
        """Stored integers of a quantised value without their scale; itself if it has none."""
        plain = _STORED.get(value.info.data_type)
        return value if plain is None else self.layer(BitCast(plain), value)

    def meaning(self, value: Value, like: Value) -> Value:
        """Stored integers with the scale of a value that `stored` was given."""
        info = like.info.with_shape(None)
        if info.data_type not in _STORED:
            return value
        return self.layer(BitCast(info.data_type), value, output=info)

    def array(self, index: int) -> Array:
        """Elements of an input that decides."""
        data = self.value(index).data
        require(data is not None, f"the elements of input {index} are not known")
        assert data is not None  # as required above
        return data

    def ints(self, index: int) -> tuple[int, ...]:
        """Elements of an input that decides, flat, as plain integers."""
        elements = self.array(index)
        require(
            elements.dtype.kind in "iu",
            f"input {index} holds no integers",
            actual=self.type(index).name,
        )
        return tuple(int(item) for item in elements.reshape(-1))

    def count(self, index: int) -> int:
        """The only element of an input that decides, an integer that is not negative."""
        numbers = self.ints(index)
        require(
            len(numbers) == 1 and numbers[0] >= 0,
            f"input {index} is not a count",
            expected="one integer, at least 0",
            actual=numbers[:4],
        )
        return numbers[0]


Expansion: TypeAlias = Callable[[ComposedOperator], "Value | Sequence[Value]"]
"""Adds the layers of an operator and returns its outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class TfliteOperator(Composite):
    """An operator whose layers wait until shapes, or what decides, are known."""

    kind: str  # in the schema's BuiltinOperator
    expansion: Expansion
    deciding: tuple[int, ...]  # inputs whose elements must be known
    declared: tuple[TensorInfo, ...]  # of the outputs, without shapes
    options: bytes = b""  # of a custom operator

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.kind

    @property
    def num_outputs(self) -> int:
        """Number of outputs that the file has."""
        return len(self.declared)

    def decides(self, index: int) -> bool:
        """Return whether the elements of an input are needed."""
        return index in self.deciding

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Nothing is known yet."""
        return (None,) * self.num_outputs

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Types that the file says."""
        return tuple(info.data_type for info in self.declared)

    def expand(self, build: LayerBuilder, inputs: Sequence[Value | None]) -> Sequence[Value]:
        """Add the layers.

        Raises
        ------
        LayerValidationError
            If their outputs are not as many as the file has, or of other types.
        """
        answer = self.expansion(ComposedOperator(build, inputs, self.declared, self.options))
        outputs = [answer] if isinstance(answer, Value) else list(answer)
        types = tuple(value.info.data_type for value in outputs)
        expected = tuple(info.data_type for info in self.declared)
        require(
            types == expected,
            "the outputs have the wrong types",
            expected=", ".join(t.name for t in types),
            actual=", ".join(t.name for t in expected),
        )
        return outputs


def composed(
    node: BoundOperator,
    expansion: Expansion,
    decides: Sequence[int] = (),  # inputs whose elements must be known: what says *how*
    options: bytes = b"",  # of a custom operator
) -> Sequence[Value]:
    """Convert an operator into several layers, at once if enough is known."""
    declared = tuple(info.with_shape(None) for info in node.outputs)
    operation = TfliteOperator(node.operator, expansion, tuple(decides), declared, options)
    if operation.is_ready(node.inputs):
        return operation.expand(OperatorBuilder.of(node.network, node.name), node.inputs)
    layer = node.network.add_layer(
        operation,
        node.inputs,
        name=node.name,
        outputs=declared,
        output_names=node.output_names,
    )
    return layer.outputs


def moving(
    converter: Converter,
    *sources: int,  # inputs with the elements that go to the output; the first if none is named
    # Whether armpy computes it with a scale alone, or never with one as TensorFlow Lite does.
    has_scale: bool | None = None,
) -> Converter:
    """Converter of an operator that takes integers as they are stored, whatever their scales.

    The other operators rescale them, or TensorFlow Lite refuses different scales.
    """

    def convert(node: BoundOperator) -> Sequence[Value]:
        values = {place: node.input(place) for place in sources or (0,)}
        present = {place: value for place, value in values.items() if value is not None}
        infos = [*(value.info for value in present.values()), *node.outputs[:1]]
        common = _common_type(infos, has_scale=has_scale) if present and node.outputs else None
        if common is None:
            return converter(node)
        inputs = list(node.inputs)
        for place, value in present.items():
            inputs[place] = _with_type(node, value, common, f"in_{place}")
        outputs = [common if _stored(info) is _stored(common) else info for info in node.outputs]
        names = [f"{name}:stored" for name in node.output_names]
        results = converter(replace(node, inputs=inputs, outputs=outputs, output_names=names))
        return [
            _with_type(node, result, info, f"out_{i}")
            for i, (result, info) in enumerate(zip(results, node.outputs, strict=True))
        ]

    return convert


def _common_type(infos: Sequence[TensorInfo], *, has_scale: bool | None) -> TensorInfo | None:
    """The type to compute with; None if all have it, or are no integers that may have a scale.

    It is the output's if all have a scale, else one without a scale, unless the operator needs one
    of the two.
    """
    kinds = {_stored(info) for info in infos}
    kind = kinds.pop()
    if kinds or kind not in _QUANTIZED or any(_has_axis(info) for info in infos):
        return None
    scaled = [info for info in infos if info.quantization is not None]
    if has_scale is None:
        has_scale = len(scaled) == len(infos)
    common = TensorInfo(None, kind)
    if has_scale and scaled:
        common = scaled[-1].with_shape(None)
    elif has_scale:
        common = TensorInfo(None, _QUANTIZED[kind], Quantization((1.0,), (0,)))
    return None if all(_same_type(info, common) for info in infos) else common


def _stored(info: TensorInfo) -> DataType:
    """The type of the stored integers; of other numbers their own."""
    return _STORED.get(info.data_type, info.data_type)


def _has_axis(info: TensorInfo) -> bool:
    return info.quantization is not None and info.quantization.axis is not None


def _same_type(info: TensorInfo, other: TensorInfo) -> bool:
    return info.data_type is other.data_type and info.quantization == other.quantization


def _with_type(node: BoundOperator, value: Value, info: TensorInfo, name: str) -> Value:
    """A value's stored integers as those of another type; itself if it has that type."""
    if _same_type(value.info, info):
        return value
    layer = node.network.add_layer(
        BitCast(info.data_type),
        [value],
        name=f"{node.name}:{name}",
        outputs=[info.with_shape(None)],
    )
    return layer.outputs[0]

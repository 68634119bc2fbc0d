"""Operators that become several layers, which shapes or parameters may decide on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.frontends.building import Layers
from armpy.frontends.tflite.node import BoundOperator
from armpy.graph import Value
from armpy.graph.network import OperatorBuilder
from armpy.ops.composite import Composite, LayerBuilder
from armpy.ops.operation import Array, require
from armpy.ops.quantizing import BitCast
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

STORED = {
    DataType.QASYMM_S8: DataType.SIGNED8,
    DataType.QASYMM_U8: DataType.UNSIGNED8,
    DataType.QSYMM_S16: DataType.SIGNED16,
}
"""Types of stored integers of quantised types that have one scale."""


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
        plain = STORED.get(value.info.data_type)
        return value if plain is None else self.layer(BitCast(plain), value)

    def meaning(self, value: Value, like: Value) -> Value:
        """Stored integers with the scale of a value that `stored` was given."""
        info = like.info.with_shape(None)
        if info.data_type not in STORED:
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

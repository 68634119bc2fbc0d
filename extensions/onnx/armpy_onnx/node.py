"""One node of a file, as the functions that convert operators see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import onnx

from armpy.core.dataclass import dataclass
from armpy.core.numerics import bfloat16_values
from armpy.core.strings import decoded
from armpy.errors import LayerValidationError
from armpy.frontends.building import Layers
from armpy.graph import SizesValue, Value
from armpy.ops.composite import Composite, LayerBuilder, Tensor
from armpy.ops.operation import Array
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_onnx.element_types import read_tensor
from armpy_onnx.messages.sparse_tensors import dense_elements

ChosenT = TypeVar("ChosenT")

_WHOLE_VALUES = (onnx.TensorProto, onnx.SparseTensorProto, onnx.GraphProto, int, float)
"""Types of attributes' values that are neither text nor several values."""

TypeSpec: TypeAlias = "int | DataType | Callable[[NodeData, Sequence[DataType | None]], DataType]"
"""Data type of an output: that of an input by its number, a fixed one, or what a function says
of the node and the types of its inputs."""

HALVES = frozenset({DataType.FLOAT16, DataType.BFLOAT16})
"""Types of half precision."""

_MOST = int(np.iinfo(np.int64).max)
"""Largest integer that can be a size or a position."""


@dataclass(frozen=True, eq=False, slots=True)
class NodeData:
    """Node as the file states it."""

    kind: str
    """``Conv``; with the domain before it where that is not ONNX's own: ``com.microsoft.Gelu``."""
    name: str  # of the node; made up where the file gives none
    version: int  # of the domain's operator set
    attributes: Mapping[str, onnx.AttributeProto]
    num_outputs: int
    used_outputs: tuple[bool, ...]  # which of them have a name

    @property
    def label(self) -> str:
        """The node for messages: ``Conv 'conv_3'``."""
        return f"{self.kind} '{self.name}'"

    def attribute(self, name: str, default: Any = None) -> Any:  # Any: attributes are of many types
        """An attribute as a Python value: text for strings, a list for several of them.

        Notes
        -----
        Tensors are `onnx.TensorProto` or `onnx.SparseTensorProto`, graphs `onnx.GraphProto`.
        """
        attribute = self.attributes.get(name)
        if attribute is None:
            return default
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, _WHOLE_VALUES):
            return value
        return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value]

    def strings(self, name: str) -> tuple[str, ...]:
        """An attribute that is several strings, as elements of tensors are; empty if left out."""
        attribute = self.attributes.get(name)
        return () if attribute is None else tuple(decoded(text) for text in attribute.strings)

    def error(
        self, failed: str, *, expected: str = "", actual: object = ""
    ) -> LayerValidationError:
        """An error about this node."""
        return LayerValidationError(failed, where=self.label, expected=expected, actual=str(actual))

    def whole(self, elements: Array, what: str) -> tuple[int, ...]:
        """Elements that decide, flat, as plain integers; an error if they are none."""
        if elements.dtype.kind not in "iu":
            raise self.error(f"{what} holds no integers", actual=elements.dtype.name)
        if elements.dtype == np.uint64 and elements.max(initial=0) > _MOST:
            raise self.error(
                f"{what} is too large", expected=f"up to {_MOST}", actual=elements.max()
            )
        return tuple(int(item) for item in elements.reshape(-1))


class Node(Layers):
    """A node with its inputs in place, all of known shape.

    Parameters
    ----------
    build : LayerBuilder
        Where layers are added.
    inputs : sequence of (Value or None)
        Values of the inputs; None for one that is left out.

    Notes
    -----
    Of the inputs that the converter declares as deciding, the elements are known, too.
    """

    def __init__(self, build: LayerBuilder, data: NodeData, inputs: Sequence[Value | None]) -> None:
        super().__init__(build)
        self.data = data
        self.inputs = inputs

    def of(self, data: NodeData, inputs: Sequence[Value | None]) -> Node:
        """Another node, whose layers are added in the same place."""
        return Node(self._build, data, inputs)

    @property
    def kind(self) -> str:
        """Kind of the node, as of `NodeData`."""
        return self.data.kind

    @property
    def version(self) -> int:
        """Version of the operator set, as of `NodeData`."""
        return self.data.version

    # Attributes

    def attribute(self, name: str, default: Any = None) -> Any:  # Any: attributes are of many types
        """See `NodeData.attribute`."""
        return self.data.attribute(name, default)

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is one integer; without a default it has to be there."""
        return int(self._typed(name, default, int))

    def real(self, name: str, default: float | None = None) -> float:
        """An attribute that is one number."""
        return float(self._typed(name, default, (int, float)))

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is 0 or 1."""
        return bool(self._typed(name, int(default), int))

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute that is text."""
        return str(self._typed(name, default, str))

    def choice(self, name: str, default: str, table: Mapping[str, ChosenT]) -> ChosenT:
        """Return the meaning of one of a few words."""
        word = self.text(name, default)
        if word not in table:
            raise self.error(
                f"the attribute '{name}' has an unknown value",
                expected=", ".join(table),
                actual=repr(word),
            )
        return table[word]

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An attribute that is several integers."""
        items = self._typed(name, default, (list, tuple))
        return tuple(int(item) for item in items)

    def strings(self, name: str) -> tuple[str, ...]:
        """See `NodeData.strings`."""
        return self.data.strings(name)

    def tensor(self, name: str) -> tuple[Array, DataType]:
        """An attribute that is a tensor: its stored elements, and their type."""
        proto = self._typed(name, None, onnx.TensorProto)
        return read_tensor(proto, f"{self.data.label}, attribute '{name}'")

    def dense_tensor(self, name: str) -> tuple[Array, DataType]:
        """An attribute that is a sparse tensor: all its stored elements, and their type."""
        proto = self._typed(name, None, onnx.SparseTensorProto)
        return dense_elements(proto, read_tensor, f"{self.data.label}, attribute '{name}'")

    def _typed(
        self,
        name: str,
        default: object,
        kind: type | tuple[type, ...],
    ) -> Any:  # Any: of the kind
        value = self.attribute(name, default)
        if value is None:
            raise self.error(f"the attribute '{name}' is missing")
        if not isinstance(value, kind):
            raise self.error(f"the attribute '{name}' has the wrong type", actual=repr(value)[:80])
        return value

    # Inputs

    def has(self, index: int) -> bool:
        """Return whether an input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def input(self, index: int) -> Value | None:
        """An input; None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def value(self, index: int) -> Value:
        """An input that has to be there."""
        value = self.input(index)
        if value is None:
            raise self.error(f"input {index} is missing")
        return value

    @property
    def values(self) -> list[Value]:
        """The inputs that are there."""
        return [value for value in self.inputs if value is not None]

    def shape(self, index: int) -> tuple[int, ...]:
        """Shape of an input."""
        return self.value(index).info.known_shape

    def rank(self, index: int) -> int:
        """Number of an input's axes."""
        return len(self.value(index).info.shape or ())

    def type(self, index: int) -> DataType:
        """Data type of an input."""
        return self.value(index).info.data_type

    def elements(self, index: int) -> Array | None:
        """Elements of an input that is constant; None if it is not, or left out."""
        value = self.input(index)
        return None if value is None else value.data

    def array(self, index: int) -> Array:
        """Elements of an input that decides."""
        data = self.value(index).data
        if data is None:
            raise self.error(f"the elements of input {index} are not known")
        return data

    def ints(self, index: int) -> tuple[int, ...]:
        """Elements of an input that decides, flat, as integers; traced sizes stay."""
        value = self.value(index)
        if isinstance(value, SizesValue):
            return tuple(value.sizes.flat)
        return self.data.whole(self.array(index), f"input {index}")

    def whole_number(self, index: int) -> int:
        """The only element of an input that decides, an integer."""
        numbers = self.ints(index)
        if len(numbers) != 1:
            raise self.error(f"input {index} is not one integer", actual=self.shape(index))
        return numbers[0]

    def numbers(self, index: int) -> Array:
        """Elements of an input that decides, none of which is text."""
        elements = self.array(index)
        if self.type(index).is_string:
            raise self.error(
                f"input {index} has the wrong type", expected="numbers", actual=self.type(index)
            )
        return bfloat16_values(elements) if self.type(index) is DataType.BFLOAT16 else elements

    def number(self, index: int, *, is_finite: bool = True) -> Any:  # Any: an int or a float
        """The only element of an input that decides, a finite number if it has to be."""
        elements = self.numbers(index)
        if elements.size != 1 or (is_finite and not np.isfinite(elements).all()):
            kind = "one finite number" if is_finite else "one number"
            raise self.error(f"input {index} is not {kind}", actual=elements.shape)
        return elements.reshape(()).item()

    def axes(
        self, rank: int, name: str = "axes", index: int | None = None
    ) -> tuple[int, ...] | None:
        """Axes from an attribute, or an input that decides, not negative; None if left out.

        Raises
        ------
        LayerValidationError
            If one is out of range.
        """
        if index is not None and self.has(index):
            axes: Sequence[int] = self.ints(index)
        else:
            if self.attribute(name) is None:
                return None
            axes = self.integers(name)
        return tuple(self.axis(axis, rank) for axis in axes)

    def axis(self, axis: int, rank: int) -> int:
        """An axis, counted from the first one."""
        if not -rank <= axis < rank:
            expected = f"-{rank} to {rank - 1}"
            raise self.error("the axis is out of range", expected=expected, actual=axis)
        return axis + rank if axis < 0 else axis

    def error(
        self, failed: str, *, expected: str = "", actual: object = ""
    ) -> LayerValidationError:
        """An error about this node."""
        return self.data.error(failed, expected=expected, actual=actual)


Converter: TypeAlias = Callable[[Node], "Value | Sequence[Value]"]
"""Adds the layers of one node and returns its outputs."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Conversion of nodes of one kind to layers."""

    convert: Converter
    decides: tuple[int, ...] = ()
    """Inputs whose elements must be known: what says *how* (a shape, axes). The node waits until
    they are.
    """
    types: tuple[TypeSpec, ...] = (0,)
    """Data types of the outputs, for nodes that wait; further outputs are as the last one."""
    needs_shapes: bool = True
    """Whether the converter reads shapes of the inputs; otherwise the node waits for none."""
    rounds_once: bool = False
    """Whether nodes of half precision are computed in FLOAT32 and rounded at their outputs: set for
    converters that add several layers, between which elements would be rounded or overflow.
    """


OperatorTable: TypeAlias = Mapping[str, Operator]
"""Operators by kind, see `NodeData`."""


@dataclass(frozen=True, slots=True)
class OnnxNode(Composite):
    """A node whose layers wait until shapes, or what decides, are known."""

    data: NodeData
    operator: Operator

    @property
    def name(self) -> str:
        """The node's kind."""
        return self.data.kind

    @property
    def num_outputs(self) -> int:
        """Number of outputs that the file names."""
        return self.data.num_outputs

    def decides(self, index: int) -> bool:
        """Return whether the converter needs the elements of an input."""
        return index in self.operator.decides

    def is_ready(self, inputs: Sequence[Tensor | None]) -> bool:
        """Return whether enough is known for the converter."""
        return not self.operator.needs_shapes or Composite.is_ready(self, inputs)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Nothing is known yet."""
        return (None,) * self.num_outputs

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Types that the operator says."""
        types = [None if info is None else info.data_type for info in inputs]
        return tuple(_output_types(self.data, self.operator, types))

    def expand(self, build: LayerBuilder, inputs: Sequence[Value | None]) -> Sequence[Value]:
        """Convert the node."""
        return convert(build, self.data, self.operator, inputs)


def _output_types(
    data: NodeData, operator: Operator, types: Sequence[DataType | None]
) -> Iterator[DataType]:
    """The types of the outputs that the file names, from those of the inputs."""
    specs = operator.types
    for number in range(data.num_outputs):
        yield _type_of(data, specs[min(number, len(specs) - 1)], types)


def _type_of(data: NodeData, spec: TypeSpec, types: Sequence[DataType | None]) -> DataType:
    if isinstance(spec, DataType):
        return spec
    if callable(spec):
        return spec(data, types)
    data_type = types[spec] if spec < len(types) else None
    if data_type is None:
        raise data.error(f"input {spec} is missing")
    return data_type


def convert(
    build: LayerBuilder, data: NodeData, operator: Operator, inputs: Sequence[Value | None]
) -> Sequence[Value]:
    """Outputs of a node that is ready, as many as the file names.

    Raises
    ------
    LayerValidationError
        If it gives fewer, or armpy cannot express it.
    """
    node = Node(build, data, inputs)
    is_half = any(value.info.data_type in HALVES for value in node.values)
    rounds = operator.rounds_once and is_half
    # Infinities and NaNs that a file's numbers give are its own.
    with np.errstate(all="ignore"):
        converted = operator.convert(widened(node) if rounds else node)
    outputs = [converted] if isinstance(converted, Value) else list(converted)
    if rounds:
        types = [None if value is None else value.info.data_type for value in inputs]
        wanted = list(_output_types(data, operator, types))
        outputs = [node.cast(*pair) for pair in zip(outputs, wanted, strict=False)]
    if len(outputs) < data.num_outputs:
        raise data.error(
            "the number of outputs is wrong",
            expected=f"at most {len(outputs)}",
            actual=data.num_outputs,
        )
    return outputs[: data.num_outputs]


def widened(node: Node) -> Node:
    """The node with its inputs of half precision in FLOAT32; constants stay constants."""

    def wide(value: Value | None) -> Value | None:
        if value is None or value.info.data_type not in HALVES:
            return value
        if value.data is None:
            return node.cast(value, DataType.FLOAT32)
        is_brain_float = value.info.data_type is DataType.BFLOAT16
        elements = bfloat16_values(value.data) if is_brain_float else value.data
        return node.constant(elements.astype(np.float32), DataType.FLOAT32)

    return node.of(node.data, [wide(value) for value in node.inputs])

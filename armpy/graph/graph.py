"""The graph that a network is: layers joined by values, never changed once made."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property

from armpy.core.dataclass import dataclass
from armpy.ops.operands import Operands
from armpy.ops.operation import Array, Operation
from armpy.tensor import Shape, TensorInfo, merge_shapes, read_only, shapes_agree
from armpy.types import DataType


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """One tensor of a graph: written once, read any number of times.

    References
    ----------
    Arm NN OutputSlot; NNAPI operand; ONNX value.
    """

    id: int  # unique in its graph, in order of creation
    info: TensorInfo  # data type, shape and quantisation
    name: str  # in the model file, or of the layer that makes it
    # The elements of a constant, in the dtype and shape of `info`; a read-only view of the array.
    data: Array | None = None

    def __post_init__(self) -> None:
        """Keep backends from writing to the memory that the constant was made of."""
        if self.data is not None and self.data.flags.writeable:
            object.__setattr__(self, "data", read_only(self.data))

    @property
    def is_constant(self) -> bool:
        """Return whether its elements are known."""
        return self.data is not None

    def __repr__(self) -> str:
        return f"Value({self.id}, {self.name!r}, {self.info})"


SIZE_TYPES = (DataType.SIGNED32, DataType.SIGNED64)
"""Data types of constants that may hold traced sizes."""


class SizesValue(Value):
    """A constant some of whose elements are traced sizes (`armpy.core.symbolic`).

    Parameters
    ----------
    id, info, name
        Fields as of `Value`.
    sizes : ndarray of object
        Integers, and at least one `Size`.

    Notes
    -----
    It lasts while a graph is specialised: reading `data` fixes the sizes.
    """

    __slots__ = ("sizes",)

    sizes: Array

    def __init__(self, id: int, info: TensorInfo, name: str, sizes: Array) -> None:
        for field, content in (("id", id), ("info", info), ("name", name), ("sizes", sizes)):
            object.__setattr__(self, field, content)

    @property
    def data(self) -> Array:
        """Elements of a constant, plain: results made of them hold for these sizes alone."""
        return self.sizes.astype(self.info.data_type.dtype)

    @property
    def is_constant(self) -> bool:
        """Whether the value is a constant, as of `Value`."""
        return True


@dataclass(frozen=True, eq=False, slots=True)
class Layer:
    """One operation at its place in a graph."""

    id: int  # unique in its graph; kept when optimisation changes the layer's surroundings
    name: str  # for people
    operation: Operation  # an object of a class of `armpy.ops`, with the attributes as fields
    inputs: tuple[Value | None, ...]  # by operand; None for an optional one that is left out
    outputs: tuple[Value, ...]  # by result
    origins: tuple[str, ...] = ()  # names of the layers that optimisation made it from

    @property
    def where(self) -> str:
        """The layer for messages: ``Convolution2d 'conv_3'``."""
        return f"{self.operation.name} '{self.name}'"

    @property
    def input_infos(self) -> tuple[TensorInfo | None, ...]:
        """Info of each input; None for one that is left out."""
        return tuple(None if value is None else value.info for value in self.inputs)

    @property
    def output_infos(self) -> tuple[TensorInfo, ...]:
        """Info of each output."""
        return tuple(value.info for value in self.outputs)

    def __getitem__(self, operand: str) -> Value:
        """The operand of a name that the operation's definition gives it, such as ``weights``.

        Raises
        ------
        InvalidArgumentError
            If there is no such operand, or it is left out.
        """
        return Operands(self.operation, self.inputs)[operand]

    def operand(self, name: str) -> Value | None:
        """An operand that may be left out: None then."""
        return Operands(self.operation, self.inputs).get(name)

    def constant(self, name: str) -> Array | None:
        """Elements of a constant operand; None if it is left out, or no constant."""
        value = self.operand(name)
        return None if value is None else value.data

    @property
    def output(self) -> Value:
        """The first output, which most operations have only."""
        return self.outputs[0]

    def __repr__(self) -> str:
        return f"Layer({self.id}, {self.where})"


@dataclass(frozen=True, eq=False, slots=True)
class Variable:
    """A tensor that keeps its elements from one execution to the next.

    Parameters
    ----------
    value : Value
        Read by layers: the elements that the last execution left.
    next_value : Value
        Written by a layer (or `value` itself): read by the next execution.
    initial : ndarray
        Elements before the first execution.
    key : hashable, optional
        Identifies it in a model with several networks: networks that share state share the
        variables with equal keys. Without one it is not shared.
    """

    value: Value
    next_value: Value
    initial: Array
    key: Hashable | None = None


def consumers_of(layers: Iterable[Layer]) -> Mapping[Value, tuple[Layer, ...]]:
    """The layers that read each value, each of them once, in order."""
    by_value: dict[Value, list[Layer]] = {}
    for layer in layers:
        for value in dict.fromkeys(layer.inputs):
            if value is not None:
                by_value.setdefault(value, []).append(layer)
    return {value: tuple(readers) for value, readers in by_value.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Layers in an order in which they can run, and the values at the graph's edge.

    Parameters
    ----------
    inputs : tuple of Value
        Given by the caller at each execution.
    outputs : tuple of Value
        Handed to the caller; `output_names` names them.
    layers : tuple of Layer
        Topologically sorted: each layer comes after those whose outputs it reads.
    variables : tuple of Variable
        State that lives between executions.
    default_shapes : tuple of (tuple of int or None)
        Per input, a concrete shape to prepare for where its info leaves dimensions open;
        left out if no input has one.
    output_shapes : tuple of (tuple of (int or None) or None)
        Per output, the shape that the model file declares, None if it declares none; left out if
        no output has one. It describes the output until inference knows more, and is never
        relied on.

    Notes
    -----
    Graphs are never edited. Whatever changes one builds another, so a backend that is shown a
    part of a graph cannot damage it.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    output_names: tuple[str, ...]
    layers: tuple[Layer, ...]
    variables: tuple[Variable, ...] = ()
    default_shapes: tuple[tuple[int, ...] | None, ...] = ()
    output_shapes: tuple[Shape | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.default_shapes:
            object.__setattr__(self, "default_shapes", (None,) * len(self.inputs))
        if not self.output_shapes:
            object.__setattr__(self, "output_shapes", (None,) * len(self.outputs))

    @cached_property
    def consumers(self) -> Mapping[Value, tuple[Layer, ...]]:
        """The layers that read each value, in order; a value that none reads is missing."""
        return consumers_of(self.layers)

    @cached_property
    def producers(self) -> Mapping[Value, Layer]:
        """The layer that writes each value; inputs, constants and state are missing."""
        return {value: layer for layer in self.layers for value in layer.outputs}

    @cached_property
    def positions(self) -> Mapping[Layer, int]:
        """Map each layer to its position among `layers`."""
        return {layer: index for index, layer in enumerate(self.layers)}

    @property
    def input_infos(self) -> tuple[TensorInfo, ...]:
        """Info of each input."""
        return tuple(value.info for value in self.inputs)

    @property
    def output_infos(self) -> tuple[TensorInfo, ...]:
        """Info of each output."""
        return tuple(value.info for value in self.outputs)

    @property
    def described_outputs(self) -> tuple[TensorInfo, ...]:
        """Info of each output; `output_shapes` gives dimensions that inference leaves open.

        A declared shape that contradicts the inferred one is ignored: files are often wrong.
        """
        return tuple(
            info.with_shape(merge_shapes(declared, info.shape))
            if shapes_agree(declared, info.shape)
            else info
            for info, declared in zip(self.output_infos, self.output_shapes, strict=True)
        )

    @cached_property
    def result_set(self) -> frozenset[Value]:
        """The values of `results`, to ask whether one is among them."""
        return frozenset(self.results)

    @property
    def results(self) -> tuple[Value, ...]:
        """Values that outlive an execution: outputs, then the variables' next values."""
        return (*self.outputs, *(variable.next_value for variable in self.variables))

    @property
    def sources(self) -> tuple[Value, ...]:
        """Values that are there before an execution: inputs, then the variables' values."""
        return (*self.inputs, *(variable.value for variable in self.variables))

    @cached_property
    def is_fully_shaped(self) -> bool:
        """Return whether every shape in the graph is known."""
        return all(value.info.is_fully_shaped for value in self.values())

    def values(self) -> Iterator[Value]:
        """Every value of the graph once, constants included, in a fixed order."""
        seen: dict[Value, None] = dict.fromkeys(self.sources)
        for layer in self.layers:
            seen.update(dict.fromkeys(value for value in layer.inputs if value is not None))
            seen.update(dict.fromkeys(layer.outputs))
        seen.update(dict.fromkeys(self.results))
        return iter(seen)

    def __repr__(self) -> str:
        inputs = ", ".join(value.name for value in self.inputs)
        outputs = ", ".join(self.output_names)
        return f"Graph({inputs} -> {outputs}, {len(self.layers)} layers)"

"""The builder that applications and front-ends call to make a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armpy.core.arguments import check_instance
from armpy.core.symbolic import is_traced
from armpy.errors import ArmpyError, GraphValidationError, InvalidArgumentError
from armpy.graph import SIZE_TYPES, Graph, Layer, SizesValue, Value, Variable
from armpy.ops.attributes import check_attributes
from armpy.ops.operation import Array, Operation, located
from armpy.ops.reshaping import Reshape
from armpy.tensor import (
    Quantization,
    Shape,
    TensorInfo,
    check_quantization,
    check_shape_fits,
    format_shape,
    shapes_agree,
)
from armpy.types import DataType

_PLAIN_TYPES: dict[str, DataType] = {
    t.dtype.name: t
    for t in reversed(DataType)
    if not (t.is_quantized or t.is_bit_pattern or t.is_narrow or t.is_string)
}

_TEXT = "SUTO"
"""Kinds of dtypes that hold strings: objects are only known by their elements."""


class Network:
    """A network under construction.

    Every layer is checked when it is added, and the shapes of its outputs are inferred. A
    layer can only read existing values, so a network is always in an order in which
    it can run.

    Parameters
    ----------
    name : str
        Name of the network, for messages and reports.
    allow_expanded_dims : bool
        Whether the shape of an output passed to `add` may differ from the one that follows from
        the inputs in dimensions of 1. A Reshape then makes it so.

    Examples
    --------
    >>> import numpy as np
    >>> from armpy import DataType, Network, TensorInfo, ops
    >>> net = Network("sum")
    >>> a = net.input("a", TensorInfo((2,), DataType.FLOAT32))
    >>> b = net.constant(np.float32([10, 8]))
    >>> net.output("c", net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), a, b))
    >>> net.build().outputs[0].info.shape
    (2,)

    References
    ----------
    Arm NN INetwork.
    """

    def __init__(self, name: str = "network", *, allow_expanded_dims: bool = False) -> None:
        self.name = name
        self._allows_expanded_dims = allow_expanded_dims
        self._values: dict[Value, None] = {}
        self._num_values = 0
        self._num_layers = 0
        self._inputs: list[Value] = []
        self._input_names: set[str] = set()
        self._default_shapes: list[tuple[int, ...] | None] = []
        self._output_shapes: list[Shape | None] = []
        self._outputs: dict[str, Value] = {}
        self._layers: list[Layer] = []
        self._variables: dict[Value, Variable] = {}

    def input(
        self, name: str, info: TensorInfo, *, default_shape: tuple[int, ...] | None = None
    ) -> Value:
        """Add a tensor that the caller gives at each execution.

        Parameters
        ----------
        default_shape : tuple of int, optional
            A shape that fits `info`, for which the network is prepared when it is loaded
            if `info` leaves dimensions open.

        Raises
        ------
        InvalidArgumentError
            If the name is taken or the default shape does not fit.
        """
        check_instance(info, f"input '{name}'", TensorInfo)
        if name in self._input_names:
            raise InvalidArgumentError(
                "two inputs have the same name",
                where=self.name,
                expected="a new name",
                actual=f"'{name}'",
                fix="Rename one of them",
            )
        if default_shape is not None:
            check_shape_fits(name, info.shape, default_shape)
        value = self._counted(Value(self._num_values, info, name))
        self._input_names.add(name)
        self._inputs.append(value)
        self._default_shapes.append(default_shape)
        return value

    def constant(
        self,
        data: npt.ArrayLike,
        *,
        name: str = "",
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a tensor whose elements never change.

        Parameters
        ----------
        data : array_like
            The stored elements. An array is kept without a copy if it is C-contiguous and
            in native byte order; it must not be changed afterwards.
        data_type : DataType, optional
            Needed for quantised types; otherwise it follows from the array's dtype. Traced sizes,
            in an array of objects, are int64. Arrays of ``str`` or ``bytes`` are STRING.

        Raises
        ------
        InvalidArgumentError
            If no data type fits the array.
        """
        value = constant_value(self._num_values, data, name, data_type, quantization)
        return self._counted(value)

    def variable(
        self,
        name: str,
        info: TensorInfo,
        initial: Array | None = None,
        *,
        key: Hashable | None = None,
    ) -> Value:
        """Add a tensor that keeps its elements between executions; see `assign`.

        Parameters
        ----------
        info : TensorInfo
            Fully shaped.
        initial : ndarray, optional
            Elements before the first execution; each the zero point if left out.
        key : hashable, optional
            Identifies it among a model's variables; see `armpy.graph.Variable`.

        Raises
        ------
        InvalidArgumentError
            If a dimension is not known or the elements do not fit.
        """
        where = f"variable '{name}'"
        check_instance(info, where, TensorInfo)
        if initial is None:
            initial = info.data_type.zeros(info.known_shape)
            if info.zero_point:
                initial.fill(info.zero_point)
        initial = _native(initial, where)
        if info.data_type.is_string:
            initial = _strings(initial, where)
        if initial.shape != info.known_shape or initial.dtype != info.data_type.dtype:
            raise InvalidArgumentError(
                "the initial elements have the wrong type or shape",
                where=where,
                expected=f"{info.data_type.dtype} {format_shape(info.shape)}",
                actual=f"{initial.dtype} {format_shape(initial.shape)}",
            )
        value = self._counted(Value(self._num_values, info, name))
        self._variables[value] = Variable(value, value, initial, key)
        return value

    def assign(self, variable: Value, value: Value) -> None:
        """Say what a variable holds when the next execution begins.

        Raises
        ------
        GraphValidationError
            If `variable` is not one of this network's variables.
        InvalidArgumentError
            If shape, type or quantisation differ.
        """
        self._check_known(value, "assign")
        self._check_known(variable, "assign")
        if variable not in self._variables:
            raise GraphValidationError("the value is not a variable", actual=repr(variable))
        check_assigned(variable, value)
        self._variables[variable] = replace(self._variables[variable], next_value=value)

    def add(
        self,
        operation: Operation,
        *inputs: Value | None,
        name: str = "",
        output: TensorInfo | None = None,
    ) -> Value:
        """Add a layer with one output and return that output.

        Parameters
        ----------
        *inputs : Value or None
            Operands in the order of ``operation.inputs``; None for an optional one left out.
        name : str
            Shown in messages and reports; made from the operation's name if left out.
        output : TensorInfo, optional
            Needed where the output's quantisation does not follow from the inputs; a shape
            of None is inferred.

        Raises
        ------
        LayerValidationError
            If operands and attributes do not go together.
        GraphValidationError
            If an input belongs to another network.
        """
        if self._allows_expanded_dims and output is not None:
            shape = self._differing_shape(operation, inputs, output)
            if shape is not None:
                unshaped = output.with_shape(None)
                layer = self.add_layer(operation, inputs, name=name, outputs=(unshaped,))
                name = f"Reshape_for:{layer.name}-0"
                return self.add_layer(Reshape(shape), layer.outputs, name=name).outputs[0]
        return self.add_layer(operation, inputs, name=name, outputs=(output,)).outputs[0]

    def _differing_shape(
        self, operation: Operation, inputs: Sequence[Value | None], output: TensorInfo
    ) -> tuple[int, ...] | None:
        """The declared shape of an output, if it differs from the inferred one in 1s alone."""
        if not output.is_fully_shaped:
            return None
        infos = [value.info if isinstance(value, Value) else None for value in inputs]
        try:
            (inferred,) = operation.infer(infos, (output.with_shape(None),))
        except ArmpyError:  # raised when the layer is added, with its name
            return None
        if not inferred.is_fully_shaped or inferred.shape == output.shape:
            return None
        long = [[dim for dim in info.known_shape if dim != 1] for info in (inferred, output)]
        return output.known_shape if long[0] == long[1] else None

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        *,
        name: str = "",
        outputs: Sequence[TensorInfo | None] = (),
        output_names: Sequence[str] = (),
        layer_id: int | None = None,
        origins: tuple[str, ...] = (),
    ) -> Layer:
        """Add a layer with any number of outputs; parameters and errors as for `add`."""
        fix = f"Make one: {operation.__name__}()" if isinstance(operation, type) else ""
        check_instance(operation, f"Network.add, layer '{name}'", Operation, fix=fix)
        is_new = layer_id is None  # the others have been checked in an earlier graph
        layer_id = self._num_layers if layer_id is None else layer_id
        self._num_layers = max(self._num_layers, layer_id + 1)
        name = name or f"{operation.name}_{layer_id}"
        for value in inputs:
            if value is not None:
                self._check_known(value, f"{operation.name} '{name}'")
        trimmed = list(inputs)
        while trimmed and trimmed[-1] is None:
            trimmed.pop()
        try:
            if is_new:
                check_attributes(operation)
            infos = operation.infer([v.info if v else None for v in trimmed], outputs)
        except ArmpyError as error:
            error.fix = error.fix or "Change the layer's attributes, or its inputs' shapes or types"
            raise located(lambda: f"{operation.name} '{name}'", error) from error.__cause__
        names = output_names or [
            name if len(infos) == 1 else f"{name}:{i}" for i in range(len(infos))
        ]
        results = tuple(
            self._counted(Value(self._num_values, info, n))
            for info, n in zip(infos, names, strict=True)
        )
        layer = Layer(layer_id, name, operation, tuple(trimmed), results, origins)
        self._layers.append(layer)
        return layer

    def output(self, name: str, value: Value, *, declared_shape: Shape | None = None) -> None:
        """Hand a value to the caller under a name.

        Parameters
        ----------
        declared_shape : tuple of (int or None), optional
            The shape that the model file declares; see `armpy.graph.Graph.output_shapes`.

        Raises
        ------
        InvalidArgumentError
            If the name is taken.
        """
        check_instance(name, "output", str, fix='The name comes first: output("y", value)')
        self._check_known(value, f"output '{name}'")
        if name in self._outputs:
            failed = f"there is an output '{name}' already"
            raise InvalidArgumentError(failed, where=self.name, fix="Give it another name")
        self._outputs[name] = value
        self._output_shapes.append(declared_shape)

    def build(self) -> Graph:
        """The graph as it stands; the network can go on growing.

        Raises
        ------
        GraphValidationError
            If there is no output.
        """
        if not self._outputs:
            raise GraphValidationError(
                "the network has no output",
                where=self.name,
                expected="at least 1 output",
                fix="Declare an output with Network.output(name, value)",
            )
        return Graph(
            tuple(self._inputs),
            tuple(self._outputs.values()),
            tuple(self._outputs),
            tuple(self._layers),
            tuple(self._variables.values()),
            tuple(self._default_shapes),
            tuple(self._output_shapes),
        )

    def _counted(self, value: Value) -> Value:
        """Count a value as one of this network's, if its quantisation can be used."""
        check_quantization(value.info, f"tensor '{value.name}'")
        self._num_values += 1
        self._values[value] = None
        return value

    def _check_known(self, value: Value, where: str) -> None:
        """Check that a value belongs to this network."""
        if not isinstance(value, Value):
            raise InvalidArgumentError(
                "this is not a value of a network",
                where=where,
                expected="what input, constant, variable or add returned",
                actual=type(value).__name__,
                fix="Make elements a value with Network.constant",
            )
        if value not in self._values:
            raise GraphValidationError(
                f"{value!r} belongs to another network",
                where=where,
                fix="Use values that this network's methods returned",
            )


def constant_value(
    value_id: int,
    data: npt.ArrayLike,
    name: str,
    data_type: DataType | None = None,
    quantization: Quantization | None = None,
) -> Value:
    """A constant of a graph; parameters and errors as for `Network.constant`."""
    array = _native(data, f"constant '{name}'")
    label = name or f"constant_{value_id}"
    size_type = data_type or DataType.SIGNED64
    if array.dtype == object and size_type in SIZE_TYPES and is_traced(*array.flat):
        info = TensorInfo(array.shape, size_type, is_constant=True)
        return SizesValue(value_id, info, label, array)
    if data_type is DataType.STRING or (data_type is None and array.dtype.kind in _TEXT):
        info = TensorInfo(array.shape, DataType.STRING, is_constant=True)
        return Value(value_id, info, label, _strings(array, f"constant '{name}'"))
    chosen = data_type or _PLAIN_TYPES.get(array.dtype.name)
    if chosen is None or chosen.dtype != array.dtype:
        raise InvalidArgumentError(
            "the elements do not have the data type's dtype",
            where=f"constant '{name}'",
            expected="a number dtype" if chosen is None else str(chosen.dtype),
            actual=str(array.dtype),
        )
    info = TensorInfo(array.shape, chosen, quantization, is_constant=True)
    return Value(value_id, info, label, array)


def check_assigned(variable: Value, value: Value) -> None:
    """Check that a variable can hold a value.

    Raises
    ------
    InvalidArgumentError
        If shape, type or quantisation differ.
    """
    old, new = variable.info, value.info
    same_type = old.data_type is new.data_type and old.quantization == new.quantization
    if not same_type or not shapes_agree(old.shape, new.shape):
        raise InvalidArgumentError(
            "a variable is assigned a tensor of another shape or type",
            where=f"variable '{variable.name}'",
            expected=str(old),
            actual=str(new),
        )


class OperatorBuilder:
    """Adds the layers of one operator, each under a name of its own; a `LayerBuilder`.

    Parameters
    ----------
    add : callable
        Adds a layer: operation, inputs, known facts of its outputs, name.
    constant : callable
        Adds a constant: elements, data type, quantisation.
    name : str
        Name of the operator, with which the names of its layers begin.
    """

    def __init__(
        self,
        add: Callable[
            [Operation, Sequence[Value | None], Sequence[TensorInfo | None], str], Sequence[Value]
        ],
        constant: Callable[[Array, DataType | None, Quantization | None], Value],
        name: str = "",
    ) -> None:
        self._add = add
        self._constant = constant
        self._name = name
        self._names: Counter[str] = Counter()

    @classmethod
    def of(cls, network: Network, name: str = "") -> OperatorBuilder:
        """A builder that adds layers to a network; without a name, each is given its own."""
        return cls(
            lambda operation, inputs, outputs, name: (
                network.add_layer(operation, inputs, name=name, outputs=outputs).outputs
            ),
            lambda data, data_type, quantization: network.constant(
                data, data_type=data_type, quantization=quantization
            ),
            name,
        )

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None] = (),
        name: str = "",
    ) -> tuple[Value, ...]:
        """Add a layer; names that repeat are numbered in the order of the layers."""
        if self._name:
            name = f"{self._name}/{name or operation.name}"
        self._names[name] += 1
        number = f"_{self._names[name]}" if self._names[name] > 1 else ""
        return tuple(self._add(operation, inputs, outputs, f"{name}{number}"))

    def constant(
        self,
        data: Array,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a constant."""
        return self._constant(data, data_type, quantization)


def _native(data: object, where: str) -> Array:
    """An array in C order and native byte order; `data` itself wherever it is one."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InvalidArgumentError(
            f"the elements cannot be made an array: {error}", where=where
        ) from error
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)


def _strings(array: Array, where: str) -> Array:
    """An array of canonical strings; `array` itself if it is one."""
    try:
        from armpy.core.strings import as_strings  # noqa: PLC0415 - few networks have strings

        return as_strings(array)
    except ArmpyError as error:
        raise located(lambda: where, error) from error.__cause__

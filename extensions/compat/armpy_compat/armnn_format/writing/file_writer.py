"""Collects the layers of an .armnn file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from armpy import DataType, TensorInfo
from armpy.errors import UnimplementedError
from armpy.graph import Layer, Value
from armpy.ops import Activation, FusedActivation
from armpy.ops.operation import Array, as_attribute
from armpy.plugins.hooks.flatbuffers import Field, FlatTable, write_flatbuffer
from armpy_compat.armnn_format.reading import IDENTIFIER
from armpy_compat.armnn_format.schema import ARMNN_SCHEMA, ENUMERATIONS
from armpy_compat.armnn_format.tensors import DATA_TYPES, NOT_SPECIFIED, SCALAR

Slot: TypeAlias = tuple[int, int]
"""Index of a layer, and number of one of its output slots."""

_TYPE_NUMBERS: Mapping[DataType, int] = {
    data_type: number for number, data_type in DATA_TYPES.items()
}
_LAYER_TYPES: Mapping[str, int] = {
    kind: number for number, kind in enumerate(ENUMERATIONS["LayerType"].split())
}
_STORED = {
    1: ("ByteData", np.int8),
    2: ("ShortData", np.int16),
    4: ("IntData", np.int32),
    8: ("LongData", np.int64),
}
"""The table that holds elements, and what it holds them as, by their size in bytes."""

_RELU, _BOUNDED_RELU = 3, 4

SAVE_INSTEAD = "Save a compiled model with armpy.save"


class ArmnnWriter:
    """Collects the layers of a file, in an order in which each follows those that it reads."""

    def __init__(self) -> None:
        self._layers: list[FlatTable] = []
        self._slots: dict[Value, Slot] = {}
        self._input_ids: list[int] = []
        self._output_ids: list[int] = []

    def add_input(self, value: Value, name: str) -> None:
        """Add an input, whose binding id is its number."""
        base = self._base("Input", name, (), (value.info,))
        self._slots[value] = self._bound("Input", base, self._input_ids)

    def add_output(self, value: Value, name: str) -> None:
        """Add an output, whose binding id is its number."""
        base = self._base("Output", name, (self.slot(value),), ())
        self._bound("Output", base, self._output_ids)

    def set_slots(self, values: Sequence[Value], slots: Sequence[Slot]) -> None:
        """Note where the values of a layer are in the file."""
        self._slots.update(zip(values, slots, strict=True))

    def slot(self, value: Value | Slot) -> Slot:
        """The slot of a value; a constant is added as a layer when it is first read."""
        if isinstance(value, tuple):
            return value
        if value not in self._slots:
            self._slots[value] = self.constant(np.asarray(value.data), value.info, value.name)
        return self._slots[value]

    def constant(self, data: Array, info: TensorInfo, name: str) -> Slot:
        """Add a constant."""
        (slot,) = self.put("Constant", name, (), (info,), {"input": stored_table(data, info, name)})
        return slot

    def put(
        self,
        kind: str,
        name: str,
        inputs: Sequence[Value | Slot],
        outputs: Sequence[TensorInfo],
        fields: Mapping[str, Field] | None = None,
        *,
        descriptor: tuple[str, Mapping[str, Field]] | None = None,
    ) -> list[Slot]:
        """Add a layer.

        Parameters
        ----------
        fields : mapping of str to Field, optional
            Fields of the layer's table, besides its base.
        descriptor : (str, mapping), optional
            Name of the descriptor's table, and its fields.

        Returns
        -------
        list of Slot
            One for each output.
        """
        base = self._base(kind, name, [self.slot(value) for value in inputs], outputs)
        index = len(self._layers)
        written: dict[str, Field] = {"base": base, **(fields or {})}
        if descriptor is not None:
            written["descriptor"] = FlatTable(*descriptor)
        self._append(kind, written)
        return [(index, number) for number in range(len(outputs))]

    def activated(self, layer: Layer, slot: Slot, activation: FusedActivation) -> Slot:
        """The output of a layer after its activation function, which is a layer in the format."""
        low, high = activation.bounds
        if low is None:
            return slot
        data_type = layer.output.info.data_type
        if not any(data_type in rule.inputs[0] for rule in Activation.type_rules):
            raise layer_error(
                layer, f"the .armnn format has no activation function of {data_type.name}"
            )
        fields: dict[str, Field] = {"activationFunction": _RELU}
        if high is not None:
            fields = {"activationFunction": _BOUNDED_RELU, "a": high, "b": low}
        (activated_slot,) = self.put(
            "Activation",
            f"{layer.name}/activation",
            (slot,),
            (layer.output.info,),
            descriptor=("ActivationDescriptor", fields),
        )
        return activated_slot

    def file(self) -> bytes:
        """The contents of the file."""
        versions = FlatTable(
            "FeatureCompatibilityVersions",
            {"bindingIdsScheme": 1, "weightsLayoutScheme": 1, "constantTensorsAsInputs": 1},
        )
        graph = FlatTable(
            "SerializedGraph",
            {
                "layers": self._layers,
                "inputIds": np.array(self._input_ids, np.int32),
                "outputIds": np.array(self._output_ids, np.int32),
                "featureVersions": versions,
            },
        )
        return write_flatbuffer(graph, IDENTIFIER, ARMNN_SCHEMA)

    def _base(
        self, kind: str, name: str, inputs: Sequence[Slot], outputs: Sequence[TensorInfo]
    ) -> FlatTable:
        sources = [
            FlatTable("InputSlot", {"index": number, "connection": index | slot << 32})
            for number, (index, slot) in enumerate(inputs)
        ]
        results = [
            FlatTable("OutputSlot", {"index": number, "tensorInfo": info_table(info, name)})
            for number, info in enumerate(outputs)
        ]
        return FlatTable(
            "LayerBase",
            {
                "index": len(self._layers),
                "layerName": name,
                "layerType": _LAYER_TYPES[kind],
                "inputSlots": sources,
                "outputSlots": results,
            },
        )

    def _bound(self, kind: str, base: FlatTable, ids: list[int]) -> Slot:
        bindable = FlatTable("BindableLayerBase", {"base": base, "layerBindingId": len(ids)})
        ids.append(len(ids))
        self._append(kind, {"base": bindable})
        return len(self._layers) - 1, 0

    def _append(self, kind: str, fields: Mapping[str, Field]) -> None:
        self._layers.append(FlatTable("AnyLayer", {"layer": FlatTable(f"{kind}Layer", fields)}))


def info_table(info: TensorInfo, where: str) -> FlatTable:
    """The description of a tensor.

    Raises
    ------
    UnimplementedError
        If the format has no such type.
    """
    if info.data_type not in _TYPE_NUMBERS:
        raise UnimplementedError(
            f"the .armnn format has no type {info.data_type.name}",
            where=f"tensor '{where}'",
            expected=" or ".join(data_type.name for data_type in _TYPE_NUMBERS),
        )
    fields: dict[str, Field] = {"dataType": _TYPE_NUMBERS[info.data_type]}
    if info.shape is None:
        fields["dimensionality"] = NOT_SPECIFIED
    elif not info.shape:
        fields.update(dimensionality=SCALAR, dimensions=np.array([1], np.uint32))
    else:
        sizes = [dim or 0 for dim in info.shape]
        marks = [dim is not None for dim in info.shape]
        fields["dimensions"] = np.array(sizes, np.uint32)
        fields["dimensionSpecificity"] = np.array(marks, np.int8)
    if info.is_constant:
        fields["isConstant"] = True
    quantization = info.quantization
    if quantization is not None:
        fields["quantizationScale"] = quantization.scale
        fields["quantizationOffset"] = quantization.zero_point
        if quantization.axis is not None:
            if any(quantization.zero_points):
                raise UnimplementedError(
                    "the .armnn format has no zero points along an axis", where=f"tensor '{where}'"
                )
            fields["quantizationScales"] = np.array(quantization.scales, np.float32)
            fields["quantizationDim"] = quantization.axis
    return FlatTable("TensorInfo", fields)


def stored_table(data: Array, info: TensorInfo, where: str) -> FlatTable:
    """A constant with its elements; errors as of `info_table`."""
    described = info_table(TensorInfo(info.shape, info.data_type, info.quantization, True), where)
    name, dtype = _STORED[data.dtype.itemsize]
    elements = np.ascontiguousarray(data).reshape(-1).view(dtype)
    return FlatTable(
        "ConstTensor", {"info": described, "data": FlatTable(name, {"data": elements})}
    )


def layer_error(layer: Layer, failed: str) -> UnimplementedError:
    """The error for a layer that cannot be written."""
    return UnimplementedError(
        failed, where=layer.where, fix="Save a compiled model with armpy.save"
    )


def known(layer: Layer, name: str) -> Any:  # Any: attributes are of many types
    """An attribute, or the constant operand that becomes it.

    Raises
    ------
    UnimplementedError
        If it is known only when the network runs.
    """
    value = layer.operation.attributes()[name]
    if value is not None:
        return value
    for number, operand in enumerate(layer.operation.inputs):
        source = layer.inputs[number] if number < len(layer.inputs) else None
        if operand.becomes == name and source is not None:
            if source.data is None:
                raise layer_error(layer, f"its {name} is known only when the network runs")
            return as_attribute(source.data)
    return None


def shape_of(layer: Layer, value: Value | None) -> tuple[int, ...]:
    """The shape of a value; `UnimplementedError` if it is not fully known."""
    if value is None or not value.info.is_fully_shaped:
        raise layer_error(layer, "a shape that the format needs is not known")
    return value.info.known_shape


def constant_of(layer: Layer, value: Value | None, what: str) -> Value:
    """A value that has to be constant in the format."""
    if value is None or value.data is None:
        raise layer_error(layer, f"its {what} are not constant")
    return value


def unsigned(numbers: Sequence[int]) -> Array:
    """Numbers as the format stores sizes and axes."""
    return np.array(numbers, np.int64).astype(np.uint32)

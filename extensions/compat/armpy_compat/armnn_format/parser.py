"""Network of the layers of an .armnn file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import Network, TensorInfo, ops
from armpy.errors import ParserError
from armpy.graph import Value
from armpy.ops.operation import Array, located
from armpy.plugins.hooks import ModelFile, ParseSettings
from armpy.plugins.hooks.flatbuffers import TableReader, table_errors
from armpy.tensor import format_shape
from armpy_compat.armnn_format.layer import ArmnnLayer, Converter, LayerTable
from armpy_compat.armnn_format.layers import (
    elementwise,
    movement,
    normalization,
    parts,
    pooling,
    recurrent,
    weighted,
)
from armpy_compat.armnn_format.reading import (
    FileContents,
    FileLayer,
    in_topological_order,
    read_contents,
)
from armpy_compat.armnn_format.tensors import (
    output_infos,
    stored_tensor,
    tensor_info,
    typed_elements,
)

CONVERTERS: Mapping[str, Converter] = {
    kind: converter
    for module in (elementwise, movement, normalization, parts, pooling, recurrent, weighted)
    for kind, converter in module.CONVERTERS.items()
}
"""Converters by kind of layer; `Input`, `Output` and `Constant` are the parser's own."""


def parse_file(file: ModelFile, settings: ParseSettings) -> Network:
    """Turn an .armnn file into a network.

    Returns
    -------
    Network
        Inputs and outputs have the names of their layers, and are in the order of the file.

    Raises
    ------
    ParserError
        If the file is damaged or not understood. No other error comes from a file.
    """
    try:
        return _GraphParser(read_contents(file.data), Network(file.stem)).parse()
    except ParserError as error:
        located(lambda: file.label, error)
        raise


class _GraphParser:
    """Makes a network of the layers of a file."""

    def __init__(self, contents: FileContents, network: Network) -> None:
        self._contents = contents
        self._network = network
        self._values: dict[tuple[int, int], Value] = {}
        self._transposed: dict[tuple[Value, tuple[int, ...]], Value] = {}

    def parse(self) -> Network:
        """Add every layer."""
        for layer in self._contents.inputs:
            self._add_input(layer)
        for layer in in_topological_order(self._contents.layers):
            if layer.kind not in ("Input", "Output"):
                self._add_layer(layer)
        if not self._contents.outputs:
            raise ParserError("the file has no output")
        for layer in self._contents.outputs:
            values = self._inputs(layer)
            if len(values) != 1:
                raise layer.base.error("an output reads one layer", actual=str(len(values)))
            self._network.output(layer.name, values[0])
        return self._network

    def _add_input(self, layer: FileLayer) -> None:
        infos = output_infos(layer.base)
        if len(infos) != 1:
            raise layer.base.error("an input has one output slot", actual=str(len(infos)))
        self._values[layer.index, 0] = self._network.input(layer.name, infos[0])

    def _add_layer(self, layer: FileLayer) -> None:
        with table_errors(layer.table):
            if layer.kind == "Constant":
                self._values[layer.index, 0] = self._constant(layer)
                return
            outputs = output_infos(layer.base)
            armnn_layer = ArmnnLayer(
                self._network,
                layer.kind,
                layer.name,
                layer.table,
                _tensor_of,
                self._inputs(layer),
                outputs,
                self._transposed,
                has_old_weights=not self._contents.versions.weights_layout,
            )
            outputs_made = CONVERTERS[layer.kind](armnn_layer)
            if len(outputs_made) != len(outputs):
                armnn_layer.expect_outputs(len(outputs_made))
            for number, (value, info) in enumerate(zip(outputs_made, outputs, strict=True)):
                self._values[layer.index, number] = _shaped(armnn_layer, value, info)

    def _constant(self, layer: FileLayer) -> Value:
        """A constant; its slot says what the elements are, as long as they are as many and large.

        Notes
        -----
        Arm NN copies the bytes into the tensor of the slot, so that the description beside the
        elements does not count.
        """
        data, info = stored_tensor(layer.table.table("input"), layer.table, "elements")
        (declared, *_) = output_infos(layer.base) or [info]
        is_fitting = (
            declared.is_fully_shaped
            and declared.num_elements == info.num_elements
            and declared.data_type.size_bytes == info.data_type.size_bytes
        )
        if is_fitting and declared != info:
            data, info = typed_elements(data, declared, layer.table), declared
        return self._network.constant(
            data, name=layer.name, data_type=info.data_type, quantization=info.quantization
        )

    def _inputs(self, layer: FileLayer) -> Sequence[Value]:
        """The values that a layer reads, described as its input slots say."""
        slots = layer.base.tables("inputSlots", "input slot")
        values = []
        for slot, (source, number) in zip(slots, layer.sources, strict=True):
            value = self._values.get((source, number))
            if value is None:
                raise layer.base.error(
                    f"it reads output {number} of layer {source}, which has none"
                )
            if slot.flag("isOverridden"):
                info = tensor_info(slot.table("overriddenTensorInfo"), layer.base)
                value = self._overridden(layer, value, info)
            values.append(value)
        return values

    def _overridden(self, layer: FileLayer, value: Value, info: TensorInfo) -> Value:
        """A value whose elements a layer reads with another shape or quantisation."""
        if info.data_type is not value.info.data_type:
            raise layer.base.error(
                "an input slot reads elements as another type",
                expected=value.info.data_type.name,
                actual=info.data_type.name,
            )
        name = f"{layer.name}/input"
        if info.is_fully_shaped and info.shape != value.info.shape:
            reshaped = TensorInfo(None, info.data_type, value.info.quantization)
            value = self._network.add(
                ops.Reshape(info.known_shape), value, name=f"{name}/Reshape", output=reshaped
            )
        if info.data_type.is_quantized and info.quantization != value.info.quantization:
            declared = info.with_shape(value.info.shape)
            operation = ops.BitCast(info.data_type)
            value = self._network.add(operation, value, name=f"{name}/BitCast", output=declared)
        return value


def _tensor_of(table: LayerTable, field: str) -> tuple[Array, TensorInfo]:
    assert isinstance(table, TableReader)
    return stored_tensor(table.table(field), table, field)


def _shaped(layer: ArmnnLayer, value: Value, declared: TensorInfo) -> Value:
    """A value in the declared shape, which may differ in dimensions of 1 alone."""
    if value.info.data_type is not declared.data_type:
        raise layer.error(
            "the output has another type than follows from the inputs",
            expected=value.info.data_type.name,
            actual=declared.data_type.name,
        )
    shape, wanted = value.info.shape, declared.shape
    if shape == wanted or None in (shape, wanted) or None in (*(shape or ()), *(wanted or ())):
        return value
    long = [[dim for dim in dims or () if dim != 1] for dims in (shape, wanted)]
    if long[0] != long[1]:
        raise layer.error(
            "the declared output shape does not match the inputs",
            expected=format_shape(shape),
            actual=format_shape(wanted),
        )
    return layer.helper(ops.Reshape(declared.known_shape), value)

"""Makes a graph of the layers that a program has connected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import armpy
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Value
from armpy_compat.armnn_format.layer import ArmnnLayer, Converter
from armpy_compat.armnn_format.parser import CONVERTERS
from armpy_compat.pyarmnn.conversion import runtime_errors, to_armpy
from armpy_compat.pyarmnn.layers import IConnectableLayer, IOutputSlot
from armpy_compat.pyarmnn.lowering.connected_layer import connected_layer

_REFUSED: Mapping[str, str] = {
    "Merge": "Use the operation If of armpy.Network.",
    "StandIn": "Write the operation for armpy.Network: see docs/how_to/adding_an_operation.md.",
    "Switch": "Use the operation If of armpy.Network.",
}
"""Remedies for layers that nothing runs, in Arm NN neither."""

LOWERINGS: Mapping[str, Converter] = {
    kind: converter for kind, converter in CONVERTERS.items() if kind not in _REFUSED
}
"""Functions that make layers, by kind: as those of .armnn files."""


@dataclass(frozen=True, eq=False, slots=True)
class LoweredNetwork:
    """A graph, with the ids of its inputs and outputs."""

    graph: Graph
    input_ids: Mapping[str, int]
    output_ids: Mapping[str, int]
    """`input_ids` and `output_ids`: By name."""


def lower_network(layers: Sequence[IConnectableLayer]) -> LoweredNetwork:
    """Make a graph of connected layers.

    Raises
    ------
    RuntimeError
        If an input of a layer is not connected; if armpy has no such layer; if operands do not go
        together, or what was set of an output is not what follows from the inputs.
    """
    network = armpy.Network("INetwork")
    values: dict[IOutputSlot, Value] = {}
    input_ids: dict[str, int] = {}
    output_ids: dict[str, int] = {}
    transposed: dict[tuple[Value, tuple[int, ...]], Value] = {}
    for layer in _ordered(layers):
        with runtime_errors():
            if layer.kind == "Input":
                name = _unique(layer, input_ids)
                input_ids[name] = layer.binding_id
                values[layer.outputs[0]] = _input(network, layer, name)
            elif layer.kind == "Output":
                name = _unique(layer, output_ids)
                output_ids[name] = layer.binding_id
                network.output(name, values[_source(layer, 0)])
            else:
                inputs = [values[_source(layer, index)] for index in range(len(layer.inputs))]
                connected = connected_layer(network, layer, inputs, _infos(layer), transposed)
                outputs = _made(connected)
                _check(connected, outputs)
                values.update(zip(layer.outputs, outputs, strict=True))
    with runtime_errors():
        return LoweredNetwork(network.build(), input_ids, output_ids)


def _ordered(layers: Sequence[IConnectableLayer]) -> list[IConnectableLayer]:
    """Layers in an order in which they can run; RuntimeError if there is a circle."""
    ordered: dict[IConnectableLayer, None] = {}
    waiting = list(layers)
    while waiting:
        ready = [
            layer
            for layer in waiting
            if all(_source(layer, i).layer in ordered for i in range(len(layer.inputs)))
        ]
        if not ready:
            names = ", ".join(layer.where for layer in waiting)
            raise RuntimeError(f"Graph is not acyclic: these layers wait for each other: {names}")
        ordered.update(dict.fromkeys(ready))
        waiting = [layer for layer in waiting if layer not in ordered]
    return list(ordered)


def _source(layer: IConnectableLayer, index: int) -> IOutputSlot:
    """The output that an input of a layer is connected to."""
    source = layer.inputs[index].source
    if source is None:
        raise RuntimeError(
            f"Input connection #{index} must be connected for {layer.kind} layer {layer.name}"
        )
    return source


def _unique(layer: IConnectableLayer, used_ids: Mapping[str, int]) -> str:
    """A name of an input or output that no other one has."""
    if layer.binding_id in used_ids.values():
        raise RuntimeError(f"{layer.where}: there is another one with id {layer.binding_id}")
    name = layer.name or f"{layer.kind.lower()}_{layer.binding_id}"
    return name if name not in used_ids else f"{name}_{layer.binding_id}"


def _input(network: armpy.Network, layer: IConnectableLayer, name: str) -> Value:
    slot = layer.outputs[0]
    if not slot.IsTensorInfoSet():
        raise RuntimeError(
            f"Output slot TensorInfo not set on {layer.where}. Call"
            " layer.GetOutputSlot(0).SetTensorInfo(info)."
        )
    return network.input(name, to_armpy(slot.GetTensorInfo(), where=layer.where))


def _infos(layer: IConnectableLayer) -> list[armpy.TensorInfo | None]:
    """Return the description that the program has set of each output, or None."""
    return [
        to_armpy(slot.GetTensorInfo(), where=f"output {slot.index} of {layer.where}")
        if slot.IsTensorInfoSet()
        else None
        for slot in layer.outputs
    ]


def _made(layer: ArmnnLayer) -> Sequence[Value]:
    """The values of the layer's outputs."""
    if layer.kind == "Constant":
        return [layer.stored("input")]
    lowering = LOWERINGS.get(layer.kind)
    if lowering is None:
        raise RuntimeError(
            f"{layer.table.where}: armpy runs no layer of this kind. {_REFUSED[layer.kind]}"
        )
    return lowering(layer)


def _check(layer: ArmnnLayer, outputs: Sequence[Value]) -> None:
    """Check that each output is what was set of it."""
    for index, (value, info) in enumerate(zip(outputs, layer.outputs, strict=True)):
        if info is None or not value.info.is_fully_shaped:
            continue
        if info.known_shape != (value.info.known_shape or (1,)):
            raise RuntimeError(
                f"{layer.kind}Layer: TensorShape set on OutputSlot[{index}] does not match"
                f" the inferred shape. : {_sizes(info.known_shape)} !="
                f" {_sizes(value.info.known_shape)}"
            )
        if info.data_type is not value.info.data_type:
            raise RuntimeError(
                f"{layer.kind}Layer: the data type set on OutputSlot[{index}] is"
                f" {info.data_type.name}, but the layer gives {value.info.data_type.name}"
            )


def _sizes(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"

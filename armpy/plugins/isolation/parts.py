"""Parts of networks in the form in which workers are sent them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np

from armpy.backend import OptionValues, WorkloadInfo
from armpy.core.dataclass import dataclass
from armpy.errors import BackendCapabilityError
from armpy.graph import Graph, SubgraphView, Value
from armpy.graph.network import Network
from armpy.ops.operation import Operation
from armpy.plugins.isolation.shared_block import aligned, create_block, forbid_writing, map_block
from armpy.tensor import TensorInfo


@dataclass(frozen=True, slots=True)
class PackedPart:
    """A graph in shared memory: its pickle, followed by the elements of its constants."""

    descriptor: int
    """File descriptor of the shared memory."""
    pickle_bytes: int
    buffers: tuple[tuple[int, int], ...]
    """Offset and size of each constant."""


def graph_of_view(view: SubgraphView) -> Graph:
    """A subgraph as a graph of its own, inputs ``i0``..., outputs ``o0``... in the view's order."""
    net = Network("part")
    known: dict[Value, Value] = {}
    for index, value in enumerate(view.inputs):
        known[value] = net.input(f"i{index}", value.info)
    for layer in view.layers:
        copy = net.add_layer(
            layer.operation,
            [None if value is None else _mapped(net, value, known) for value in layer.inputs],
            name=layer.name,
            outputs=layer.output_infos,
        )
        known.update(zip(layer.outputs, copy.outputs, strict=True))
    for index, value in enumerate(view.outputs):
        net.output(f"o{index}", known[value])
    return net.build()


def graph_of_layer(operation: Operation, info: WorkloadInfo) -> tuple[Graph, tuple[int, ...]]:
    """One layer as a graph, and which of the layer's inputs the graph's inputs are."""
    net = Network("layer")
    inputs: list[Value | None] = []
    indices: list[int] = []
    for index, (tensor, data) in enumerate(zip(info.inputs, info.constants, strict=True)):
        if tensor is None:
            inputs.append(None)
        elif data is not None:
            kind, quantization = tensor.data_type, tensor.quantization
            inputs.append(net.constant(data, data_type=kind, quantization=quantization))
        else:
            inputs.append(net.input(f"i{len(indices)}", tensor))
            indices.append(index)
    copy = net.add_layer(operation, inputs, name=info.name, outputs=info.outputs)
    for index, value in enumerate(copy.outputs):
        net.output(f"o{index}", value)
    return net.build(), tuple(indices)


def _mapped(net: Network, value: Value, known: dict[Value, Value]) -> Value:
    if value not in known and value.data is not None:
        kind, quantization = value.info.data_type, value.info.quantization
        known[value] = net.constant(
            value.data, name=value.name, data_type=kind, quantization=quantization
        )
    return known[value]


def is_sendable(infos: Sequence[TensorInfo]) -> bool:
    """Return whether the sizes of all tensors are known, so that they can lie in shared memory."""
    return all(info.is_fully_shaped for info in infos)


def pack(graph: Graph, model_options: OptionValues, *, relaxed: bool = False) -> PackedPart:
    """Write a part into shared memory.

    Raises BackendCapabilityError if an operation cannot be pickled, as those of modules outside
    packages.
    """
    arrays: list[pickle.PickleBuffer] = []
    try:
        about = graph, dict(model_options), relaxed
        # Out of band: constants go into the block as they are, without a copy in the pickle.
        text = pickle.dumps(about, protocol=5, buffer_callback=arrays.append)
    # Reducers are code of operations, which may raise anything.
    except Exception as error:
        raise BackendCapabilityError(f"the part cannot be sent to a worker: {error}") from error
    views = [array.raw() for array in arrays]
    position = aligned(len(text))
    places = []
    for view in views:
        places.append((position, view.nbytes))
        position += aligned(view.nbytes)
    descriptor = create_block(position)
    with map_block(descriptor) as block:
        block[: len(text)] = text
        for view, (start, size) in zip(views, places, strict=True):
            if size:
                target = np.frombuffer(block, np.uint8, size, start)
                target[:] = np.frombuffer(view, np.uint8)
                del target  # or the block could not be closed
    forbid_writing(descriptor)  # the next worker is to find it as it is
    return PackedPart(descriptor, len(text), tuple(places))

"""Models that take or give sequences, optionals and maps, which armpy has as tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from armpy import Model, ModelMetadata
from armpy_compat.onnxruntime.errors import NotImplemented, status_error
from armpy_onnx.backend import OnnxModel
from armpy_onnx.messages.canonical import initial_names
from armpy_onnx.messages.inference import inferred_graph
from armpy_onnx.reading import is_described

_Labels = dict[str, list[int | str]]


class StructuredModel:
    """A model with sequences or optionals, which is loaded anew for each call.

    Parameters
    ----------
    load : callable
        Called with a model's bytes and options of the front-end.
    model : onnx.ModelProto
    """

    def __init__(self, load: Callable[..., Model], model: Any) -> None:
        initial = initial_names(model.graph)
        self._inputs = [value.name for value in model.graph.input if value.name not in initial]
        self._outputs = [value.name for value in model.graph.output]
        self._model = OnnxModel(load, model)

    def run(self, feed: Mapping[str, object], outputs: object = None) -> dict[str, object]:
        """Run with inputs by name; those that are left out are empty optionals."""
        results = self._model.run({name: feed.get(name) for name in self._inputs})
        return dict(zip(self._outputs, results, strict=True))


def has_structures(model: Any) -> bool:  # Any: onnx.ModelProto
    """Return whether a model takes or gives sequences of tensors or optionals."""
    return any(
        value.type.WhichOneof("value") in ("sequence_type", "optional_type")
        and _map_type(value.type) is None
        for value in (*model.graph.input, *model.graph.output)
    )


def with_inferred_types(model: Any) -> list[Any]:  # Any: onnx.ModelProto, onnx.ValueInfoProto
    """Outputs as the file declares them; those without a type or shape as inferred."""
    declared = [*model.graph.output]
    if all(is_described(value.type) for value in declared):
        return declared
    graph = inferred_graph(model)
    inferred = {} if graph is None else {value.name: value for value in graph.output}
    return [
        value if is_described(value.type) else inferred.get(value.name, value) for value in declared
    ]


def labels_of(outputs: Sequence[Any], metadata: Callable[[], ModelMetadata]) -> _Labels:
    """Keys of the outputs that are maps, by name, in the order of the tensor's columns.

    Parameters
    ----------
    outputs : sequence of onnx.ValueInfoProto
    metadata : callable
        Called if there are any.

    Raises
    ------
    NotImplemented
        If the keys of a map cannot be known before it is computed.
    """
    labels: _Labels = {}
    for output in outputs:
        kind = _map_type(output.type)
        if kind is None:
            continue
        described = metadata().outputs.get(output.name)
        if described is None or not described.labels:
            text = f"output '{output.name}': armpy gives maps of ZipMap alone"
            raise status_error(NotImplemented, text)
        is_number = kind.key_type != onnx.TensorProto.STRING
        labels[output.name] = [int(key) if is_number else key for key in described.labels]
    return labels


def maps_of(results: Mapping[str, Any], labels: _Labels) -> dict[str, Any]:
    """Results with lists of maps in place of tensors of their values."""
    mapped = {
        name: [dict(zip(keys, row, strict=True)) for row in results[name].tolist()]
        for name, keys in labels.items()
        if name in results
    }
    return {**results, **mapped}


def _map_type(kind: Any) -> Any:  # Any: onnx.TypeProto
    """The type of the maps in a sequence; None for what holds no maps."""
    if kind.WhichOneof("value") != "sequence_type":
        return None
    element = kind.sequence_type.elem_type
    return element.map_type if element.WhichOneof("value") == "map_type" else None

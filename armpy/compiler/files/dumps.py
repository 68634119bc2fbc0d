"""Files of graph dumps: drawings for Graphviz, and parts of networks with inputs and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from armpy.backend import HostTensorHandle, IBackendInternal, NetworkResources, WorkloadInfo
from armpy.core.symbolic import is_traced
from armpy.errors import ArmpyError
from armpy.frontends.tflite_writer.tflite import view_bytes
from armpy.graph import Graph, SubgraphView, Value
from armpy.graph.dump import to_dot
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry
from armpy.tensor import TensorInfo
from armpy.types import REFERENCE_BACKEND_ID, BackendId

_SEED = 0


def write_drawing(path: Path, graph: Graph, backends: Mapping[int, BackendId] | None) -> None:
    """Draw a graph; raises OSError if the file cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_dot(graph, backends), encoding="utf-8")


def write_part(stem: Path, part: SubgraphView) -> Iterator[tuple[str, ArmpyError | OSError]]:
    """Write a part with inputs and answers; yields what could not be written, and why."""
    values = (*part.inputs, *part.outputs)
    if not all(
        value.info.is_fully_shaped and not is_traced(*value.info.known_shape) for value in values
    ):
        return  # a trial with open sizes, which come with each call
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        stem.with_suffix(".tflite").write_bytes(view_bytes(part))
    except (ArmpyError, OSError) as error:
        yield "the file", error
        return
    try:
        random = np.random.default_rng(_SEED)
        inputs = [_elements(random, value.info) for value in part.inputs]
        reference = BackendRegistry.discover().get(REFERENCE_BACKEND_ID)
        answers = _answers(reference, part, inputs)
        names = {f"input_{number}": array for number, array in enumerate(inputs)}
        names |= {f"output_{number}": array for number, array in enumerate(answers)}
        np.savez(stem.with_suffix(".npz"), allow_pickle=False, **names)
    except (ArmpyError, OSError) as error:
        yield "the answer", error


def _elements(random: np.random.Generator, info: TensorInfo) -> Array:
    """Elements for an input."""
    dtype, shape = info.data_type.dtype, info.known_shape
    if dtype.kind == "f":
        return random.normal(0, 1, shape).astype(dtype)
    if info.data_type.is_quantized:
        limits = np.iinfo(str(dtype))
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return random.integers(0, 2, shape).astype(dtype)  # indexes and truth values, which fit


def _answers(reference: IBackendInternal, part: SubgraphView, inputs: list[Array]) -> list[Array]:
    """What a backend computes, layer by layer."""
    factory = reference.create_workload_factory(NetworkResources())
    arrays: dict[Value, Array] = dict(zip(part.inputs, inputs, strict=True))

    def array_of(value: Value | None) -> Array | None:
        if value is None:
            return None
        return arrays[value] if value.data is None else value.data

    for layer in part.layers:
        operands = [array_of(value) for value in layer.inputs]
        constants = tuple(None if value is None else value.data for value in layer.inputs)
        info = WorkloadInfo(
            layer.name, tuple(layer.input_infos), tuple(layer.output_infos), constants
        )
        results = [
            HostTensorHandle(o, np.empty(o.known_shape, o.data_type.dtype))
            for o in layer.output_infos
        ]
        factory.create_workload(layer.operation, info).execute(
            [
                None if i is None or a is None else HostTensorHandle(i, a)
                for i, a in zip(layer.input_infos, operands, strict=True)
            ],
            results,
        )
        arrays.update(zip(layer.outputs, [handle.map() for handle in results], strict=True))
    return [arrays[value] for value in part.outputs]

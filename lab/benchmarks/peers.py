"""Engines that armpy is compared with, and armpy itself, ready to run a model file.

Each takes a model file, inputs in order and a number of threads, binds everything once, and
gives a function that runs the model on these inputs and nothing else, and one that gives the
outputs of the last run. An engine that is not installed, or cannot take the model, raises
`BackendUnavailableError` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

import armpy
from armpy.compiler import Evaluator, specialize
from armpy.core.turns import timed
from armpy.errors import ArmpyError, BackendUnavailableError
from armpy.graph import Graph, SubgraphView
from armpy.ops.operation import Array
from armpy_tools.measure.engines import open_engine, refusal
from lab.benchmarks.common import OPEN_SIZE, calls_in, find_example
from lab.benchmarks.mending import mended

Numbers = Mapping[str, Sequence[int]]

NO_NUMBERS: Numbers = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ReadyEngine:
    """An engine with a model, ready to run.

    Parameters
    ----------
    run : callable
        Runs the model once; what is timed.
    outputs : callable
        The outputs of the last run.
    """

    run: Callable[[], object]
    outputs: Callable[[], Sequence[Array]]

    def turn(self, burst_s: float = 0.0) -> Callable[[], float]:
        """A turn of one call, or of so many that they take a while; finds one call's seconds."""
        return timed(self.run, calls_in(burst_s, self.run))


def _loaded(path: Path) -> armpy.Model:
    """A model to look at."""
    return armpy.load(path, runtime=armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])))


def example_inputs(
    path: Path, shapes: Numbers = NO_NUMBERS, values: Numbers = NO_NUMBERS
) -> list[Array]:
    """Random inputs for a model; see `DataType.random`.

    Parameters
    ----------
    path : Path
    shapes : mapping of str to sequence of int
        Of inputs by name, where the model leaves them open.
    values : mapping of str to sequence of int
        A number by name of an input that is full of it, such as a sampling rate.
    """
    return random_inputs(_loaded(path), shapes, values)


def random_inputs(
    model: armpy.Model, shapes: Numbers = NO_NUMBERS, values: Numbers = NO_NUMBERS
) -> list[Array]:
    """As `example_inputs`, of a model that is loaded."""
    generator = np.random.default_rng(0)
    inputs = []
    for spec in model.inputs:
        shape = [dim or (OPEN_SIZE if axis else 1) for axis, dim in enumerate(spec.shape or ())]
        # Not `spec.random`: a size that the model has fixed may be another.
        array = spec.data_type.random(generator, shapes.get(spec.name, shape))
        inputs.append(np.full_like(array, values[spec.name][0]) if spec.name in values else array)
    return inputs


def tensor_kind(graph: Graph) -> str:
    """``float32`` if most layers of a network write floats, else ``quantised``."""
    outputs = [value.info.data_type for layer in graph.layers for value in layer.outputs]
    num_quantised = sum(data_type.is_quantized for data_type in outputs)
    return "quantised" if 2 * num_quantised > len(outputs) else "float32"


def kind_of_model(path: Path) -> str:
    """`tensor_kind` of a model file."""
    graph = _loaded(path).graph
    if path.suffix == ".onnx":  # files of floats between pairs of conversions are quantised, too
        is_quantised = any(value.info.data_type.is_quantized for value in graph.values())
        return "quantised" if is_quantised else "float32"
    return tensor_kind(graph)


def armpy_numba(
    path: Path, inputs: Sequence[Array], num_threads: int, *, is_relaxed: bool = False
) -> ReadyEngine:
    """Armpy with NumbaAcc, its inputs and outputs bound."""
    options = armpy.RuntimeOptions(
        backends=["NumbaAcc", "CpuRef"],
        backend_options={"NumbaAcc": {"num_threads": num_threads, "fast_math_enabled": is_relaxed}},
    )
    model = armpy.load(path, runtime=armpy.Runtime(options))
    feeds = {info.name: array for info, array in zip(model.inputs, inputs, strict=True)}
    execution = model.bind(feeds, cancellable=False)
    return ReadyEngine(execution, lambda: list(execution.outputs.values()))


def peer_file(name: str, path: Path, inputs: Sequence[Array]) -> str | Path | bytes:
    """What a peer reads in the place of a model file: mended, or exported for it."""
    if path.suffix == ".onnx":
        if name == "litert":
            raise BackendUnavailableError("LiteRT reads no .onnx files", where=name)
        return path
    return exported(path, inputs) if name == "onnxruntime" else mended(path)


def ready_peer(
    name: str, path: Path, inputs: Sequence[Array], num_threads: int, **options: bool
) -> ReadyEngine:
    """A peer that is bound to inputs, for one caller at a time."""
    engine = open_engine(name, peer_file(name, path, inputs), num_threads, **options)
    try:
        engine.bind(inputs)
    except RuntimeError as error:
        raise refusal(name, error) from error
    return ReadyEngine(engine.caller(), engine.outputs)


def exported(path: Path, inputs: Sequence[Array]) -> bytes:
    """A float network of another format as an ONNX file."""
    find_example()
    try:
        from armpy_onnxruntime.export import export_model  # noqa: PLC0415
    except ImportError as error:
        raise BackendUnavailableError(
            f"its example backend is missing: {error}", where="onnxruntime"
        ) from error
    from armpy_reference import ReferenceBackend  # noqa: PLC0415

    model = _loaded(path)
    if tensor_kind(model.graph) != "float32":
        raise BackendUnavailableError(
            "quantised networks are not exported to ONNX", where="onnxruntime"
        )
    shapes = [array.shape for array in inputs]
    graph = specialize(model.graph, shapes, evaluator=Evaluator(ReferenceBackend()))
    try:
        return export_model(SubgraphView.of(graph, graph.layers))
    except (ArmpyError, KeyError, NotImplementedError) as error:
        raise BackendUnavailableError(
            f"it cannot be exported to ONNX: {error}", where="onnxruntime"
        ) from error


Prepare = Callable[[Path, Sequence[Array], int], ReadyEngine]

ENGINES: Mapping[str, Prepare] = {
    "armpy": armpy_numba,
    "LiteRT": partial(ready_peer, "litert"),
    "OpenVINO": partial(ready_peer, "openvino"),
    "ONNX Runtime": partial(ready_peer, "onnxruntime"),
}
"""Every engine by name; armpy first. Float32 is computed as float32."""

RELAXED_ENGINES: Mapping[str, Prepare] = {
    **ENGINES,
    "armpy": partial(armpy_numba, is_relaxed=True),
    "OpenVINO default": partial(ready_peer, "openvino", is_relaxed=True),
}
"""Every engine for models whose float32 may be computed as less; peers that can do both, twice."""

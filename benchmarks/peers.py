"""Engines that armpy is compared with, and armpy itself, behind one function each.

Each takes a model file, inputs in order and a number of threads, binds everything once, and
gives a function that runs the model on these inputs and nothing else, and one that gives the
outputs of the last run. An engine that is not installed, or cannot take the model, raises
`UnavailableError` with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.mending import mended

Array = npt.NDArray[Any]  # Any: whatever the model takes


@dataclass(frozen=True, slots=True)
class Prepared:
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


class UnavailableError(Exception):
    """An engine cannot run a model here."""


def example_inputs(path: Path, batch: int = 1) -> list[Array]:
    """Random inputs for a model: numbers in [-1, 1), any stored integers of quantised ones.

    Parameters
    ----------
    path : Path
    batch : int
        Size of the first axis, where the model leaves it open or it is 1.

    Notes
    -----
    Other integers are 0 or 1, as they may be indices of tables, or masks.
    """
    import armpy  # noqa: PLC0415

    random = np.random.default_rng(0)
    model = armpy.load(path, runtime=armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])))
    inputs: list[Array] = []
    for info in model.inputs:
        shape = info.shape or ()
        size = [dim or (1 if axis == 0 else 224) for axis, dim in enumerate(shape)]
        if batch > 1 and size and size[0] == 1:
            size[0] = batch
        dtype = info.data_type.dtype
        if dtype.kind == "f":
            inputs.append(random.uniform(-1, 1, size).astype(dtype))
        else:
            low, high = info.data_type.integer_range if info.data_type.is_quantized else (0, 1)
            inputs.append(random.integers(low, high, size, endpoint=True).astype(dtype))
    return inputs


def tensor_kind(graph: Any) -> str:  # Any: armpy is imported as late as can be
    """``float32`` if most layers of a network write floats, else ``quantised``."""
    outputs = [value.info.data_type for layer in graph.layers for value in layer.outputs]
    num_quantised = sum(data_type.is_quantized for data_type in outputs)
    return "quantised" if 2 * num_quantised > len(outputs) else "float32"


def kind_of_model(path: Path) -> str:
    """`tensor_kind` of a model file."""
    import armpy  # noqa: PLC0415

    reference = armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"]))
    graph = armpy.load(path, runtime=reference).graph
    if path.suffix == ".onnx":  # files of floats between pairs of conversions are quantised, too
        is_quantised = any(value.info.data_type.is_quantized for value in graph.values())
        return "quantised" if is_quantised else "float32"
    return tensor_kind(graph)


def armpy_numba(
    path: Path, inputs: Sequence[Array], num_threads: int, *, is_relaxed: bool = False
) -> Prepared:
    """Armpy with NumbaAcc, its inputs and outputs bound."""
    import armpy  # noqa: PLC0415

    options = armpy.RuntimeOptions(
        backends=["NumbaAcc", "CpuRef"],
        backend_options={"NumbaAcc": {"num_threads": num_threads, "fast_math_enabled": is_relaxed}},
    )
    model = armpy.load(path, runtime=armpy.Runtime(options))
    feeds = {info.name: array for info, array in zip(model.inputs, inputs, strict=True)}
    execution = model.bind(feeds, cancellable=False)
    return Prepared(execution, lambda: list(execution.outputs.values()))


def litert(path: Path, inputs: Sequence[Array], num_threads: int) -> Prepared:
    """LiteRT with XNNPACK."""
    if path.suffix == ".onnx":
        raise UnavailableError("LiteRT reads no .onnx files")
    try:
        from ai_edge_litert.interpreter import Interpreter  # noqa: PLC0415
    except ImportError as error:
        raise UnavailableError(f"LiteRT is not installed: {error}") from error
    interpreter = Interpreter(model_path=str(mended(path)), num_threads=num_threads)
    details = interpreter.get_input_details()
    for detail, array in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    return Prepared(
        interpreter.invoke, lambda: [interpreter.get_tensor(index) for index in outputs]
    )


def openvino(
    path: Path, inputs: Sequence[Array], num_threads: int, *, is_relaxed: bool = False
) -> Prepared:
    """OpenVINO, which reads the files itself, set for the shortest time of one call.

    Notes
    -----
    Relaxed, its precision is left alone: it computes in bfloat16 where the processor has
    instructions for it.
    """
    try:
        settings: dict[str, str | int] = {"NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
        compiled, bound = _openvino_compiled(path, inputs, num_threads, settings, is_relaxed)
        request = bound(compiled.create_infer_request())
        request.infer()
    except RuntimeError as error:
        raise UnavailableError(f"OpenVINO does not take it: {str(error)[:100]}") from error
    count = len(compiled.outputs)
    return Prepared(
        request.infer, lambda: [np.array(request.get_output_tensor(i).data) for i in range(count)]
    )


def openvino_for_throughput(
    path: Path, inputs: Sequence[Array], num_threads: int
) -> tuple[Any, Callable[[Any], Any]]:  # Any: it has no types
    """OpenVINO's model compiled for THROUGHPUT; and what binds a request to the inputs."""
    try:
        return _openvino_compiled(path, inputs, num_threads, {"PERFORMANCE_HINT": "THROUGHPUT"})
    except RuntimeError as error:
        raise UnavailableError(f"OpenVINO does not take it: {str(error)[:100]}") from error


def _openvino_compiled(
    path: Path,
    inputs: Sequence[Array],
    num_threads: int,
    hints: Mapping[str, str | int],
    is_relaxed: bool = False,
) -> tuple[Any, Callable[[Any], Any]]:  # Any: it has no types
    """A compiled model; and what binds a request to the inputs."""
    try:
        import openvino as ov  # noqa: PLC0415
    except ImportError as error:
        raise UnavailableError(f"OpenVINO is not installed: {error}") from error
    core = ov.Core()
    model = core.read_model(path if path.suffix == ".onnx" else mended(path))
    shapes = {port: list(array.shape) for port, array in zip(model.inputs, inputs, strict=True)}
    model.reshape(shapes)
    settings = {"INFERENCE_NUM_THREADS": num_threads, **hints}
    if not is_relaxed:
        settings["INFERENCE_PRECISION_HINT"] = "f32"  # else bfloat16 where it can
    compiled = core.compile_model(model, "CPU", settings)
    _check_settings(compiled, settings)

    def bound(request: Any) -> Any:
        for port, array in zip(compiled.inputs, inputs, strict=True):
            request.set_tensor(port, ov.Tensor(array, shared_memory=True))
        return request

    return compiled, bound


def _check_settings(
    compiled: Any,  # Any: it has no types
    settings: Mapping[str, str | int],
) -> None:
    """Refuse to measure OpenVINO with other settings than it was asked for."""
    for name in settings.keys() & {"INFERENCE_PRECISION_HINT", "INFERENCE_NUM_THREADS"}:
        found = str(compiled.get_property(name)).replace("<Type: 'float32'>", "f32")
        if found != str(settings[name]):
            raise UnavailableError(f"OpenVINO runs with {name} {found} instead of {settings[name]}")


def onnx_runtime(path: Path, inputs: Sequence[Array], num_threads: int) -> Prepared:
    """ONNX Runtime, on a model exported from the float network."""
    session = onnx_session(path, inputs, num_threads)
    binding = session.io_binding()
    for given, array in zip(session.get_inputs(), inputs, strict=True):
        binding.bind_cpu_input(given.name, array)
    for result in session.get_outputs():
        binding.bind_output(result.name)
    return Prepared(lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu)


def onnx_session(
    path: Path, inputs: Sequence[Array], num_threads: int
) -> Any:  # Any: it has no types
    """ONNX Runtime's session for an .onnx file, or for a float network of another format."""
    try:
        import onnxruntime  # noqa: PLC0415
    except ImportError as error:
        raise UnavailableError(f"ONNX Runtime is missing: {error}") from error
    exported = str(path) if path.suffix == ".onnx" else _exported(path, inputs)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    try:
        return onnxruntime.InferenceSession(
            exported, sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its exceptions have no class of their own
        raise UnavailableError(f"ONNX Runtime does not take it: {str(error)[:100]}") from error


def _exported(path: Path, inputs: Sequence[Array]) -> bytes:
    """A float network as an ONNX file."""
    try:
        from armpy_onnxruntime.export import export_model  # noqa: PLC0415
    except ImportError as error:
        raise UnavailableError(f"ONNX Runtime's example backend is missing: {error}") from error
    from armpy_reference import ReferenceBackend  # noqa: PLC0415

    import armpy  # noqa: PLC0415
    from armpy.compiler import Evaluator  # noqa: PLC0415
    from armpy.compiler.specialization import specialize  # noqa: PLC0415
    from armpy.errors import ArmpyError  # noqa: PLC0415
    from armpy.graph import SubgraphView  # noqa: PLC0415

    reference = armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"]))
    model = armpy.load(path, runtime=reference)
    if tensor_kind(model.graph) != "float32":
        raise UnavailableError("quantised networks are not exported to ONNX")
    shapes = [array.shape for array in inputs]
    graph = specialize(model.graph, shapes, evaluator=Evaluator(ReferenceBackend()))
    try:
        return export_model(SubgraphView.of(graph, graph.layers))
    except (ArmpyError, KeyError, NotImplementedError) as error:
        raise UnavailableError(f"it cannot be exported to ONNX: {error}") from error


ENGINES: Mapping[str, Callable[[Path, Sequence[Array], int], Prepared]] = {
    "armpy": armpy_numba,
    "LiteRT": litert,
    "OpenVINO": openvino,
    "ONNX Runtime": onnx_runtime,
}
"""Every engine by name; armpy first. Float32 is computed as float32."""

RELAXED_ENGINES: Mapping[str, Callable[[Path, Sequence[Array], int], Prepared]] = {
    **ENGINES,
    "armpy": partial(armpy_numba, is_relaxed=True),
    "OpenVINO default": partial(openvino, is_relaxed=True),
}
"""Every engine for models whose float32 may be computed as less; peers that can do both, twice."""


def limit_threads(num_threads: int) -> None:
    """Keep the process on as many cores as threads are to be used."""
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(num_threads)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[-num_threads:])

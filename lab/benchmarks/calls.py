"""Times calls of a model through armpy's doors, in turns, on one thread.

Usage::

    python -m lab.benchmarks.calls DOOR,... [MODEL...] [--engines ID,...] [--json FILE]

A row is one way to call; the first of a door is what the others are compared with. Printed are the
median in microseconds and, of the pairs of one round, the median difference with the interval of
its 95 % and the median ratio. Inputs are zeros; open dimensions are 1.

The doors are those of `DOORS`. ``core``, ``litert``, ``pyarmnn`` and ``hosted`` take .tflite files,
``onnxruntime`` .onnx files; without a model, ``core`` and ``onnxruntime`` take one layer of next to
no work. ``nnapi`` and ``isolated`` take sums of vectors of their own. Engines of ``hosted`` are
backends, by default LiteRt, OpenVino and OrtCpu, each compared with the engine that reads the model
by itself; another backend of `armpy.backend.IEngineBackend` is compared with the program that it
has compiled.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import armpy
from armpy import DataType, Network, TensorInfo, ops
from armpy.backend import IEngineProgram
from armpy.core.turns import take_turns, timed
from armpy.errors import ArmpyError, BackendCapabilityError
from armpy.execution.calls.invocation import Invocation
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.memory import StepMemory
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import Array
from armpy_tools.measure.engines import open_engine
from armpy_tools.measure.ratio import median_interval
from lab.benchmarks.common import calls_in, description, keep_to_cores, write_json
from lab.benchmarks.peers import exported, random_inputs

Calls = dict[str, Callable[[], object]]
Rows = Iterator[tuple[str, Calls]]
"""Names of what is called, each with the ways to call it."""

ENGINES = {"LiteRt": "litert", "OpenVino": "openvino", "OrtCpu": "onnxruntime"}
"""Engines that can read a model by themselves, by backend."""

_ROUNDS = 101
_ROUND_S = 0.002
_SIZES = (8, 1 << 12, 1 << 16, 1 << 20)


def zeros(model: armpy.Model) -> dict[str, Array]:
    """An input of each kind; open dimensions are 1."""
    return {
        spec.name: np.zeros([size or 1 for size in spec.shape or ()], spec.data_type.dtype)
        for spec in model.inputs
    }


def core(models: Sequence[Path], _: Sequence[str]) -> Rows:
    """From the work of NumbaAcc or CpuRef outwards to a call that an event loop awaits."""
    paths: Sequence[Path | None] = models or [None]
    for path in paths:
        for backend in ("NumbaAcc", "CpuRef"):
            with _on_backend(path, backend) as model:
                yield f"{path.name if path else 'one layer'} on {backend}", _core_calls(model)


def _on_backend(path: Path | None, backend: str) -> armpy.Model:
    """A model, or one layer of no work, on one backend and one thread."""
    if path is not None:
        return armpy.load(path, backends=[backend, "CpuRef"], num_threads=1)
    net = Network()
    x = net.input("x", TensorInfo((8,), DataType.FLOAT32))
    net.output("y", net.add(ops.Reshape((2, 4)), x))
    options = armpy.RuntimeOptions(backends=[backend, "CpuRef"], num_threads=1)
    return armpy.Model(net, armpy.Runtime(options), closes_runtime=True)


def _core_calls(model: armpy.Model) -> Calls:
    """The calls, from the innermost to the outermost; the work itself first."""
    inputs = zeros(model)
    outputs = model.run(inputs)
    sources, results = list(inputs.values()), list(outputs.values())
    network = model.runtime.get_network(model.network_id)
    program = network.program_for(tuple(array.shape for array in sources))
    execution, loop = model.bind(inputs), asyncio.new_event_loop()
    calls: Calls = {}
    if isinstance(program, CompiledProgram):
        memory = program.take_memory()
        handles = (*memory.sources, *memory.results)
        for handle, array in zip(handles, (*sources, *results), strict=True):
            handle.array = array
        calls |= _native_call(memory, [*sources, *results])
        calls["workloads"] = lambda: _run_steps(memory)
        calls["program.run"] = lambda: program.run(sources, results)
    return calls | {
        "bound": execution,
        "LoadedNetwork.run": lambda: network.run(sources, results),
        "model.run(inputs, outputs)": lambda: model.run(inputs, outputs),
        "model.run(inputs)": lambda: model.run(inputs),
        "model(*arrays)": lambda: model(*sources),
        "start().result()": lambda: execution.start().result(),
        "await run_async": lambda: loop.run_until_complete(model.run_async(inputs)),
    }


def _run_steps(memory: StepMemory) -> None:
    """Call every workload."""
    for execute, inputs, outputs in memory.steps:
        execute(inputs, outputs)


def _native_call(memory: StepMemory, tensors: list[Array]) -> Calls:
    """The native function of a network that NumbaAcc has made one program of."""
    workload = getattr(memory.steps[0][0], "__self__", None)
    if type(workload).__name__ != "ProgramWorkload" or len(memory.steps) > 1:
        return {}
    instance = workload._idle[0]  # type: ignore[union-attr]  # its class is known
    return {"native call": lambda: instance.function(*tensors)}


def litert(models: Sequence[Path], _: Sequence[str]) -> Rows:
    """LiteRT's interface on armpy, and LiteRT itself."""
    from ai_edge_litert.interpreter import Interpreter as Peer  # noqa: PLC0415 - of this door alone

    from armpy_compat.litert.interpreter import Interpreter  # noqa: PLC0415 - as above

    for path in models:
        model = armpy.load(path, num_threads=1)
        calls: Calls = {"bound": model.bind(zeros(model))}
        for owner, kind in (("armpy's", Interpreter), ("LiteRT's", Peer)):
            interpreter = kind(str(path), num_threads=1)
            interpreter.allocate_tensors()
            calls[f"{owner} invoke"] = interpreter.invoke
            calls[f"{owner} cycle"] = _cycle_of(interpreter)
        yield path.name, calls


def _cycle_of(interpreter: Any) -> Callable[[], None]:  # Any: LiteRT's, or armpy's
    """A call that sets the inputs, runs, and copies the outputs."""
    values = [
        (details["index"], np.zeros(details["shape"], details["dtype"]))
        for details in interpreter.get_input_details()
    ]
    outputs = [details["index"] for details in interpreter.get_output_details()]

    def cycle() -> None:
        for index, value in values:
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        for index in outputs:
            interpreter.get_tensor(index)

    return cycle


def onnxruntime(models: Sequence[Path], _: Sequence[str]) -> Rows:
    """ONNX Runtime's interface on armpy, and ONNX Runtime itself."""
    import onnx  # noqa: PLC0415 - of this door alone
    import onnxruntime as peer  # noqa: PLC0415 - as above

    from armpy_compat import onnxruntime as compat  # noqa: PLC0415 - as above

    text = '<ir_version: 9, opset_import: ["" : 18]> g (float[8] x) => (float[8] y) { y = Neg (x) }'
    for source in [*map(str, models)] or [onnx.parser.parse_model(text).SerializeToString()]:
        options = compat.SessionOptions()
        options.intra_op_num_threads = 1
        session = compat.InferenceSession(source, options)
        model = session._sess.model
        assert model is not None
        feed = zeros(model)
        names = [output.name for output in session.get_outputs()]
        binding = session.io_binding()
        for name, array in feed.items():
            binding.bind_cpu_input(name, array)
        for name, array in model.run(feed).items():
            binding.bind_ortvalue_output(name, compat.OrtValue.ortvalue_from_numpy(array.copy()))
        values = {name: compat.OrtValue.ortvalue_from_numpy(x) for name, x in feed.items()}
        peer_options = peer.SessionOptions()
        peer_options.intra_op_num_threads = 1
        providers = ["CPUExecutionProvider"]
        peer_session = peer.InferenceSession(source, peer_options, providers=providers)
        calls: Calls = {
            "Model.run": partial(model.run, feed),
            "run": partial(session.run, None, feed),
            "run_with_ort_values": partial(session.run_with_ort_values, names, values),
            "run_with_iobinding": partial(session.run_with_iobinding, binding),
            "ONNX Runtime's run": partial(peer_session.run, None, feed),
        }
        yield source if isinstance(source, str) else "one layer", calls


def pyarmnn(models: Sequence[Path], _: Sequence[str]) -> Rows:
    """``IRuntime.EnqueueWorkload`` of `armpy_compat.pyarmnn`, and armpy's own call."""
    import armpy_compat.pyarmnn as ann  # noqa: PLC0415 - of this door alone

    for path in models:
        parser = ann.ITfLiteParser()
        network = parser.CreateNetworkFromBinaryFile(str(path))
        runtime = ann.IRuntime(ann.CreationOptions())
        backends = [ann.BackendId("CpuAcc"), ann.BackendId("CpuRef")]
        optimized, _ = ann.Optimize(network, backends, runtime.GetDeviceSpec())
        own, parts = optimized.parts.runtime, optimized.parts
        own_id = own.load_network(parts.network)
        network_id, _ = runtime.LoadNetwork(optimized)
        inputs = [
            parser.GetNetworkInputBindingInfo(0, name)
            for name in parser.GetSubgraphInputTensorNames(0)
        ]
        outputs = [
            parser.GetNetworkOutputBindingInfo(0, name)
            for name in parser.GetSubgraphOutputTensorNames(0)
        ]
        arrays = [
            np.zeros(tuple(info.GetShape()), ann.Tensor(info).get_memory_area().dtype)
            for _, info in inputs
        ]
        sources, targets = ann.make_input_tensors(inputs, arrays), ann.make_output_tensors(outputs)
        named = dict(zip(parts.input_ids, arrays, strict=True))
        results = {
            name: np.empty(tuple(tensor.GetShape()), tensor.get_memory_area().dtype)
            for name, (_, tensor) in zip(parts.output_ids, targets, strict=True)
        }
        calls: Calls = {
            "enqueue_workload": partial(own.enqueue_workload, own_id, named, results),
            "EnqueueWorkload": partial(runtime.EnqueueWorkload, network_id, sources, targets),
        }
        yield path.name, calls


def nnapi(_: Sequence[Path], __: Sequence[str]) -> Rows:
    """NNAPI's ways to execute a sum of eight floats, and `LoadedNetwork.run`."""
    from armpy_nnapi import (  # noqa: PLC0415 - of this door alone
        Burst,
        Compilation,
        Execution,
        ModelBuilder,
    )

    builder = ModelBuilder()
    total = builder.add(*(builder.input(np.float32, (8,)) for _ in range(2)))
    compilation = Compilation(builder.finish(total))
    compilation.finish()
    network = compilation.network(())
    inputs = [np.arange(8, dtype=np.float32), np.ones(8, np.float32)]
    output = np.zeros(8, np.float32)

    def prepared() -> Execution:
        execution = Execution(compilation)
        for index, array in enumerate(inputs):
            execution.set_input(index, array)
        execution.set_output(0, output)
        return execution

    reusable = prepared()
    reusable.set_reusable(True)
    burst = Burst(compilation)
    calls: Calls = {
        "LoadedNetwork.run": lambda: network.run(inputs, [output]),
        "new execution": lambda: prepared().compute(),
        "reusable execution": reusable.compute,
        "burst": lambda: burst.compute(reusable),
        "call": lambda: compilation(*inputs),
        "started": lambda: prepared().start_compute().wait(),
    }
    yield "sum of 8", calls


def isolated(_: Sequence[Path], __: Sequence[str]) -> Rows:
    """CpuRef in this process and in its own; beside them one copy of inputs and output."""
    for size in _SIZES:
        arrays = [np.ones(size, np.float32) for _ in range(3)]
        spare = [array.copy() for array in arrays]
        net = Network("sum")
        info = TensorInfo((size,), DataType.FLOAT32)
        add = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
        net.output("sum", net.add(add, net.input("x", info), net.input("y", info)))
        with (
            armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])) as here,
            armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"], isolation="process")) as there,
        ):
            calls: Calls = {}
            for place, runtime in (("here", here), ("there", there)):
                network = runtime.get_network(runtime.load_network(net))
                bound = Invocation({"x": arrays[0], "y": arrays[1]}, {"sum": arrays[2]})
                calls[f"run {place}"] = partial(network.run, arrays[:2], arrays[2:])
                calls[f"bound {place}"] = network.bind(bound)
            calls["copy"] = partial(_copy, arrays, spare)
            yield f"sum of {size}", calls


def _copy(sources: Sequence[Array], targets: Sequence[Array]) -> None:
    """Copy arrays into others."""
    for source, target in zip(sources, targets, strict=True):
        np.copyto(target, source)


def hosted(models: Sequence[Path], engines: Sequence[str]) -> Rows:
    """Engines alone, and through armpy as backends: arrays in, arrays out."""
    keep_to_cores(1)
    for path in models:
        for backend_id in engines:
            try:
                yield f"{path.name} on {backend_id}", _hosted_calls(path, backend_id)
            except ArmpyError as error:
                print(f"{path.name} on {backend_id}: {error}")


def _hosted_calls(path: Path, backend_id: str) -> Calls:
    """The engine's own call, and armpy's."""
    registry = armpy.backend_registry()
    # A backend that has no such option decides by itself.
    has_threads = any(o.name == "num_threads" for o in registry.get(backend_id).options)
    options = armpy.RuntimeOptions(
        backends=[backend_id, "CpuRef"],
        backend_options={backend_id: {"num_threads": 1} if has_threads else {}},
        on_fallback="error",
        registry=registry,
    )
    model = armpy.load(path, runtime=armpy.Runtime(options))
    arrays = random_inputs(model)
    calls: Calls = {}
    if backend_id in ENGINES:
        file = exported(path, arrays) if backend_id == "OrtCpu" else path
        engine = open_engine(ENGINES[backend_id], file)
        engine.bind(arrays)
        invoke = engine.caller()
        calls["direct"] = lambda: (invoke(), engine.outputs())
    else:
        calls["direct"] = _program_call(backend_id, model, arrays)
    return calls | {"armpy": lambda: model(*arrays)}


def _program_call(
    backend_id: str, model: armpy.Model, arrays: Sequence[Array]
) -> Callable[[], object]:
    """The execution of the one program that the model was compiled to."""
    optimized = model.handle.loaded.optimized
    layers = () if optimized is None else optimized.graph.layers
    operations = [layer.operation for layer in layers]
    programs = [x.program for x in operations if isinstance(x, PreCompiled)]
    if len(layers) != 1 or not programs or not isinstance(programs[0], IEngineProgram):
        raise BackendCapabilityError(
            f"{backend_id} does not run the model as one IEngineProgram", where="calls"
        )
    outputs = [np.empty(v.info.known_shape, v.info.data_type.dtype) for v in layers[0].outputs]
    return partial(programs[0].execute, arrays, outputs)


DOORS: dict[str, Callable[[Sequence[Path], Sequence[str]], Rows]] = {
    door.__name__: door for door in (core, litert, onnxruntime, pyarmnn, nnapi, isolated, hosted)
}
"""What can be measured, by name."""


def measure(calls: Calls) -> dict[str, dict[str, float]]:
    """Figures of each call, and of it beside the first one."""
    turns = {name: timed(call, calls_in(_ROUND_S, call)) for name, call in calls.items()}
    times = take_turns(turns, 0.0, least=_ROUNDS)
    first = next(iter(times.values()))
    figures = {}
    for name, durations in times.items():
        pairs = [*zip(durations, first, strict=True)]
        more_us = [1e6 * (duration - other) for duration, other in pairs]
        low_us, high_us = median_interval(more_us)
        figures[name] = {
            "us": 1e6 * statistics.median(durations),
            "more_us": statistics.median(more_us),
            "low_us": low_us,
            "high_us": high_us,
            "ratio": statistics.median(duration / other for duration, other in pairs),
        }
    return figures


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("doors", type=lambda text: text.split(","), metavar="DOOR,...")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=[*ENGINES])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if unknown := [door for door in arguments.doors if door not in DOORS]:
        parser.error(f"unknown doors: {', '.join(unknown)}. Expected some of {', '.join(DOORS)}")
    results = {}
    for door in arguments.doors:
        for title, calls in DOORS[door](arguments.models, arguments.engines):
            results[f"{door}: {title}"] = figures = measure(calls)
            print(f"{door}: {title}")
            for name, row in figures.items():
                print(
                    f"  {name:28} {row['us']:9.2f} us  {row['more_us']:+9.2f} us "
                    f"({row['low_us']:+.2f} to {row['high_us']:+.2f})  {row['ratio']:.2f}"
                )
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()

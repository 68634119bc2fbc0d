"""Measures what a call costs beyond the work of its backend.

For each backend the same arrays go through every layer of a call, in turns, on one thread; each
figure is the least of many rounds, as everything else that a machine does only adds to it. The
work itself is what the backend does at the innermost place that can be called alone: a workload's
``execute``, and for NumbaAcc the native function within.

Usage::

    python -m benchmarks.overhead [MODEL.tflite] [--backends NumbaAcc,CpuRef] [--json FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import armpy
from armpy import DataType, Network, TensorInfo, ops
from armpy.core.turns import take_turns, timed
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.memory import StepMemory
from armpy.ops.operation import Array
from benchmarks.common import calls_in, description, write_json

ROUNDS = 60
ROUND_S = 0.002

Call = Callable[[], object]


def small_network() -> Network:
    """One layer of no work."""
    net = Network()
    x = net.input("x", TensorInfo((8,), DataType.FLOAT32))
    net.output("y", net.add(ops.Reshape((2, 4)), x))
    return net


def load(path: Path | None, backend: str) -> armpy.Model:
    """A model on one backend and one thread."""
    if path is not None:
        return armpy.load(path, backends=[backend, "CpuRef"], num_threads=1)
    options = armpy.RuntimeOptions(backends=[backend, "CpuRef"], num_threads=1)
    return armpy.Model(small_network(), armpy.Runtime(options), closes_runtime=True)


def calls_of(model: armpy.Model) -> dict[str, Call]:
    """What there is to measure, from the innermost to the outermost; the work itself first."""
    specs = model.inputs
    inputs = {s.name: np.zeros([d or 1 for d in s.shape or ()], s.data_type.dtype) for s in specs}
    outputs = model.run(inputs)
    sources, results = list(inputs.values()), list(outputs.values())
    network = model.runtime.get_network(model.network_id)
    program = network.program_for(tuple(array.shape for array in sources))
    calls: dict[str, Call] = {}
    if isinstance(program, CompiledProgram):
        memory = program.take_memory()
        for handle, array in zip(
            (*memory.sources, *memory.results), (*sources, *results), strict=True
        ):
            handle.array = array
        calls |= _native_call(memory, [*sources, *results])
        calls["workloads"] = lambda: _run_steps(memory)
        calls["program.run"] = lambda: program.run(sources, results)
    calls["LoadedNetwork.run"] = lambda: network.run(sources, results)
    calls["model.run(inputs, outputs)"] = lambda: model.run(inputs, outputs)
    calls["model.run(inputs)"] = lambda: model.run(inputs)
    calls["model(*arrays)"] = lambda: model(*sources)
    return calls


def _run_steps(memory: StepMemory) -> None:
    """Call every workload."""
    for execute, inputs, outputs in memory.steps:
        execute(inputs, outputs)


def _native_call(memory: StepMemory, tensors: list[Array]) -> dict[str, Call]:
    """The native function of a network that NumbaAcc has made one program of."""
    workload = getattr(memory.steps[0][0], "__self__", None)
    if type(workload).__name__ != "ProgramWorkload" or len(memory.steps) > 1:
        return {}
    instance = workload._idle[0]  # type: ignore[union-attr]  # its class is known
    return {"native call": lambda: instance.function(*tensors)}


def measure(calls: dict[str, Call]) -> dict[str, float]:
    """Microseconds of each call, without those of the loop around it."""
    calls = {"": lambda: None, **calls}
    turns = {name: timed(call, calls_in(ROUND_S, call)) for name, call in calls.items()}
    times = take_turns(turns, 0.0, least=ROUNDS)
    least = {name: 1e6 * min(durations) for name, durations in times.items()}
    loop_us = least.pop("")
    return {name: us - loop_us for name, us in least.items()}


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("model", nargs="?", type=Path, metavar="MODEL")
    parser.add_argument("--backends", default="NumbaAcc,CpuRef")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    by_backend: dict[str, dict[str, float]] = {}
    for backend in arguments.backends.split(","):
        with load(arguments.model, backend) as model:
            figures = by_backend[backend] = measure(calls_of(model))
        work_us = next(iter(figures.values()))
        for name, us in figures.items():
            print(f"{backend:12} {name:28} {us:9.3f} us {us - work_us:+9.3f} us")
    write_json(arguments.json, by_backend)


if __name__ == "__main__":
    main()

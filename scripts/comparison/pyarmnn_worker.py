"""Runs models and random networks with whichever PyArmNN the process imports.

``pyarmnn_worker.py networks FIRST END FOLDER`` and ``pyarmnn_worker.py model PATH FOLDER``. Each
network leaves a .npz file of its outputs, with messages as text.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarmnn as ann  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.comparison import pyarmnn_networks

_BACKENDS_PATH = "ARM_NN_BACKENDS"
"""Names the folder of the genuine library's CpuRef."""


def _runtime() -> Any:
    options = ann.CreationOptions()
    options.m_DynamicBackendsPath = os.environ.get(_BACKENDS_PATH, "")
    return ann.IRuntime(options)


def _run(network: Any, inputs: Any, outputs: Any) -> tuple[list[Any], tuple[str, ...]]:
    """Results of a network on CpuRef, and the optimiser's messages."""
    runtime = _runtime()
    backends = [ann.BackendId("CpuRef")]
    spec = runtime.GetDeviceSpec()
    optimized, messages = ann.Optimize(network, backends, spec, ann.OptimizerOptions())
    network_id, _ = runtime.LoadNetwork(optimized)
    runtime.EnqueueWorkload(network_id, inputs, outputs)
    return ann.workload_tensors_to_ndarray(outputs), messages


def _described(info: Any) -> str:
    text = f"{tuple(info.GetShape())} {info.GetNumBytes()} bytes"
    if not info.IsQuantized():
        return text  # the scale of others was 0.0 in 20.08, and is 1.0 in 24.02
    return f"{text}, scale {info.GetQuantizationScale()} offset {info.GetQuantizationOffset()}"


def _save(path: Path, text: str, arrays: list[Any]) -> None:
    named = {f"out{index}": array for index, array in enumerate(arrays)}
    np.savez(path, text=np.array(text), **named)


def run_network(seed: int, folder: Path) -> None:
    """One random network."""
    built = pyarmnn_networks.build(seed)
    infos = [(index, info) for index, (info, _) in enumerate(built.inputs)]
    inputs = ann.make_input_tensors(infos, [data for _, data in built.inputs])
    outputs = ann.make_output_tensors(list(enumerate(built.outputs)))
    try:
        arrays, messages = _run(built.network, inputs, outputs)
        text = f"messages: {messages}"
    except (RuntimeError, ValueError, TypeError) as error:
        arrays, text = [], f"{type(error).__name__}: {error}"
    _save(folder / f"{seed}.npz", f"{built.kind} {built.type}\n{text}", arrays)


def run_model(path: Path, folder: Path) -> None:
    """One .tflite file with random inputs."""
    rng = np.random.default_rng(7)
    parser = ann.ITfLiteParser()
    try:
        network = parser.CreateNetworkFromBinaryFile(str(path))
        bindings = [
            parser.GetNetworkInputBindingInfo(0, name)
            for name in parser.GetSubgraphInputTensorNames(0)
        ]
        results = [
            parser.GetNetworkOutputBindingInfo(0, name)
            for name in parser.GetSubgraphOutputTensorNames(0)
        ]
        lines = [f"{binding[0]} {_described(binding[1])}" for binding in [*bindings, *results]]
        data = [_elements(rng, info) for _, info in bindings]
        inputs = ann.make_input_tensors(bindings, data)
        arrays, messages = _run(network, inputs, ann.make_output_tensors(results))
        text = "\n".join([*lines, f"messages: {messages}"])
    except (RuntimeError, ValueError, TypeError) as error:
        arrays, text = [], f"{type(error).__name__}: {error}"
    _save(folder / f"{path.parent.name}__{path.stem}.npz", text, arrays)


def _elements(rng: np.random.Generator, info: Any) -> Any:
    shape = tuple(info.GetShape())
    if info.GetDataType() == ann.DataType_Float32:
        return rng.random(shape, np.float32)
    if info.GetDataType() == ann.DataType_QAsymmU8:
        return rng.integers(0, 255, shape, np.uint8)
    if info.GetDataType() == ann.DataType_QAsymmS8:
        return rng.integers(-128, 127, shape, np.int8)
    if info.GetDataType() == ann.DataType_QSymmS16:
        return rng.integers(-9999, 9999, shape, np.int16)
    return rng.integers(0, 2, shape, np.int32)


def main() -> None:
    """Carry out the command line's request."""
    command, *arguments = sys.argv[1:]
    folder = Path(arguments[-1])
    if command == "networks":
        for seed in range(int(arguments[0]), int(arguments[1])):
            run_network(seed, folder)
    else:
        run_model(Path(arguments[0]), folder)


if __name__ == "__main__":
    main()

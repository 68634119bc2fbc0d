"""Loads a model as ExecuteNetwork's options say, and runs it."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

import armpy
from armpy import DebugValue, Model, OptimizerOptions, Runtime, RuntimeOptions
from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array
from armpy_compat.backend_names import arm_nn_id, armpy_id
from armpy_compat.execute_network.log_lines import log
from armpy_compat.execute_network.tensor_texts import (
    byte_level_error,
    described,
    input_array,
    type_name,
    write_output,
)

_LAYER_FOLDER = "ArmNNIntermediateLayerOutputs"

Results = list[dict[str, Array]]


class NetworkRun:
    """A model on some backends, ready to be run.

    Parameters
    ----------
    options : argparse.Namespace
        Options of the command line, checked.
    compute : sequence of str
        Ids of Arm NN's or armpy's backends, in order of preference.

    Raises
    ------
    InvalidArgumentError
        If none of the backends is installed, or an option does not fit the model.
    """

    def __init__(self, options: argparse.Namespace, compute: Sequence[str]) -> None:
        self._options = options
        started = time.perf_counter()
        usable = _usable_backends(options, compute)
        self._runtime = Runtime(
            RuntimeOptions(
                backends=usable,
                num_threads=options.number_of_threads or None,
                dynamic_backends_path=options.dynamic_backends_path,
                profiling=bool(options.event_based_profiling),
            )
        )
        _log_time("Initialization time", started)
        try:
            self._model = self._loaded()
        except BaseException:
            self._runtime.close()
            raise

    def _loaded(self) -> Model:
        """The model, optimised apart to take its time."""
        options = self._options
        with armpy.load(options.model_path, runtime=self._runtime) as parsed:
            graph = _reshaped(parsed, options).graph
            started = time.perf_counter()
            optimizer = OptimizerOptions(reduce_fp32_to_fp16=bool(options.fp16_turbo_mode))
            optimized = self._runtime.optimize_network(graph, optimizer)
        _log_time("Optimization time", started)
        if options.visualize_optimized_model:
            Path(options.model_path).with_suffix(".dot").write_text(
                optimized.to_dot(), encoding="utf-8"
            )
        return Model(optimized, self._runtime)

    def close(self) -> None:
        """Unload the model and end the runtime."""
        started = time.perf_counter()
        self._model.close()
        self._runtime.close()
        _log_time("Shutdown time", started)

    def print_network_info(self) -> None:
        """Print the names, shapes and types of inputs and outputs."""
        lines = ["===== Network Info =====", "Inputs in order:"]
        lines += [described(spec.name, spec.info) for spec in self._model.inputs]
        lines.append("Outputs in order:")
        lines += [described(spec.name, spec.info) for spec in self._model.outputs]
        print("\n".join(lines) + "\n", flush=True)

    def execute(self) -> Results:
        """Run every iteration, and print what the options ask for."""
        options = self._options
        results: Results = []
        for iteration in range(options.iterations):
            inputs = self._inputs(iteration)
            started = time.perf_counter()
            outputs = self._model.run(inputs, debug=self._debug())
            duration_ms = (time.perf_counter() - started) * 1e3
            results.append(outputs)
            if options.event_based_profiling:
                self._print_profile()
            if not options.do_not_print_output:
                self._print_outputs(outputs, iteration)
            _check_threshold(duration_ms, options.threshold_time)
        return results

    def _inputs(self, iteration: int) -> dict[str, Array]:
        """The inputs of an iteration: from its files, or zeros."""
        options = self._options
        specs = {spec.name: spec.info for spec in self._model.inputs}
        names = options.input_name or list(specs)
        unknown = [name for name in names if name not in specs]
        if unknown:
            raise InvalidArgumentError(
                f"the model has no input '{unknown[0]}'", expected=" or ".join(specs)
            )
        files = options.input_tensor_data
        arrays = {
            name: np.zeros(
                [1 if dim is None else dim for dim in info.shape or ()], info.data_type.dtype
            )
            for name, info in specs.items()
        }
        for number, name in enumerate(names if files else ()):
            path = Path(files[(iteration * len(names) + number) % len(files)])
            arrays[name] = input_array(path, specs[name], is_real=options.quantize_input)
        return arrays

    def _print_outputs(self, outputs: Mapping[str, Array], iteration: int) -> None:
        options = self._options
        infos = {spec.name: spec.info for spec in self._model.outputs}
        names = options.output_name or list(outputs)
        files = options.write_outputs_to_file
        for number, name in enumerate(names):
            if name not in outputs:
                raise InvalidArgumentError(
                    f"the model has no output '{name}'", expected=" or ".join(outputs)
                )
            data, info = outputs[name], infos[name]
            data_type = info.data_type
            if options.dequantize_output and info.quantization and data_type.is_quantized:
                data = info.quantization.dequantize(data)
                data_type = armpy.DataType.FLOAT32
            if not files:
                write_output(sys.stdout, name, data, data_type)
                continue
            path = files[(iteration * len(names) + number) % len(files)]
            log("Info", f"Writing output: '{name}' of iteration: {iteration + 1} to file: '{path}'")
            with Path(path).open("w", encoding="utf-8") as stream:
                write_output(stream, f"{name}, {type_name(data_type)} ", data, data_type)
        sys.stdout.flush()

    def _debug(self) -> Callable[[DebugValue], None] | None:
        options = self._options
        if options.print_intermediate_layers_to_file:
            return _write_layer
        return _print_layer if options.print_intermediate_layers else None

    def _print_profile(self) -> None:
        """Print the times of the layers as a JSON object."""
        profiler = self._model.profiler
        rows = [] if profiler is None else profiler.statistics()
        events = {
            row.name: {"type": "Measurement", "raw": [row.mean_us], "unit": "us"} for row in rows
        }
        print(json.dumps({"ArmNN": {"inference_measurements_#1": events}}, indent=4), flush=True)


def compared(options: argparse.Namespace, results: Results, others: Results) -> None:
    """Print how far the outputs of two runs are apart."""
    names = options.output_name or list(results[-1])
    for left, other in zip(results, others, strict=True):
        for name in names:
            error = byte_level_error(left[name], other[name])
            print(f"Byte level root mean square error: {error:g}", flush=True)


def _usable_backends(options: argparse.Namespace, compute: Sequence[str]) -> list[str]:
    """The wanted backends that are installed; an error if there are none."""
    with Runtime(RuntimeOptions(dynamic_backends_path=options.dynamic_backends_path)) as runtime:
        installed = runtime.get_device_spec().supported_backends
    usable = list(dict.fromkeys(armpy_id(name) for name in compute if armpy_id(name) in installed))
    invalid = [name for name in compute if armpy_id(name) not in installed]
    if invalid:
        log(
            "Fatal",
            "The list of preferred devices contains invalid backend IDs: " + ", ".join(invalid),
        )
    if not usable:
        raise InvalidArgumentError(
            f"None of the preferred backends [{' '.join(compute)} ] are supported. "
            f"Current platform provides [{' '.join(map(arm_nn_id, installed))} ]"
        )
    return usable


def _reshaped(model: Model, options: argparse.Namespace) -> Model:
    """The model for the shapes of ``-s``."""
    if not options.input_tensor_shape:
        return model
    names = options.input_name or [spec.name for spec in model.inputs]
    texts = options.input_tensor_shape.split(":")
    if len(texts) != len(names):
        raise InvalidArgumentError(
            "input-name and input-tensor-shape must have the same amount of elements."
        )
    try:
        shapes = [tuple(int(size) for size in text.split(",")) for text in texts]
    except ValueError as error:
        raise InvalidArgumentError(
            "input-tensor-shape is not a list of numbers", actual=options.input_tensor_shape
        ) from error
    return model.reshape(dict(zip(names, shapes, strict=True)))


def _log_time(action: str, started: float) -> None:
    log("Info", f"{action}: {(time.perf_counter() - started) * 1e3:.2f} ms.")


def _check_threshold(duration_ms: float, threshold_ms: float) -> None:
    """Print the time of an iteration, and how far it is below the threshold if there is one."""
    log("Info", f"Inference time: {duration_ms:.2f} ms\n")
    if threshold_ms:
        log("Info", f"Threshold time: {threshold_ms:.2f} ms")
        log("Info", f"Threshold time - Inference time: {threshold_ms - duration_ms:.2f} ms\n")
        if duration_ms > threshold_ms:
            log("Fatal", "Elapsed inference time is greater than provided threshold time.")


def _layer_text(value: DebugValue) -> str:
    """One line about the output of a layer, in the form of Arm NN's Debug layers."""
    data = np.asarray(value.values)
    numbers = data.astype(np.float64) if data.dtype.kind in "biuf" else np.zeros(0)
    shown = {
        "layerGuid": zlib.crc32(value.layer.encode()),
        "layerName": value.layer,
        "outputSlot": value.index,
        "shape": list(data.shape),
        "min": float(numbers.min()) if numbers.size else 0.0,
        "max": float(numbers.max()) if numbers.size else 0.0,
        "data": data.tolist(),
    }
    return json.dumps(shown)


def _print_layer(value: DebugValue) -> None:
    print(_layer_text(value), flush=True)


def _write_layer(value: DebugValue) -> None:
    """Write the output of a layer to a file that is named after it, in a folder of its own."""
    folder = Path(tempfile.gettempdir()) / _LAYER_FOLDER
    folder.mkdir(exist_ok=True)
    name = re.sub(r"[^\w.-]", "_", value.layer)
    (folder / f"{name}.numpy").write_text(_layer_text(value) + "\n", encoding="utf-8")

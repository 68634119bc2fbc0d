"""Where the calls of each engine are recorded, in its own modules and in armpy's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from armpy_compat.trial.recorder import Recorder, guarded
from armpy_compat.trial.values import arrays_of, digest_of, shapes_of

ENGINES: Mapping[str, str] = {
    "onnxruntime": "ONNX Runtime",
    "ai_edge_litert": "LiteRT",
    "tflite_runtime": "TensorFlow Lite",
    "tensorflow": "TensorFlow",
    "pyarmnn": "PyArmNN",
}
"""Names of engines for people, by the modules that programs import."""

_OWN_NAMES = {"armpy_compat.litert": "ai_edge_litert"}
"""Modules of armpy that are not named after the engine's."""


def engine_module(name: str) -> str:
    """Name of an engine's module for one of armpy's: ``onnxruntime.capi``."""
    for own, other in _OWN_NAMES.items():
        if name == own or name.startswith(f"{own}."):
            return other + name.removeprefix(own)
    return name.removeprefix("armpy_compat.")


def _engine_of(module: ModuleType) -> str:
    return ENGINES[engine_module(module.__name__).partition(".")[0]]


def _watch_onnxruntime(recorder: Recorder, module: ModuleType) -> None:
    """Sessions of ONNX Runtime."""
    engine, session = _engine_of(module), module.Session
    recorder.watch_opening(
        module.InferenceSession,
        engine,
        lambda path_or_bytes, *_, **__: path_or_bytes,
        lambda opened: opened._sess.model.placement,
    )

    # Parameters have the engine's names, as programs may pass arguments by name.
    def feed(
        _: object, __: object, output_names: object, input_feed: object, run_options: object = None
    ) -> object:
        return input_feed

    def values(
        _: object,
        __: object,
        output_names: object,
        input_dict_ort_values: object,
        run_options: object = None,
    ) -> object:
        return input_dict_ort_values

    def result_of(_: object, result: object, *__: object, **___: object) -> object:
        return result

    def bound(_: object, __: object, iobinding: Any, run_options: object = None) -> object:
        return iobinding.copy_outputs_to_cpu()

    recorder.watch_call(session, "run", engine, feed, result_of)
    recorder.watch_call(session, "run_with_ort_values", engine, values, result_of)
    recorder.watch_call(session, "run_with_iobinding", engine, None, bound)
    recorder.watch_call(session, "run_with_ortvaluevector", engine, None, None)
    _watch_run_async(recorder, session, engine)


def _watch_run_async(recorder: Recorder, session: Any, engine: str) -> None:  # Any: its class
    """Calls whose answers a callback gets."""
    original = session.run_async

    def run_async(
        self: object,
        output_names: object,
        input_feed: object,
        callback: Callable[..., object],
        *arguments: object,
        **named: object,
    ) -> None:
        given = guarded(arrays_of, input_feed)
        before = None if given is None else digest_of(given)
        shapes = None if given is None else shapes_of(given)
        start = time.perf_counter_ns()

        def finished(outputs: object, user_data: object, error: str) -> None:
            took_us = (time.perf_counter_ns() - start) / 1000
            answers = None if error else guarded(arrays_of, outputs)
            recorder.add_call(self, took_us, before, answers, shapes)
            callback(outputs, user_data, error)

        try:
            original(self, output_names, input_feed, finished, *arguments, **named)
        except Exception as error:
            recorder.add_error(f"{engine}, Session.run_async", error)
            raise

    session.run_async = run_async


def _watch_interpreter(recorder: Recorder, module: ModuleType) -> None:
    """Interpreters of LiteRT, and their signatures."""
    engine = _engine_of(module)
    indexes: WeakKeyDictionary[object, tuple[list[int], list[int]]] = WeakKeyDictionary()

    def tensors(interpreter: Any, side: int) -> object:
        if interpreter not in indexes:
            # Describing tensors may take longer than a call.
            described = interpreter.get_input_details(), interpreter.get_output_details()
            inputs, outputs = ([int(entry["index"]) for entry in entries] for entries in described)
            indexes[interpreter] = inputs, outputs
        return [interpreter.get_tensor(index) for index in indexes[interpreter][side]]

    def source(model_path: object = None, model_content: object = None, **_: object) -> object:
        return model_path or model_content

    def placement(interpreter: Any) -> object:
        runs = interpreter._runs._runs.values()
        return next(run._model.placement for run in runs if run._model is not None)

    recorder.watch_opening(module.Interpreter, engine, source, placement)
    recorder.watch_call(
        module.Interpreter,
        "invoke",
        engine,
        lambda interpreter, _: tensors(interpreter, 0),
        lambda interpreter, _: tensors(interpreter, 1),
    )
    _watch_signatures(recorder, module.SignatureRunner, engine)


def _watch_signatures(recorder: Recorder, runner: Any, engine: str) -> None:  # Any: as above
    """Signatures, which are models of their interpreter."""
    original = runner.__init__

    def initialize(self: object, interpreter: Any = None, signature_key: Any = None) -> None:
        original(self, interpreter, signature_key)
        recorder.share_model(self, interpreter)

    runner.__init__ = initialize
    recorder.watch_call(
        runner, "__call__", engine, lambda *_, **named: named, lambda _, result, **__: result
    )


def _watch_compiled_model(recorder: Recorder, module: ModuleType) -> None:
    """Compiled models of LiteRT 2, on buffers."""
    engine, model = _engine_of(module), module.CompiledModel

    def placement(opened: Any) -> object:
        return opened._model.main._model.placement

    def path(model_path: object, *_: object, **__: object) -> object:
        return model_path

    def data(model_data: object, *_: object, **__: object) -> object:
        return model_data

    recorder.watch_opening(model, engine, path, placement, "from_file")
    recorder.watch_opening(model, engine, data, placement, "from_buffer")

    def read(model: Any, key: str, buffers: Mapping[str, Any]) -> object:
        """Contents of a signature's output buffers by name."""
        contents = {}
        for name, details in model.get_output_tensor_details(key).items():
            size = 1
            for length in details["shape"]:
                size *= int(length)
            contents[name] = buffers[name].read(size, details["dtype"])
        return contents

    def named_outputs(
        model: Any,
        _: object,
        signature_key: str,
        input_map: object,
        output_map: Mapping[str, Any],
    ) -> object:
        return read(model, signature_key, output_map)

    def listed_outputs(
        model: Any, _: object, signature_index: int, input_buffers: object, output_buffers: Any
    ) -> object:
        signature = model.get_signature_by_index(signature_index)
        return read(
            model, signature["key"], dict(zip(signature["outputs"], output_buffers, strict=True))
        )

    recorder.watch_call(model, "run_by_name", engine, None, named_outputs)
    recorder.watch_call(model, "run_by_index", engine, None, listed_outputs)


class _ArmnnNetwork:
    """A network that a runtime of PyArmNN has loaded; the record knows it by this object."""

    def __init__(self, runtime: object, network_id: int) -> None:
        self.runtime, self.network_id = runtime, network_id


class _ArmnnCalls:
    """Networks of PyArmNN: parsed, loaded under a number, run by that number."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._parsed: object = None
        self._networks: dict[tuple[int, int], _ArmnnNetwork] = {}

    def watch_parser(self, parser: Any, name: str) -> None:  # Any: as above
        """Remember the file that a parser has read last: the next network is of it."""
        original = getattr(parser, name)

        def parse(instance: object, graphFile: object, *arguments: object) -> object:  # noqa: N803
            self._parsed = graphFile
            return original(instance, graphFile, *arguments)

        setattr(parser, name, parse)

    def watch_runtime(self, module: ModuleType) -> None:
        """Record what a runtime loads and runs."""
        engine, runtime = _engine_of(module), module.IRuntime
        original = runtime.LoadNetwork

        def load(instance: object, *arguments: object) -> Any:  # Any: as the engine returns it
            start = time.perf_counter()
            result = original(instance, *arguments)
            network = _ArmnnNetwork(instance, result[0])
            self._networks[id(instance), result[0]] = network
            took_s, parsed = time.perf_counter() - start, self._parsed
            self._recorder.add_model(network, engine, parsed, took_s, _armnn_placement)
            return result

        runtime.LoadNetwork = load

        # Parameters have the engine's names, as programs may pass arguments by name.
        def network(
            instance: object,
            _: object,
            networkId: int,  # noqa: N803
            *__: object,
            **___: object,
        ) -> object:
            return self._networks[id(instance), networkId]

        def memories(position: int) -> Callable[..., object]:
            # Numbers of bindings are each engine's own, and of memory only the size counts.
            return lambda _, __, networkId, inputTensors, outputTensors: [  # noqa: N803
                tensor.get_memory_area().ravel()
                for _, tensor in (inputTensors, outputTensors)[position]
            ]

        self._recorder.watch_call(
            runtime, "EnqueueWorkload", engine, memories(0), memories(1), network
        )


def _armnn_placement(network: Any) -> object:
    return network.runtime._models[network.network_id]._parts.network.placement


def watchers(recorder: Recorder) -> dict[str, Callable[[ModuleType], None]]:
    """What to do with modules when they have been imported, by their names."""
    armnn = _ArmnnCalls(recorder)

    def interpreter(module: ModuleType) -> None:
        _watch_interpreter(recorder, module)

    def compiled_model(module: ModuleType) -> None:
        _watch_compiled_model(recorder, module)

    def onnxruntime(module: ModuleType) -> None:
        _watch_onnxruntime(recorder, module)

    def parsers(module: ModuleType) -> None:
        for name in ("ITfLiteParser", "IOnnxParser"):
            if hasattr(module, name):
                armnn.watch_parser(getattr(module, name), "CreateNetworkFromBinaryFile")
        if hasattr(module, "IDeserializer"):
            armnn.watch_parser(module.IDeserializer, "CreateNetworkFromBinary")

    return {
        "onnxruntime.capi.onnxruntime_inference_collection": onnxruntime,
        "ai_edge_litert.interpreter": interpreter,
        "tflite_runtime.interpreter": interpreter,
        "tensorflow.lite.python.interpreter": interpreter,
        "ai_edge_litert.compiled_model": compiled_model,
        "pyarmnn._generated.pyarmnn": armnn.watch_runtime,
        "pyarmnn._generated.pyarmnn_tfliteparser": parsers,
        "pyarmnn._generated.pyarmnn_onnxparser": parsers,
        "pyarmnn._generated.pyarmnn_deserializer": parsers,
        "armpy_compat.onnxruntime.inference_session": onnxruntime,
        "armpy_compat.litert.interpreter": interpreter,
        "armpy_compat.litert.compiled_model": compiled_model,
        "armpy_compat.pyarmnn.running.runtime": armnn.watch_runtime,
        "armpy_compat.pyarmnn.parsers": parsers,
    }

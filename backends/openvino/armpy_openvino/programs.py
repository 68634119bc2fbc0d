"""Compiled subgraphs: infer requests, and OpenVINO's compiled blobs in files."""

from __future__ import annotations

import io
import queue
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from armpy.backend import (
    IEngineProgram,
    IEnginePrograms,
    OptionValue,
    OptionValues,
    ProgramCheck,
    ProgramFit,
)
from armpy.errors import ArmpyError, BackendError, MemoryLimitError, UnimplementedError
from armpy.ops.operation import Array
from armpy_openvino.engine import BACKEND_ID, available_devices, core, openvino

_TFLITE = b"TFL3"
_PLACES = ("Exception from ", "Check '", "FrontEnd API failed")
"""Beginnings of lines that name places in OpenVINO's source."""

_WITHOUT_MEMORY = ("bad_alloc", "can't alloc", "std::future_error: Broken promise")
"""Parts of OpenVINO's errors where it gets no memory; the last is of a thread that has ended."""

_COPIED_BYTES = 1 << 17
"""Arrays of at most this size in all are copied: setting others at each call takes 14 us."""


class OpenVinoProgram(IEngineProgram):
    """A compiled model; executions at the same time have infer requests of their own.

    Parameters
    ----------
    compiled : openvino.CompiledModel
    blob : bytes
        The source of the import; exported on request if empty.
    """

    def __init__(self, compiled: Any, blob: bytes = b"") -> None:  # Any: it has no types
        self._compiled = compiled
        # What OpenVINO exports of an imported model, it does not always import again.
        self._blob = blob
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()

    @property
    def model(self) -> bytes:
        """OpenVINO's compiled blob."""
        self._blob = self._blob or bytes(self._compiled.export_model().getvalue())
        return self._blob

    def execute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Have a request read and write the arrays in place, or its own if they are small."""
        try:
            try:
                request, sources, results = self._idle.get_nowait()
            except queue.Empty:
                request, sources, results = self._compiled.create_infer_request(), [], []
            if sum(array.nbytes for array in (*inputs, *outputs)) > _COPIED_BYTES:
                _place(request, inputs, outputs)
            elif not results:
                sources, results = [*map(_like, inputs)], [*map(_like, outputs)]
                _place(request, sources, results)
            for source, array in zip(sources, inputs, strict=False):
                source[...] = array
            request.infer(share_outputs=True)  # no copies of the outputs
        except RuntimeError as error:
            raise _failure(BackendError, " ".join(str(error).split()), error) from error
        for result, array in zip(results, outputs, strict=False):
            array[...] = result
        self._idle.put((request, sources, results))

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], object]:
        """Have a request read and write the same arrays each time."""
        if not all(array.flags.writeable for array in inputs):
            return partial(self.execute, inputs, outputs)
        request = self._compiled.create_infer_request()
        _place(request, inputs, outputs)
        return partial(request.infer, share_outputs=True)


def _place(request: Any, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Have a request read and write arrays in place; inputs that are read-only are copied."""
    tensor = openvino().Tensor
    for i, array in enumerate(inputs):  # OpenVINO shares memory only if it may write to it
        request.set_input_tensor(i, tensor(array, shared_memory=array.flags.writeable))
    for i, array in enumerate(outputs):
        request.set_output_tensor(i, tensor(array, shared_memory=True))


def _like(array: Array) -> Array:
    return np.empty(array.shape, array.dtype)


class OpenVinoPrograms(IEnginePrograms):
    """Compiles .tflite models, and imports blobs."""

    def describe(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        """Device, threads, precision, and OpenVINO's version."""
        return {
            "device": str(options.get("device", "CPU")),
            "num_threads": int(str(options.get("num_threads", 0))),
            "hint": str(options.get("hint", "LATENCY")),
            "precision": str(options.get("precision", "f32")),
            "low_precision": options.get("low_precision") is True,
            "openvino": str(openvino().__version__),
        }

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Compare the dependencies of a program, if OpenVINO finds its device."""
        device = str({"device": "CPU", **about, **options}["device"])
        if device not in available_devices():
            text = f"it is for the device '{device}', which OpenVINO does not find"
            return ProgramCheck(ProgramFit.FOREIGN, text)
        return super().check(about, options)

    def compile(self, model: bytes, about: Mapping[str, OptionValue]) -> OpenVinoProgram:
        """Compile a .tflite model, or import a blob.

        Raises
        ------
        UnimplementedError
            If OpenVINO refuses it; the text is OpenVINO's.
        MemoryLimitError
            If OpenVINO gets no memory.
        """
        device = str(about["device"])
        config: dict[str, object] = {
            "PERFORMANCE_HINT": about["hint"],
            "INFERENCE_PRECISION_HINT": about["precision"],
        }
        if device == "CPU":
            # Otherwise 8-bit products saturate on processors without VNNI, and answers are wrong.
            config["LP_TRANSFORMS_MODE"] = about["low_precision"]
            if not about["low_precision"]:  # inputs of products with 8-bit weights lose digits
                config["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
            # Otherwise all callers are moved to the same cores, wherever others run.
            config["ENABLE_CPU_PINNING"] = False
            if about["num_threads"]:
                config["INFERENCE_NUM_THREADS"] = about["num_threads"]
        try:
            if model[4:8] != _TFLITE:
                compiled = core().import_model(io.BytesIO(model), device, config)
                return OpenVinoProgram(compiled, model)
            # Its front-end for .tflite reads files alone.
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "subgraph.tflite")
                path.write_bytes(model)
                return OpenVinoProgram(core().compile_model(path, device, config))
        except RuntimeError as error:
            text = f"OpenVINO refuses it: {_message(error)}"
            raise _failure(UnimplementedError, text, error) from error


def _failure(kind: type[ArmpyError], text: str, error: RuntimeError) -> ArmpyError:
    """The error of a kind for one of OpenVINO's, or that of memory."""
    if any(part in str(error) for part in _WITHOUT_MEMORY):
        return MemoryLimitError(
            "OpenVINO is out of memory", where=BACKEND_ID, actual=_message(error)
        )
    return kind(text, where=BACKEND_ID)


def _message(error: RuntimeError) -> str:
    """The first line of an error that says more than where in OpenVINO's source it arose."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(_PLACES)), " ".join(lines))

"""Engines beside armpy, where they are installed: LiteRT, ONNX Runtime and OpenVINO.

Notes
-----
Each binds its inputs once and then runs; what a call of armpy's does beside running, checking
arrays and making outputs, these leave to the application.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar, NamedTuple

import numpy as np

from armpy.errors import BackendUnavailableError
from armpy.ops.operation import Array

# An engine is imported in the process that measures it, and nowhere else.
# ruff: noqa: PLC0415


class EngineInput(NamedTuple):
    """Input of a model as an engine lists it; None for sizes that are open."""

    name: str
    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]  # Any: whatever the model takes
    dimension_names: tuple[str, ...] = ()
    """Empty for a dimension that has none; no names where the engine does not list them."""


class IEngine(ABC):
    """A model on an engine, ready to be bound to inputs and run.

    Parameters
    ----------
    model : path or bytes
    num_threads : int
    callers : int
        Threads that call it at the same time.
    """

    package: ClassVar[str]
    """Distribution that the engine comes with."""

    @abstractmethod
    def __init__(
        self, model: str | os.PathLike[str] | bytes, num_threads: int = 1, callers: int = 1
    ) -> None:
        """Load the model."""

    @property
    def version(self) -> str:
        """The installed version."""
        return version(self.package)

    @property
    @abstractmethod
    def inputs(self) -> list[EngineInput]:
        """The model's inputs, in order."""

    @abstractmethod
    def bind(self, arrays: Sequence[Array]) -> None:
        """Make the engine ready for inputs of these shapes and elements."""

    @abstractmethod
    def caller(self) -> Callable[[], object]:
        """Return a function that runs the model once, for one thread, through `bind`."""

    @abstractmethod
    def outputs(self) -> list[Array]:
        """The outputs of the last run of the latest caller."""


class LiteRt(IEngine):
    """LiteRT with XNNPACK; an interpreter for each caller, as one serves a thread at a time.

    References
    ----------
    TensorFlow Lite's "Performance best practices": ``num_threads`` more than 1 shortens one call;
    it is "not recommended" where several run at the same time.
    """

    package = "ai-edge-litert"

    def __init__(
        self, model: str | os.PathLike[str] | bytes, num_threads: int = 1, callers: int = 1
    ) -> None:
        self._model, self._num_threads, self._callers = model, num_threads, callers
        self._first = self._latest = self._made()
        self._arrays: Sequence[Array] = ()
        self._is_allocated = False

    def _made(self) -> Any:  # Any: it has no types
        """An interpreter."""
        from ai_edge_litert.interpreter import Interpreter

        if isinstance(self._model, bytes):
            return Interpreter(model_content=self._model, num_threads=self._num_threads)
        return Interpreter(model_path=os.fspath(self._model), num_threads=self._num_threads)

    @property
    def inputs(self) -> list[EngineInput]:
        """As the interpreter lists them."""
        return [
            EngineInput(
                detail["name"],
                tuple(None if size < 0 else int(size) for size in detail["shape_signature"]),
                np.dtype(detail["dtype"]),
            )
            for detail in self._first.get_input_details()
        ]

    def bind(self, arrays: Sequence[Array]) -> None:
        """Make the first interpreter ready; memory is made anew for other shapes alone."""
        self._arrays = arrays
        self._is_allocated = self._fill(self._first, is_allocated=self._is_allocated)

    def _fill(self, interpreter: Any, *, is_allocated: bool) -> bool:  # Any: it has no types
        """Give an interpreter its inputs."""
        details = interpreter.get_input_details()
        for detail, array in zip(details, self._arrays, strict=True):
            if tuple(detail["shape"]) != array.shape:
                interpreter.resize_tensor_input(detail["index"], array.shape)
                is_allocated = False
        if not is_allocated:
            interpreter.allocate_tensors()
        for detail, array in zip(details, self._arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        return True

    def caller(self) -> Callable[[], object]:
        """An interpreter's invoke."""
        if self._callers > 1:
            self._latest = self._made()
            self._fill(self._latest, is_allocated=False)
        return self._latest.invoke  # type: ignore[no-any-return]  # it has no types

    def outputs(self) -> list[Array]:
        """Copies, as the next run writes to the same memory."""
        details = self._latest.get_output_details()
        return [np.array(self._latest.get_tensor(detail["index"])) for detail in details]

    def reset(self) -> None:
        """Let a model that keeps state begin anew."""
        self._first.reset_all_variables()


_ONNX_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int16)": "int16",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}


class OnnxRuntime(IEngine):
    """ONNX Runtime; callers share a session.

    References
    ----------
    ONNX Runtime's "Thread management": ``intra_op_num_threads`` of 1 computes in the caller's
    thread and has no pool; else callers share the session's pool.
    """

    package = "onnxruntime"

    def __init__(
        self, model: str | os.PathLike[str] | bytes, num_threads: int = 1, callers: int = 1
    ) -> None:
        import onnxruntime

        del callers
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else os.fspath(model),
            sess_options=options,
            providers=["CPUExecutionProvider"],
        )
        self._arrays: Sequence[Array] = ()
        self._binding: Any = None  # Any: it has no types

    @property
    def inputs(self) -> list[EngineInput]:
        """As the session lists them."""
        return [
            EngineInput(
                port.name,
                tuple(size if isinstance(size, int) else None for size in port.shape),
                np.dtype(_ONNX_TYPES.get(port.type, "float32")),
                tuple(size if isinstance(size, str) else "" for size in port.shape),
            )
            for port in self._session.get_inputs()
        ]

    def bind(self, arrays: Sequence[Array]) -> None:
        """Keep the inputs: each caller binds."""
        self._arrays = arrays

    def caller(self) -> Callable[[], object]:
        """A binding's run."""
        binding = self._binding = self._session.io_binding()
        for port, array in zip(self._session.get_inputs(), self._arrays, strict=True):
            binding.bind_cpu_input(port.name, array)
        for result in self._session.get_outputs():
            binding.bind_output(result.name)
        session = self._session
        return lambda: session.run_with_iobinding(binding)

    def outputs(self) -> list[Array]:
        """Copies."""
        return list(self._binding.copy_outputs_to_cpu())


class OpenVino(IEngine):
    """OpenVINO, float32 computed as float32; a request for each caller.

    Parameters
    ----------
    model : path
    num_threads : int
    callers : int
        One is served in the shortest time, several with the most runs per second.
    is_relaxed : bool
        Whether its precision is left alone: it computes in bfloat16 where the processor has
        instructions for it.

    References
    ----------
    OpenVINO's "Optimizing for throughput": the hint, and as many requests as
    ``OPTIMAL_NUMBER_OF_INFER_REQUESTS`` or as the application has.
    """

    package = "openvino"

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes,
        num_threads: int = 1,
        callers: int = 1,
        *,
        is_relaxed: bool = False,
    ) -> None:
        import openvino

        self._ov = openvino
        self._core = openvino.Core()
        self._model = self._core.read_model(model if isinstance(model, bytes) else os.fspath(model))
        self._settings: dict[str, str | int] = {
            "PERFORMANCE_HINT": "LATENCY" if callers == 1 else "THROUGHPUT",
            "INFERENCE_NUM_THREADS": num_threads,
        }
        if callers == 1:
            self._settings["NUM_STREAMS"] = 1
        if not is_relaxed:
            self._settings["INFERENCE_PRECISION_HINT"] = "f32"  # else bfloat16 where it can
        self._arrays: Sequence[Array] = ()
        self._request: Any = None  # Any: it has no types
        self.compiled: Any = None  # Any: as above

    @property
    def inputs(self) -> list[EngineInput]:
        """As the model lists them."""
        inputs = []
        for port in self._model.inputs:
            sizes = tuple(None if d.is_dynamic else d.get_length() for d in port.partial_shape)
            inputs.append(EngineInput(port.any_name, sizes, np.dtype(port.element_type.to_dtype())))
        return inputs

    def bind(self, arrays: Sequence[Array]) -> None:
        """Compile for the inputs' shapes.

        Raises
        ------
        BackendUnavailableError
            If it runs with other settings than it was asked for.
        """
        self._arrays = arrays
        ports = zip(self._model.inputs, arrays, strict=True)
        self._model.reshape({port: list(array.shape) for port, array in ports})
        self.compiled = self._core.compile_model(self._model, "CPU", self._settings)
        for name in self._settings.keys() & {"INFERENCE_PRECISION_HINT", "INFERENCE_NUM_THREADS"}:
            actual = str(self.compiled.get_property(name)).replace("<Type: 'float32'>", "f32")
            if actual != str(self._settings[name]):
                raise BackendUnavailableError(
                    f"it runs with another {name} than it was asked for",
                    where="openvino",
                    expected=str(self._settings[name]),
                    actual=actual,
                )

    def filled(self, request: Any) -> Any:  # Any: it has no types
        """A request with the inputs."""
        for port, array in zip(self.compiled.inputs, self._arrays, strict=True):
            request.set_tensor(port, self._ov.Tensor(array, shared_memory=True))
        return request

    def caller(self) -> Callable[[], object]:
        """A request's infer."""
        self._request = self.filled(self.compiled.create_infer_request())
        return self._request.infer  # type: ignore[no-any-return]  # it has no types

    def outputs(self) -> list[Array]:
        """Copies, as the next run writes to the same memory."""
        count = len(self.compiled.outputs)
        return [np.array(self._request.get_output_tensor(i).data) for i in range(count)]


ENGINES: Mapping[str, type[IEngine]] = {
    "litert": LiteRt,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
}
"""By the name that options give them."""


def open_engine(
    name: str,
    model: str | os.PathLike[str] | bytes,
    num_threads: int = 1,
    callers: int = 1,
    **options: bool,
) -> IEngine:
    """Load a model on an engine.

    Parameters
    ----------
    name : str
        A key of `ENGINES`.
    model : path or bytes
    num_threads, callers : int
    **options
        What else this engine takes.

    Raises
    ------
    BackendUnavailableError
        If the engine is not installed, or does not take the file.
    """
    engine = ENGINES[name]
    try:
        return engine(model, num_threads, callers, **options)
    except ImportError as error:
        package = engine.package
        raise BackendUnavailableError(
            f"the engine is not installed: {error}", where=name, fix=f"Run: pip install {package}"
        ) from error
    except Exception as error:  # engines raise any error
        raise refusal(name, error) from error


def refusal(name: str, error: Exception) -> BackendUnavailableError:
    """Describe an engine's refusal of a file or its shapes."""
    text = str(error).strip().partition("\n")[0][:200]
    return BackendUnavailableError(f"the engine does not take it: {text}", where=name)

"""Other engines beside armpy, where they are installed.

Notes
-----
Each binds its inputs once and then runs; what a call of armpy's does beside running, checking
arrays and making outputs, these leave to the application.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from armpy.errors import BackendUnavailableError
from armpy.tools.benchmark.inputs import Array, usual_shape
from armpy.tools.benchmark.loaded import ILoaded, items_of, read_arrays
from armpy.tools.benchmark.subjects import Subject

# A peer is imported in the process that measures it, and nowhere else.
# ruff: noqa: PLC0415

_PACKAGES = {
    "litert": "ai-edge-litert",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
}


def load_peer(subject: Subject) -> ILoaded:
    """Load a subject on its engine.

    Raises
    ------
    BackendUnavailableError
        If the engine is not installed, or does not take the file.
    """
    name = subject.engine
    try:
        return _PEERS[name](subject)
    except ImportError as error:
        raise BackendUnavailableError(
            f"the engine is not installed: {error}",
            where=name,
            fix=f"Run: pip install {_PACKAGES[name]}",
        ) from error
    except Exception as error:  # engines raise what they like
        raise _refused(name, error) from error


def _refused(name: str, error: Exception) -> BackendUnavailableError:
    """What is told of an engine that does not take a file or its shapes."""
    text = str(error).strip().partition("\n")[0][:200]
    return BackendUnavailableError(f"the engine does not take it: {text}", where=name)


class _Peer(ILoaded):
    """Base of the engines beside armpy."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._arrays: list[Array] = []

    def fit_shapes(self) -> None:
        """Nothing: shapes are bound with the inputs."""

    def prepare_inputs(self, seed: int) -> None:
        """Make inputs, and bind them."""
        inputs = self._inputs()
        given = read_arrays(self._subject.arrays, [name for name, _, _ in inputs])
        generator = np.random.default_rng(seed)
        for name, shape, dtype in inputs:
            chosen = self._subject.shapes.get(name) or self._batched(shape)
            self._arrays.append(given[name] if name in given else _random(generator, chosen, dtype))
        try:
            self._bind()
        except Exception as error:  # engines raise what they like
            raise _refused(self._subject.engine, error) from error

    def _batched(self, shape: Sequence[int | None]) -> tuple[int, ...]:
        """A shape whose first axis is the batch that is asked for, and others as armpy's rows."""
        sizes = [*usual_shape(tuple([None if s is None or s < 0 else s for s in shape]))]
        if self._subject.batch is not None and sizes:
            sizes[0] = self._subject.batch
        return tuple(sizes)

    @property
    def items(self) -> int:
        """The batch."""
        return items_of(self._subject, [array.shape for array in self._arrays])

    def placement(self) -> str:
        """The engine's version."""
        name = _PACKAGES[self._subject.engine]
        return f"{name} {version(name)}"

    def _inputs(self) -> list[tuple[str, tuple[int | None, ...], np.dtype[Any]]]:
        """Name, shape and type of each input; Any: whatever the model takes."""
        raise NotImplementedError

    def _bind(self) -> None:
        """Make ready for the inputs' shapes."""
        raise NotImplementedError


def _random(generator: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Random elements: from -1 to 1, bytes of any value, 0 or 1 for other integers."""
    if dtype.kind == "f":
        return generator.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return generator.integers(0, 2, shape).astype(dtype)


class _LiteRt(_Peer):
    """LiteRT with XNNPACK; an interpreter for each caller, as one serves a thread at a time."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._first = self._made()

    def _made(self) -> Any:  # Any: it has no types
        """An interpreter."""
        from ai_edge_litert.interpreter import Interpreter

        return Interpreter(
            model_path=self._subject.model, num_threads=self._subject.num_threads or 1
        )

    def _inputs(self) -> list[tuple[str, tuple[int | None, ...], np.dtype[Any]]]:
        """As the interpreter lists them."""
        details = self._first.get_input_details()
        return [
            (d["name"], tuple(map(int, d["shape_signature"])), np.dtype(d["dtype"]))
            for d in details
        ]

    def _bind(self) -> None:
        """Make the first interpreter ready."""
        self._resize(self._first)

    def _resize(self, interpreter: Any) -> None:  # Any: it has no types
        """Give an interpreter its inputs."""
        details = interpreter.get_input_details()
        for detail, array in zip(details, self._arrays, strict=True):
            if tuple(detail["shape"]) != array.shape:
                interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
        for detail, array in zip(details, self._arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)

    def caller(self) -> Callable[[], object]:
        """An interpreter's invoke."""
        if self._subject.callers == 1:
            return self._first.invoke  # type: ignore[no-any-return]  # it has no types
        interpreter = self._made()
        self._resize(interpreter)
        return interpreter.invoke  # type: ignore[no-any-return]  # as above


class _OnnxRuntime(_Peer):
    """ONNX Runtime; callers share a session."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = subject.num_threads or 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            subject.model, sess_options=options, providers=["CPUExecutionProvider"]
        )

    def _inputs(self) -> list[tuple[str, tuple[int | None, ...], np.dtype[Any]]]:
        """As the session lists them."""
        return [
            (
                given.name,
                tuple(size if isinstance(size, int) else None for size in given.shape),
                np.dtype(_ONNX_TYPES.get(given.type, "float32")),
            )
            for given in self._session.get_inputs()
        ]

    def _bind(self) -> None:
        """Nothing: each caller binds."""

    def caller(self) -> Callable[[], object]:
        """A binding's run."""
        binding = self._session.io_binding()
        for given, array in zip(self._session.get_inputs(), self._arrays, strict=True):
            binding.bind_cpu_input(given.name, array)
        for result in self._session.get_outputs():
            binding.bind_output(result.name)
        session = self._session
        return lambda: session.run_with_iobinding(binding)


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


class _OpenVino(_Peer):
    """OpenVINO, float32 computed as float32; a request for each caller."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        import openvino

        self._ov = openvino
        self._core = openvino.Core()
        self._model = self._core.read_model(subject.model)
        self._compiled: Any = None  # Any: it has no types

    def _inputs(self) -> list[tuple[str, tuple[int | None, ...], np.dtype[Any]]]:
        """As the model lists them."""
        found = []
        for port in self._model.inputs:
            sizes = [None if d.is_dynamic else d.get_length() for d in port.partial_shape]
            found.append((port.any_name, tuple(sizes), np.dtype(port.element_type.to_dtype())))
        return found

    def _bind(self) -> None:
        """Compile for the inputs' shapes."""
        ports = zip(self._model.inputs, self._arrays, strict=True)
        self._model.reshape({port: list(array.shape) for port, array in ports})
        is_single = self._subject.callers == 1
        settings = {
            "PERFORMANCE_HINT": "LATENCY" if is_single else "THROUGHPUT",
            "INFERENCE_NUM_THREADS": self._subject.num_threads or 1,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self._compiled = self._core.compile_model(self._model, "CPU", settings)

    def caller(self) -> Callable[[], object]:
        """A request's infer."""
        request = self._compiled.create_infer_request()
        for port, array in zip(self._compiled.inputs, self._arrays, strict=True):
            request.set_tensor(port, self._ov.Tensor(array, shared_memory=True))
        return request.infer  # type: ignore[no-any-return]  # it has no types


_PEERS: dict[str, Callable[[Subject], ILoaded]] = {
    "litert": _LiteRt,
    "onnxruntime": _OnnxRuntime,
    "openvino": _OpenVino,
}

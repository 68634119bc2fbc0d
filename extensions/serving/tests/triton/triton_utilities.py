"""A stand-in for the module that Triton's Python backend gives to models.

It behaves as the server's module does: names of methods, copies, errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import numpy as np


class TritonModelException(Exception):  # noqa: N818 - the server's name
    """What a model may raise."""


class TritonError:
    """An error with its code."""

    (
        UNKNOWN,
        INTERNAL,
        NOT_FOUND,
        INVALID_ARG,
        UNAVAILABLE,
        UNSUPPORTED,
        ALREADY_EXISTS,
        CANCELLED,
    ) = range(8)

    def __init__(self, message: str, code: int = INTERNAL) -> None:
        self._message, self._code = message, code

    def message(self) -> str:
        """The text."""
        return self._message

    def code(self) -> int:
        """The code."""
        return self._code


class Tensor:
    """An input or output."""

    def __init__(self, name: str, array: Any, is_bfloat: bool = False) -> None:
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        self._name, self._is_bfloat = name, is_bfloat
        self.array = array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def name(self) -> str:
        """The name."""
        return self._name

    def as_numpy(self) -> Any:
        """The server's memory; there is no such array of bfloat16."""
        if self._is_bfloat:
            raise TritonModelException("Tensor dtype is BF16 and cannot be converted to NumPy.")
        return self.array

    def __dlpack__(self, stream: object = None) -> Any:
        return self.array.__dlpack__()

    @staticmethod
    def from_dlpack(name: str, source: Any) -> Tensor:
        """A tensor over the memory of a capsule."""
        return Tensor(name, np.from_dlpack(Recoded(source)), is_bfloat=True)


class Recoded:
    """A capsule of bfloat16 as one of uint16, which it is an error not to be."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> Any:
        import ctypes

        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        code = ctypes.c_uint8.from_address(pointer(self._capsule, b"dltensor") + 20)
        assert code.value == 4, "DLPack calls bfloat 4"
        code.value = 1
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@dataclass
class InferenceRequest:
    """A request as models get it."""

    tensors: Sequence[Tensor]
    timeout_us: int = 0
    cancelled: bool = False
    asked: list[str] = field(default_factory=list)

    def inputs(self) -> Sequence[Tensor]:
        """All inputs."""
        return self.tensors

    def timeout(self) -> int:
        """Microseconds; 0 if there is none."""
        return self.timeout_us

    def is_cancelled(self) -> bool:
        """Whether the client has gone; the server is asked each time."""
        self.asked.append("is_cancelled")
        return self.cancelled


class InferenceResponse:
    """An answer."""

    def __init__(self, output_tensors: Sequence[Tensor], error: TritonError | None = None) -> None:
        self._tensors, self._error = [*output_tensors], error

    def output_tensors(self) -> list[Tensor]:
        """Outputs."""
        return self._tensors

    def error(self) -> TritonError | None:
        """What went wrong."""
        return self._error


class Metric:
    """A value."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels, self.number = labels, 0.0

    def increment(self, value: float) -> None:
        """Add; counters never fall."""
        assert value >= 0
        self.number += value

    def set(self, value: float) -> None:
        """Change."""
        self.number = value


class MetricFamily:
    """Values of one name."""

    COUNTER, GAUGE, HISTOGRAM = range(3)
    made: ClassVar[dict[str, MetricFamily]] = {}

    def __init__(self, name: str, description: str, kind: int) -> None:
        assert name not in self.made, "a name is registered once"
        self.kind, self.values = kind, list[Metric]()
        self.made[name] = self

    def Metric(self, labels: Mapping[str, str]) -> Any:
        """One of them."""
        metric = Metric(labels)
        self.values.append(metric)
        return metric


class Logger:
    """The server's log."""

    lines: ClassVar[list[str]] = []
    log_info = log_warn = log_error = log_verbose = lines.append


def utilities() -> ModuleType:
    """The module, to be put among the imported ones."""
    module = ModuleType("triton_python_backend_utils")
    for kind in (Tensor, TritonError, InferenceResponse, InferenceRequest, MetricFamily, Logger):
        setattr(module, kind.__name__, kind)
    module.TritonModelException = TritonModelException  # type: ignore[attr-defined]
    return module

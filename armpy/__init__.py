"""armpy runs neural networks in Python on whatever accelerators are installed beside it.

Examples
--------
>>> import armpy
>>> model = armpy.load("model.tflite")                              # doctest: +SKIP
>>> outputs = model(image)                                          # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendError,
    BackendUnavailableError,
    ExecutionTimeoutError,
    GraphValidationError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryExportError,
    MemoryImportError,
    MemoryLimitError,
    MemoryValidationError,
    NnapiError,
    ParserError,
    UnimplementedError,
    UnsupportedOperatorError,
)
from armpy.lazy import offer
from armpy.tensor import Quantization, TensorInfo
from armpy.types import BackendId, DataLayout, DataType, DeviceType, Priority

if TYPE_CHECKING:
    from armpy import ops
    from armpy.backend import watch_progress
    from armpy.loading import load
    from armpy.network import Network
    from armpy.optimizer import OptimizedNetwork, OptimizerOptions, Placement
    from armpy.runtime import DeviceSpec, Model, Runtime, RuntimeOptions

__version__ = "0.1.0"

__all__ = [
    "ArmpyError",
    "BackendCapabilityError",
    "BackendError",
    "BackendId",
    "BackendUnavailableError",
    "DataLayout",
    "DataType",
    "DeviceSpec",
    "DeviceType",
    "ExecutionTimeoutError",
    "GraphValidationError",
    "InvalidArgumentError",
    "LayerValidationError",
    "MemoryExportError",
    "MemoryImportError",
    "MemoryLimitError",
    "MemoryValidationError",
    "Model",
    "Network",
    "NnapiError",
    "OptimizedNetwork",
    "OptimizerOptions",
    "ParserError",
    "Placement",
    "Priority",
    "Quantization",
    "Runtime",
    "RuntimeOptions",
    "TensorInfo",
    "UnimplementedError",
    "UnsupportedOperatorError",
    "load",
    "ops",
    "watch_progress",
]

if not TYPE_CHECKING:
    # The heavier rooms are imported when they are first used, so that importing armpy is quick.
    __getattr__, __dir__ = offer(
        __name__,
        {
            "DeviceSpec": "armpy.runtime",
            "Model": "armpy.runtime",
            "Network": "armpy.network",
            "OptimizedNetwork": "armpy.optimizer",
            "OptimizerOptions": "armpy.optimizer",
            "Placement": "armpy.optimizer",
            "Runtime": "armpy.runtime",
            "RuntimeOptions": "armpy.runtime",
            "load": "armpy.loading",
            "ops": "armpy.ops",
            "watch_progress": "armpy.backend",
        },
    )

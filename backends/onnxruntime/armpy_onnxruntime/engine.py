"""Imports ONNX Runtime and what builds its models, and knows the providers built into it."""

from __future__ import annotations

import ctypes
import importlib
import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from types import ModuleType

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, BackendUnavailableError
from armpy.types import DeviceType

_TELEMETRY = "ORT_DISABLE_TELEMETRY"

_log = logging.getLogger("armpy_onnxruntime")


@dataclass(frozen=True, slots=True)
class Provider:
    """An execution provider that ONNX Runtime is built with, as a backend."""

    backend_id: str
    name: str  # ONNX Runtime's
    device_type: DeviceType
    remedy: str = ""  # where it or its hardware is missing, as a sentence
    is_nvidia: bool = False
    library: str = ""  # the system's, for the hardware

    def missing_device(self) -> str:
        """Say what this machine lacks, without a look at ONNX Runtime; empty if nothing."""
        if self.library and _library(self.library) is None:
            return f"this system has no {self.library}"
        return missing_nvidia() if self.is_nvidia else ""


_CUDA = "Install onnxruntime-gpu[cuda,cudnn] in place of onnxruntime, and NVIDIA's driver"

PROVIDERS = (
    # After compiled code of armpy's own, which is faster.
    Provider("OrtCpu", "CPUExecutionProvider", DeviceType.OTHER),
    Provider("OrtCuda", "CUDAExecutionProvider", DeviceType.GPU, _CUDA, is_nvidia=True),
    Provider(
        "OrtTensorRt",
        "TensorrtExecutionProvider",
        DeviceType.GPU,
        f"{_CUDA} and TensorRT",
        is_nvidia=True,
    ),
    Provider(
        "OrtCoreMl",
        "CoreMLExecutionProvider",
        DeviceType.ACCELERATOR,
        "Use a Mac: onnxruntime has it there",
        library="/System/Library/Frameworks/CoreML.framework/CoreML",
    ),
    Provider(
        "OrtDirectMl",
        "DmlExecutionProvider",
        DeviceType.GPU,
        "On Windows, install onnxruntime-directml in place of onnxruntime",
        library="d3d12.dll",
    ),
)


def require(
    module: str, where: str, error_type: type[ArmpyError] = BackendUnavailableError
) -> ModuleType:
    """Import a module of the engine.

    Raises
    ------
    ArmpyError
        Of the given type, if it is not installed, cannot be imported, or is another module under
        this name, such as armpy's own in place of the engine.
    """
    try:
        with _telemetry_off():
            imported = importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("_", "-")
        raise error_type(
            f"the Python module '{module}' cannot be imported ({error})",
            where=where,
            fix=f"Run: pip install {package}",
        ) from error
    if imported.__name__ != module:
        owner = imported.__name__.partition(".")[0]
        raise error_type(
            f"{owner} stands in for the engine in this process",
            where=where,
            fix=f"Call armpy.load in a program without {owner} to use the engine",
        )
    return imported


@contextmanager
def _telemetry_off() -> Iterator[None]:
    """Have ONNX Runtime send nothing about its use, which it decides when it is imported.

    Version 1.30 sends such data to its maker, and writes files for it.
    """
    if _TELEMETRY in os.environ:  # the user decides
        yield
        return
    os.environ[_TELEMETRY] = "1"
    try:
        yield
    finally:
        os.environ.pop(_TELEMETRY, None)


def _library(name: str) -> ctypes.CDLL | None:
    """A library of the system's; None if it is not there."""
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


@cache
def missing_nvidia() -> str:
    """Say why there is no NVIDIA GPU; empty if there is one."""
    driver = next(filter(None, map(_library, ("libcuda.so.1", "nvcuda.dll"))), None)
    if driver is None:
        return "NVIDIA's driver is not installed"
    count = ctypes.c_int()
    failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    return "" if count.value and not failed else "NVIDIA's driver finds no GPU"


@cache
def preload_nvidia() -> None:
    """Load the CUDA and cuDNN that are installed as Python packages, as ONNX Runtime does not."""
    preload = getattr(require("onnxruntime", "armpy-onnxruntime"), "preload_dlls", None)
    if preload is None:  # before 1.21
        return
    # It prints what it does not find, and the system's own CUDA may serve all the same.
    with redirect_stdout(io.StringIO()) as written:
        preload()
    if text := written.getvalue().strip():
        _log.info("%s", text)

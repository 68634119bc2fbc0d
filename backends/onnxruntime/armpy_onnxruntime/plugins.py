"""Plugin libraries of execution providers: registers them, and makes a backend of each device."""

from __future__ import annotations

import ast
import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from armpy.core.dataclass import dataclass
from armpy.errors import BackendUnavailableError, DeviceNotFoundError
from armpy.types import DeviceType
from armpy_onnxruntime.engine import require
from armpy_onnxruntime.process_state import kept_process

_TYPES = {"CPU": DeviceType.OTHER, "GPU": DeviceType.GPU, "NPU": DeviceType.ACCELERATOR}
"""By ONNX Runtime's type of the hardware; the processor comes after armpy's own compiled code."""

_NAMES = ("REGISTRATION_NAME", "EP_NAME")
"""Constants of a plugin's Python package with the name to register its library under."""

_COMMON_WORDS = frozenset(
    {"lib", "onnxruntime", "onnx", "runtime", "providers", "provider", "ep", "plugin"}
)
"""Words of file names that tell no plugin from another."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class PluginDevice:
    """A device that a registered plugin brings."""

    backend_id: str
    name: str  # the provider's
    device_type: DeviceType
    vendor: str
    version: str
    hardware: str
    library: str
    handle: Any  # OrtEpDevice, which has no types


_lock = threading.Lock()
_registered: dict[str, tuple[PluginDevice, ...]] = {}
"""Devices of each library that this process has registered, by its path."""


def devices_of(path: str) -> tuple[PluginDevice, ...]:
    """Register a plugin's library, once in a process, and list the devices that it brings.

    Raises
    ------
    BackendUnavailableError
        If ONNX Runtime is missing, is too old for plugins, or does not take the library.
    DeviceNotFoundError
        If the plugin finds no device.
    """
    with _lock:
        if path not in _registered:
            devices = tuple(_register(path))
            if not devices:
                raise DeviceNotFoundError(
                    "the provider finds no device on this machine",
                    where=os.path.basename(path),
                    fix="Install the driver of its device",
                )
            _registered[path] = devices
        return _registered[path]


def _register(path: str) -> Iterator[PluginDevice]:
    where = os.path.basename(path)
    runtime = require("onnxruntime", where)
    if not hasattr(runtime, "register_execution_provider_library"):
        raise BackendUnavailableError(
            "the installed ONNX Runtime takes no plugins",
            where=where,
            expected="version 1.23 or later",
            actual=runtime.__version__,
            fix="Run: pip install --upgrade onnxruntime",
        )
    before = {_identity(device) for device in runtime.get_ep_devices()}
    try:
        with kept_process(where):
            runtime.register_execution_provider_library(registration_name(path), path)
    except Exception as error:  # its exceptions have no base class of their own
        text = " ".join(str(error).split())
        raise BackendUnavailableError(
            f"ONNX Runtime {runtime.__version__} does not take the library ({text})", where=where
        ) from error
    counts: dict[str, int] = {}
    for device in runtime.get_ep_devices():
        if _identity(device) in before:
            continue
        kind = device.device.type.name
        backend_id = backend_id_of(device.ep_name)
        # The first one has the plain name, so that its id does not change with the others.
        number = counts[backend_id] = counts.get(backend_id, 0) + 1
        yield PluginDevice(
            backend_id if number == 1 else f"{backend_id}{kind.capitalize()}{number}",
            device.ep_name,
            _TYPES.get(kind, DeviceType.OTHER),
            device.ep_vendor,
            device.ep_metadata.get("version", ""),
            " ".join(filter(None, [kind, device.device.vendor])),
            path,
            device,
        )


def _identity(device: Any) -> tuple[object, ...]:  # Any: as above
    """What tells devices apart; the engine makes new objects of them at each question."""
    hardware = device.device
    library = device.ep_metadata.get("library_path", "")
    return device.ep_name, library, hardware.type, hardware.vendor_id, hardware.device_id


def backend_id_of(provider: str) -> str:
    """Id of the backend that runs on a provider.

    Examples
    --------
    >>> backend_id_of("WebGpuExecutionProvider"), backend_id_of("cpu_ep"), backend_id_of("OpenVINO")
    ('OrtWebGpu', 'OrtCpuEp', 'OrtOpenVino')
    """
    words = _WORDS.findall(provider.removesuffix("ExecutionProvider"))
    return "Ort" + "".join(word.capitalize() for word in words or ["Plugin"])


def registration_name(path: str) -> str:
    """The name under which a plugin's own package registers its library, or one of its file's.

    Some providers take it for their own name. The package's source is read and not run.
    """
    for folder in Path(path).parents[:3]:
        source = folder / "__init__.py"
        with suppress(OSError, SyntaxError, ValueError):
            for statement in ast.parse(source.read_bytes()).body:
                match statement:
                    case ast.Assign([ast.Name(name)], ast.Constant(str(text))) if name in _NAMES:
                        return text
            break
    stem = os.path.basename(path).partition(".")[0].removeprefix("lib")
    words = [word for word in stem.split("_") if word not in _COMMON_WORDS]
    return "_".join(words) or stem

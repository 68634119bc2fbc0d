"""Functions for the whole process, most of which mean nothing to armpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import armpy
from armpy_compat.onnxruntime.devices import OrtArenaCfg, OrtMemoryInfo
from armpy_compat.onnxruntime.errors import Fail, status_error
from armpy_compat.signatures import checked

VERSION = "1.32.0"
"""The version of ONNX Runtime whose API this is."""


def get_version_string() -> str:
    """Return the version of ONNX Runtime whose API this is."""
    return VERSION


def get_build_info() -> str:
    """Return a text that names armpy and its version."""
    return f"ORT Build Info: armpy={armpy.__version__}"


def get_device() -> str:
    """Return ``CPU``: inputs and outputs lie in the memory of the host."""
    return "CPU"


@checked
def set_seed(seed: int) -> None:
    """Accept a seed; random operators have a seed of their own in the model."""


@checked
def set_default_logger_severity(severity: int) -> None:
    """Accept a severity; armpy logs with `logging`, under the name ``armpy``."""
    _check_severity(severity)


@checked
def set_default_logger_verbosity(verbosity: int) -> None:
    """Accept a verbosity; see `set_default_logger_severity`."""


@checked
def set_default_logger_callback(callback: Callable[..., object], severity: int = 2) -> None:
    """Accept a function; it is not called."""
    _check_severity(severity)


def disable_telemetry_events() -> None:
    """Do nothing: armpy sends nothing."""


def enable_telemetry_events() -> None:
    """Do nothing: armpy sends nothing."""


def has_collective_ops() -> bool:
    """Return False."""
    return False


@checked
def create_and_register_allocator(info: OrtMemoryInfo, configuration: OrtArenaCfg | None) -> None:
    """Accept an allocator without effect."""


@checked
def create_and_register_allocator_v2(
    provider: str,
    info: OrtMemoryInfo,
    options: Mapping[str, str],
    configuration: OrtArenaCfg | None,
) -> None:
    """Accept an allocator without effect."""


@checked
def set_global_thread_pool_sizes(
    intra_op_num_threads: int = 0, inter_op_num_threads: int = 0
) -> None:
    """Accept sizes without effect: each session has threads of its own."""


def get_ep_devices() -> list[object]:
    """Return nothing: `armpy devices` lists the devices of backends."""
    return []


@checked
def register_execution_provider_library(name: str, path: str) -> None:
    """Raise `Fail`: backends are packages.

    Raises
    ------
    Fail
        Always.
    """
    text = f"{path}: install a backend for armpy instead; see docs/how_to/write_a_plugin.md"
    raise status_error(Fail, text)


@checked
def unregister_execution_provider_library(name: str) -> None:
    """Raise `Fail`: there are none.

    Raises
    ------
    Fail
        Always.
    """
    raise status_error(Fail, f"Execution provider library: {name} was not registered.")


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Do nothing: there are no libraries to load."""


def print_debug_info() -> None:
    """Print the versions of armpy and of the API."""
    print(f"onnxruntime API {VERSION} on armpy {armpy.__version__}")


def _check_severity(severity: int) -> None:
    if not 0 <= severity <= _FATAL:
        raise RuntimeError(
            f"Invalid logging severity. {severity}: expected 0 (verbose) to 4 (fatal)"
        )


_FATAL = 4

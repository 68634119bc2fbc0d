"""Options of compiled models."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Any

import armpy
from armpy.core.dataclass import dataclass
from armpy_compat.litert.hardware_accelerator import HardwareAccelerator
from armpy_compat.threads import usable_threads

_CPU_BACKENDS = ("NumbaAcc", "CpuRef")


class CpuKernelMode(enum.IntEnum):
    """Kinds of kernels; REFERENCE is armpy's CpuRef."""

    DELEGATE = 0
    XNNPACK = 0
    REFERENCE = 1
    BUILTIN = 2


@dataclass
class CpuOptions:
    """Options of processors; the last three have no effect."""

    num_threads: int = 0
    """Number of threads for backends that have threads of their own; 0 leaves it to the backend."""
    kernel_mode: CpuKernelMode | None = None
    enable_ynnpack: bool = False
    xnnpack_flags: int | None = None
    xnnpack_weight_cache_path: str = ""


@dataclass
class GpuOptions:
    """Options of LiteRT's GPU delegate, which have no effect."""

    enforce_f32: bool = False
    constant_tensor_sharing: bool = False
    infinite_float_capping: bool = False
    benchmark_mode: bool = False
    allow_src_quantized_fc_conv_ops: bool = False
    hint_waiting_for_completion: bool = False


@dataclass
class Options:
    """Options of a compiled model."""

    hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU
    cpu_options: CpuOptions = field(default_factory=CpuOptions)
    gpu_options: GpuOptions = field(default_factory=GpuOptions)

    @classmethod
    def create(cls) -> Options:
        """Make options with their defaults."""
        return cls()

    def load_options(self) -> dict[str, Any]:  # Any: as `armpy.load` takes them
        """Options of `armpy.load`.

        Raises
        ------
        RuntimeError
            If no backend of the kinds of devices is installed.
        """
        threads = usable_threads(self.cpu_options.num_threads)
        options: dict[str, Any] = {"num_threads": threads}  # as above
        if self.cpu_options.kernel_mode == CpuKernelMode.REFERENCE:
            return {**options, "backends": ["CpuRef"]}
        return {**options, "backends": _backends(HardwareAccelerator(self.hardware_accelerators))}


def _backends(kinds: HardwareAccelerator) -> list[str] | None:
    """Backends of some kinds of devices; None for all that are installed."""
    uses_cpu = bool(kinds & HardwareAccelerator.CPU)
    if uses_cpu and kinds != HardwareAccelerator.CPU:
        return None
    installed = armpy.backend_registry().backend_ids
    chosen = [name for name in installed if (name in _CPU_BACKENDS) == uses_cpu]
    if not chosen:
        raise RuntimeError(
            f"no backend of armpy is installed for {kinds!r}. Add HardwareAccelerator.CPU, or"
            " install a backend"
        )
    return [*_CPU_BACKENDS] if uses_cpu else chosen

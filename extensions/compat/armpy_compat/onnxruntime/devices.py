"""Devices and memory of ONNX Runtime's names; armpy's tensors lie in the memory of the host."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from armpy.core.dataclass import dataclass
from armpy_compat.onnxruntime.enumerations import (
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtMemoryInfoDeviceType,
    OrtMemType,
)
from armpy_compat.signatures import checked

_TYPES: Mapping[str, int] = MappingProxyType(
    {"cpu": 0, "cuda": 1, "gpu": 1, "webgpu": 1, "fpga": 2, "npu": 3, "cann": 3, "dml": 4}
)
"""Numbers of device types."""

_VENDORS = MappingProxyType(
    {
        "cuda": OrtDeviceVendorId.NVIDIA,
        "dml": OrtDeviceVendorId.MICROSOFT,
        "cann": OrtDeviceVendorId.HUAWEI,
    }
)


def device_type_number(name: str) -> int:
    """Return the number of a device type.

    Raises
    ------
    Exception
        If there is no such type.
    """
    if name not in _TYPES:
        raise Exception(f"Unsupported device type: {name}")  # noqa: TRY002 - as ONNX Runtime does
    return _TYPES[name]


class OrtDevice:
    """A device that holds tensors.

    Parameters
    ----------
    device_type, memory_type : int
    numbers : int
        The device's number, with the vendor's before it or without.
    """

    __slots__ = ("_memory_type", "_number", "_type", "_vendor")

    @checked
    def __init__(self, device_type: int, memory_type: int, *numbers: int) -> None:
        self._type, self._memory_type = device_type, memory_type
        self._vendor, self._number = (0, *numbers)[-2:]

    @staticmethod
    @checked
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Make a device by the name of its type."""
        vendor = vendor_id if vendor_id >= 0 else _VENDORS.get(ort_device_name, 0)
        return OrtDevice(device_type_number(ort_device_name), 0, int(vendor), device_id)

    def _get_c_device(self) -> OrtDevice:
        return self

    def device_id(self) -> int:
        """Return the device's number."""
        return self._number

    def device_type(self) -> int:
        """Return the number of the device's type."""
        return self._type

    def vendor_id(self) -> int:
        """Return the PCI number of the device's vendor."""
        return self._vendor

    device_vendor_id = vendor_id

    def mem_type(self) -> int:
        """Return the number of the memory's kind."""
        return self._memory_type

    device_mem_type = mem_type

    @staticmethod
    def default_memory() -> int:
        """Return the number of a device's usual memory."""
        return 0

    @staticmethod
    def cpu() -> int:
        """Return the number of processors."""
        return _TYPES["cpu"]

    @staticmethod
    def cuda() -> int:
        """Return the number of NVIDIA's GPUs."""
        return _TYPES["cuda"]

    @staticmethod
    def gpu() -> int:
        """Return the number of GPUs."""
        return _TYPES["gpu"]

    @staticmethod
    def webgpu() -> int:
        """Return the number of GPUs of WebGPU."""
        return _TYPES["webgpu"]

    @staticmethod
    def npu() -> int:
        """Return the number of NPUs."""
        return _TYPES["npu"]

    @staticmethod
    def fpga() -> int:
        """Return the number of FPGAs."""
        return _TYPES["fpga"]

    @staticmethod
    def cann() -> int:
        """Return the number of Huawei's NPUs."""
        return _TYPES["cann"]

    @staticmethod
    def dml() -> int:
        """Return the number of DirectML's devices."""
        return _TYPES["dml"]


def check_is_cpu(device: OrtDevice) -> None:
    """Check that a device is the processor.

    Raises
    ------
    RuntimeError
        If it is another one.
    """
    if device.device_type():
        raise RuntimeError(
            "Can't allocate memory on the device using this package of OnnxRuntime: armpy copies"
            " tensors to and from its backends' devices itself. Use device 'cpu'."
        )


@dataclass(slots=True)
class OrtMemoryInfo:
    """Memory of a device."""

    name: str
    allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_ARENA_ALLOCATOR
    device_id: int = 0
    mem_type: OrtMemType = OrtMemType.DEFAULT
    device_mem_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT
    device_vendor_id: int = 0

    @staticmethod
    @checked
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """Describe memory of a device of a vendor."""
        usual = OrtMemType.DEFAULT
        return OrtMemoryInfo(name, allocator_type, device_id, usual, device_mem_type, vendor_id)


_ARENA_NAMES = (
    "max_mem",
    "arena_extend_strategy",
    "initial_chunk_size_bytes",
    "max_dead_bytes_per_chunk",
)


class OrtArenaCfg:
    """Configuration of an arena, which is kept and has no effect.

    Parameters
    ----------
    options : int or mapping of str to int
        `max_mem`, or all of them by name.
    others : int
        `arena_extend_strategy`, `initial_chunk_size_bytes` and `max_dead_bytes_per_chunk`.
    """

    __slots__ = (*_ARENA_NAMES, "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")

    @checked
    def __init__(self, options: int | Mapping[str, int], *others: int) -> None:
        values = {**dict.fromkeys(self.__slots__, -1), "max_mem": 0}
        if isinstance(options, Mapping):
            values.update(options)
        elif len(others) != len(_ARENA_NAMES) - 1:
            raise TypeError(f"OrtArenaCfg: expected a mapping or the numbers {_ARENA_NAMES}")
        else:
            values.update(zip(_ARENA_NAMES, (options, *others), strict=True))
        for name, value in values.items():
            if name not in self.__slots__:
                raise RuntimeError(f"Invalid OrtArenaCfg option: {name}")
            setattr(self, name, value)

"""Time to bring tensors into a backend's memory, and back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from armpy.backend import DefaultAllocator, ITensorHandle
from armpy.backend.memory.memory import rounded_up
from armpy.compiler.memory.memory_copies import HOST_FACTORIES, handle_factories, hands_on
from armpy.core.dataclass import dataclass
from armpy.plugins import BackendProxy
from armpy.plugins.proxy.guarded_call import call_method
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_tools.calibrate.clocks import Clock, measure
from armpy_tools.devices.costs import CopyRate

_SMALL_BYTES, _LARGE_BYTES = 1 << 10, 1 << 20
_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Copies:
    """Time of a backend's copies."""

    into: CopyRate
    out: CopyRate
    shares_host_memory: bool  # whether there are none


def measure_copies(backend: BackendProxy, clock: Clock) -> Copies:
    """Measure copies of a kilobyte and a megabyte, if the backend has memory of its own.

    Raises
    ------
    ArmpyError
        If the backend fails at it.
    """
    factories, _ = handle_factories(backend)
    factory, host = factories[0], HOST_FACTORIES[0]
    if hands_on(host, factory) and hands_on(factory, host):
        return Copies(CopyRate(), CopyRate(), shares_host_memory=True)
    times: list[tuple[float, float]] = []
    for size_bytes in (_SMALL_BYTES, _LARGE_BYTES):
        elements = np.zeros(size_bytes, np.uint8)
        with _tensor(backend.get_id(), factory, size_bytes) as tensor:
            times.append(
                (
                    _timed(backend.get_id(), tensor, "copy_in_from", elements, clock),
                    _timed(backend.get_id(), tensor, "copy_out_to", elements, clock),
                )
            )
    (small_in, small_out), (large_in, large_out) = times
    return Copies(_rate(small_in, large_in), _rate(small_out, large_out), shares_host_memory=False)


@contextlib.contextmanager
def _tensor(
    backend_id: str, factory: HandleFactoryProxy, size_bytes: int
) -> Iterator[ITensorHandle]:
    """A tensor of bytes in a backend's memory."""
    info = TensorInfo((size_bytes,), DataType.UNSIGNED8)
    block_bytes = factory.block_bytes
    arena = factory.create_arena(rounded_up(size_bytes, block_bytes))
    if arena is None:
        room = DefaultAllocator().allocate(factory.room_bytes(info), block_bytes)
        yield factory.create_tensor_handle(info, room)
        return
    try:
        yield arena.create_tensor_handle(info, (0, 0), 0)
    finally:
        call_method(backend_id, arena, "release")


def _timed(
    backend_id: str,
    tensor: ITensorHandle,
    method: str,
    elements: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    clock: Clock,
) -> float:
    """Seconds that a tensor's copy takes."""
    copy: Callable[[], object] = lambda: call_method(backend_id, tensor, method, elements)  # noqa: E731
    return measure(copy, clock, seconds=_SECONDS).seconds


def _rate(small_s: float, large_s: float) -> CopyRate:
    """The rate through two times; larger copies are not quicker than smaller ones."""
    byte_s = max(large_s - small_s, 0.0) / (_LARGE_BYTES - _SMALL_BYTES)
    return CopyRate(max(small_s - _SMALL_BYTES * byte_s, 0.0), byte_s)

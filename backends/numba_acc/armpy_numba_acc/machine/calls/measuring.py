"""Calls of kernels that measure what a processor can do."""

from __future__ import annotations

from armpy.records import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Peak(Call):
    """Multiply and add in registers as fast as the processor can.

    Parameters
    ----------
    kind : {"f32", "u8"}
        What the kernel is made for: products of float32, or of bytes.
    memory : Pointer
        4096 bytes.
    repeats : int
    num_operations : int
        Written: how many there were.
    """

    parameters = ("kind",)

    kind: str
    memory: Pointer
    repeats: int
    num_operations: int

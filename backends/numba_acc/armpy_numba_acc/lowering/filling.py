"""Fills memory with one element."""

from __future__ import annotations

import numpy as np

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


def stored_element(element: Array, info: TensorInfo) -> bytes:
    """An element's bytes as a region keeps them.

    Parameters
    ----------
    element : ndarray of one element
        As the graph has it.
    info
        Of a tensor that it is to be put into.
    """
    data = element.astype(info.data_type.dtype).tobytes()
    is_flipped = info.data_type is DataType.QASYMM_S8
    return bytes((data[0] ^ 0x80,)) if is_flipped else data


def emit_fill(emit: Emitter, target: Buffer, size_bytes: int, element: bytes, label: str) -> None:
    """Add the command that writes one element over and over."""
    pattern = int(np.frombuffer(element * (8 // len(element)), np.int64)[0])
    emit(calls.Fill(target, size_bytes, pattern), label)

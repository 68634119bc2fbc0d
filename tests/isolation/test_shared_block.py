"""Shared memory that the other process cannot use against this one."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

from armpy import DataType, TensorInfo
from armpy.plugins.isolation.shared_block import (
    ALIGNMENT_BYTES,
    TensorLayout,
    create_block,
    forbid_writing,
    map_block,
)

needs_seals = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files have no seals")


@needs_seals
def test_nobody_can_make_it_smaller_or_larger() -> None:
    block = create_block(4096)
    for size in (0, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(block, size)
    os.close(block)


@needs_seals
def test_what_is_sealed_can_be_read_and_not_written() -> None:
    block = create_block(4096)
    os.pwrite(block, b"weights", 0)
    forbid_writing(block)
    with pytest.raises(PermissionError):
        os.pwrite(block, b"others!", 0)
    with pytest.raises(PermissionError):
        map_block(block)
    with map_block(block, writable=False) as mapped:
        assert mapped[:7] == b"weights"
    os.close(block)


def test_tensors_are_aligned_and_apart_and_behind_the_header() -> None:
    infos = [
        TensorInfo((3,), DataType.FLOAT32),
        TensorInfo((0, 2), DataType.SIGNED64),
        TensorInfo((), DataType.BOOLEAN),
        TensorInfo((65,), DataType.QASYMM_U8),
    ]
    layout = TensorLayout(infos)
    descriptor = create_block(layout.size_bytes)
    block = map_block(descriptor)
    os.close(descriptor)
    arrays = layout.arrays(block)
    whole = np.frombuffer(block, np.uint8).ctypes.data
    starts = [array.ctypes.data - whole for array in arrays if array.size]
    assert starts == [64, 128, 192]
    assert layout.size_bytes == 192 + 2 * ALIGNMENT_BYTES
    for array, info in zip(arrays, infos, strict=True):
        assert (array.shape, array.dtype) == (info.shape, info.data_type.dtype)
    del arrays, array
    gc.collect()

"""Input tensors in memory that the system protects against writing."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from armpy.backend import HostTensorHandle
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy_conformance.contract.driven import ExecutionTensors

_PROT_READ = getattr(mmap, "PROT_READ", 1)
_PROT_WRITE = getattr(mmap, "PROT_WRITE", 2)


@contextmanager
def protected(memory: ExecutionTensors, values: Iterable[Value]) -> Iterator[None]:
    """Keep tensors in pages of their own that can only be read.

    Parameters
    ----------
    values : iterable of Value
        Tensors in host memory; all others stay as they are.

    Notes
    -----
    Writing through NumPy raises an error; native code that writes, if only for a moment, ends the
    process with SIGSEGV or SIGBUS.
    """
    places = []
    for value in values:
        handle = memory.handles[value]
        if type(handle) is HostTensorHandle and handle.array.nbytes:
            pages, array = _read_only_copy(handle.array)
            places.append((handle, handle.array, pages))
            handle.array = array
    try:
        yield
    finally:
        for handle, array, pages in places:
            handle.array = array
            _protect(pages, _PROT_READ | _PROT_WRITE)


def _read_only_copy(array: Array) -> tuple[Array, Array]:
    """Pages that can only be read, and a copy of an array at their begin."""
    pages: Array = np.frombuffer(mmap.mmap(-1, array.nbytes), np.uint8)
    copy = pages.view()[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = False
    _protect(pages, _PROT_READ)
    return pages, copy


def _protect(pages: Array, protection: int) -> None:
    """Say what pages can be used for, where the system lets one say so."""
    if os.name == "posix":
        address = ctypes.c_void_p(pages.ctypes.data)
        if ctypes.CDLL(None, use_errno=True).mprotect(
            address, ctypes.c_size_t(pages.nbytes), protection
        ):
            raise OSError(ctypes.get_errno(), "mprotect failed")

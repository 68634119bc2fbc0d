"""Runs in the emulated interpreter: programs that another process has compiled.

Requests and answers are pickled, each after its length, on the standard streams. Only
`emulation.remote` starts this, and nothing else writes to it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import struct
import sys
import traceback
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.native.loader import load_objects
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import Instance, LoadedCode
from armpy_numba_acc.store import objects

from armpy.errors import ArmpyError

_LENGTH = struct.Struct("<q")
_LIBC = ctypes.CDLL(None, use_errno=True)

Array = npt.NDArray[Any]  # Any: elements of any type


def read_message(stream: BinaryIO) -> Any:  # Any: whatever was written
    """What `write_message` was given; None at the end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return pickle.loads(stream.read(*_LENGTH.unpack(head)))


def write_message(stream: BinaryIO, message: object) -> None:
    """Send something."""
    data = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


class Guard:
    """Arrays that end where memory ends that can be read.

    Notes
    -----
    Mappings are used again: no array is held beyond one execution.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[mmap.mmap, Array]]] = {}

    def array(self, dtype: np.dtype[Any], shape: Sequence[int]) -> tuple[Array, int]:
        """An array full of garbage, and the pages that it takes."""
        size = dtype.itemsize * int(np.prod(shape))
        pages = -(-size // mmap.PAGESIZE)
        free = self._free.setdefault(pages, [])
        memory, whole = free.pop() if free else self._new(pages)
        whole[: pages * mmap.PAGESIZE] = 0x55
        flat = whole[pages * mmap.PAGESIZE - size : pages * mmap.PAGESIZE]
        self._used = (*getattr(self, "_used", ()), (pages, memory, whole))
        return flat.view(dtype).reshape(shape), pages

    def _new(self, pages: int) -> tuple[mmap.mmap, Array]:
        memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
        whole = np.frombuffer(memory, np.uint8)
        last = ctypes.c_void_p(whole.ctypes.data + pages * mmap.PAGESIZE)
        if _LIBC.mprotect(last, ctypes.c_size_t(mmap.PAGESIZE), 0):
            raise OSError(ctypes.get_errno(), "memory cannot be protected")
        return memory, whole

    def free(self) -> None:
        """Make all mappings available again."""
        for pages, memory, whole in getattr(self, "_used", ()):
            self._free[pages].append((memory, whole))
        self._used = ()


class Worker:
    """Programs and kernels that were sent so far."""

    def __init__(self) -> None:
        self._instances: dict[int, Instance] = {}
        self._guard = Guard()

    def add_kernels(self, isa: Isa, codes: dict[Kernel, bytes]) -> None:
        """Load kernels."""
        addresses = load_objects({kernel.symbol: code for kernel, code in codes.items()})
        for kernel in codes:
            objects._ADDRESSES[isa.key, kernel] = addresses[kernel.symbol]

    def load(self, number: int, isa: Isa, program: Program) -> None:
        """Load a program whose kernels are there."""
        self._instances[number] = Instance(LoadedCode(program, isa))

    def forget(self, number: int) -> None:
        """Free a program's memory."""
        self._instances.pop(number, None)

    def run(
        self, number: int, inputs: Sequence[Array], outputs: Sequence[Any], time_left_s: float
    ) -> list[Array]:
        """Run a program; `outputs` are types and shapes."""
        tensors = []
        for array_sent in inputs:
            array, _ = self._guard.array(array_sent.dtype, array_sent.shape)
            array[...] = array_sent
            tensors.append(array)
        results = [self._guard.array(dtype, shape)[0] for dtype, shape in outputs]
        try:
            self._instances[number].run([*tensors, *results], None, time_left_s)
            return [array.copy() for array in results]
        finally:
            self._guard.free()

    def run_in_turn(
        self, program: Program, isa: Isa, tensors: list[Array], num_threads: int
    ) -> list[Array]:
        """Run a program's commands for one thread after the other."""
        # It imports LLVM, and few tests need it.
        from backends.numba_acc.tests import support  # noqa: PLC0415

        support.run_in_turn(program, isa, tensors, num_threads)
        return tensors


def main() -> None:
    """Answer until the stream ends."""
    requests = sys.stdin.buffer
    # What anything prints must not get between answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    worker = Worker()
    while (message := read_message(requests)) is not None:
        name, *arguments = message
        try:
            answer = ("done", getattr(worker, name)(*arguments))
        except ArmpyError as error:
            answer = ("raised", error)
        except Exception:  # noqa: BLE001 - the caller raises it
            answer = ("failed", traceback.format_exc())
        write_message(answers, answer)


if __name__ == "__main__":
    main()

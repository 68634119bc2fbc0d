"""A correct backend that computes in a child process."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence

import numpy as np

from armpy.backend import WorkloadInfo
from armpy.ops.operation import Array, Operation
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step

_LENGTH = struct.Struct("<Q")
_CHILD = """\
import pickle, struct, sys
sys.path[:] = {path!r}
__package__ = {package!r}
from .arithmetic import by_reference
source, sink = sys.stdin.buffer, sys.stdout.buffer
while start := source.read(8):
    request = pickle.loads(source.read(struct.unpack("<Q", start)[0]))
    payload = pickle.dumps(by_reference(*request))
    sink.write(struct.pack("<Q", len(payload)) + payload)
    sink.flush()
"""


class _Child:
    """A process that begins with the first layer; a forked process begins another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def compute(
        self, operation: Operation, info: WorkloadInfo, given: Sequence[Array | None]
    ) -> list[Array]:
        """The outputs of a layer."""
        payload = pickle.dumps((operation, info, given))
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(_LENGTH.pack(len(payload)) + payload)
            process.stdin.flush()
            (length,) = _LENGTH.unpack(process.stdout.read(_LENGTH.size))
            outputs: list[Array] = pickle.loads(process.stdout.read(length))
            return outputs

    def _running(self) -> subprocess.Popen[bytes]:
        """The process."""
        if self._process is None or self._owner != os.getpid():
            self._owner = os.getpid()
            command = [sys.executable, "-c", _CHILD.format(path=sys.path, package=__package__)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
            weakref.finalize(self, _end, self._process)
        return self._process


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a child, which ends with its input."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()


class _InChild(FakeBackend):
    """A backend whose layers run in one child process."""

    def __init__(self, operations: Sequence[type]) -> None:
        super().__init__("Unusual", operations)
        self._child = _Child()

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        sources = [None if h is None else np.array(h.map(write=False)) for h in inputs]
        results = self._child.compute(step.operation, step.info, sources)
        for handle, array in zip(outputs, results, strict=True):
            handle.map(read=False)[...] = array


def in_child_process(operations: Sequence[type]) -> FakeBackend:
    """A backend that computes some operations in a child process."""
    return _InChild(operations)

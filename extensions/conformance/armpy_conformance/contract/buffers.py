"""Rules about buffers of a backend's own that tensors stay in between executions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from armpy.backend import (
    DeviceMemoryRequest,
    ExternalMemory,
    IDeviceMemory,
    MemoryRole,
    MemorySource,
)
from armpy.errors import ArmpyError
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy
from armpy.plugins.proxy.memory import DeviceMemoryProxy
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NothingToKeepError, check
from armpy_conformance.contract.driven import Driven, ExecutionTensors, backend_of_runtime
from armpy_conformance.contract.networks import bench, sample_bench, samples
from armpy_conformance.differential_run import other_feeds


class _Buffers:
    """Buffers for some inputs or outputs of a network; empty if the backend makes none."""

    def __init__(
        self, backend: BackendProxy, values: Mapping[str, Value], *, is_output: bool
    ) -> None:
        self.made: dict[str, DeviceMemoryProxy] = {}
        for name, value in values.items():
            roles = (MemoryRole(0, name),)
            request = (
                DeviceMemoryRequest(value.info, (), roles)
                if is_output
                else DeviceMemoryRequest(value.info, roles)
            )
            try:
                buffer = backend.allocate_device_memory(request)
            except ArmpyError:  # it has no room, or not for this
                continue
            if buffer is not None and value.data is None:
                self.made[name] = buffer

    def put_into(
        self,
        driven: Driven,
        memory: ExecutionTensors,
        values: Mapping[str, Value],
        *,
        written: bool,
    ) -> None:
        """Replace the backend's tensors by those that it makes of buffers."""
        for name, buffer in self.made.items():
            info = values[name].info
            external = ExternalMemory.of_device(buffer.unguarded, info.size_bytes)
            answer = driven.factory.can_import(info, external)
            is_kind = bool(MemorySource.DEVICE & driven.factory.import_sources)
            check(is_kind and bool(answer), f"its own buffer for {info} is not imported")
            memory.handles[values[name]] = driven.factory.import_memory(
                info, external, read=not written, write=written
            )


def _drivens(subject: BackendUnderTest) -> Iterator[tuple[BackendProxy, Driven]]:
    """Networks for whose inputs or outputs the backend makes buffers."""
    backend = backend_of_runtime(subject)
    has_some = False
    for case in samples(subject):
        driven = Driven(backend, sample_bench(subject, case))
        inputs = _Buffers(backend, driven.sources, is_output=False)
        if inputs.made or _Buffers(backend, driven.results, is_output=True).made:
            has_some = True
            yield backend, driven
    if not has_some:
        raise NothingToKeepError("it makes no buffers of its own")


def elements_come_out_as_they_went_in(subject: BackendUnderTest) -> None:
    """Elements copied into a buffer stay there, also beside other buffers of the same kind."""
    for backend, driven in _drivens(subject):
        first = driven.bench.feeds
        pairs = [
            (feeds, _Buffers(backend, driven.sources, is_output=False).made)
            for feeds in (first, other_feeds(driven.bench.graph, first))
        ]
        for times in ("once", "twice"):
            for feeds, buffers in pairs:
                for name, buffer in buffers.items():
                    buffer.copy_in_from(np.ascontiguousarray(feeds[name]))
            for feeds, buffers in pairs:
                for name, buffer in buffers.items():
                    is_same = _elements(buffer, feeds[name]).tobytes() == feeds[name].tobytes()
                    check(is_same, f"copied in {times}, '{name}' comes out with other elements")


def _elements(buffer: IDeviceMemory, like: Array) -> Array:
    """A copy of what a buffer holds."""
    elements = np.empty(like.shape, like.dtype)
    buffer.copy_out_to(elements)
    return elements


def networks_read_and_write_them(subject: BackendUnderTest) -> None:
    """Executions read the copied inputs, leave them unchanged, and results are copied out."""
    for backend, driven in _drivens(subject):
        _check_read(subject, backend, driven)
        written = _Buffers(backend, driven.results, is_output=True)
        memory = driven.memory()
        written.put_into(driven, memory, driven.results, written=True)
        with driven.held():
            memory.feed(driven.bench.feeds)
            memory.execute()
        outputs = {}
        for name, buffer in written.made.items():
            info = driven.results[name].info
            outputs[name] = np.empty(info.known_shape, info.data_type.dtype)
            buffer.copy_out_to(outputs[name])
        if outputs:
            driven.check({**memory.read(), **outputs}, "with outputs in its own buffers")


def _check_read(subject: BackendUnderTest, backend: BackendProxy, driven: Driven) -> None:
    """Check executions that read buffers."""
    read = _Buffers(backend, driven.sources, is_output=False)
    memory = driven.memory()
    first = driven.bench.feeds
    for number, feeds in enumerate((first, other_feeds(driven.bench.graph, first))):
        memory.feed(feeds)
        for name, buffer in read.made.items():
            buffer.copy_in_from(np.ascontiguousarray(feeds[name]))
        if number == 0:
            read.put_into(driven, memory, driven.sources, written=False)
        with driven.held():
            memory.execute()
            trial = bench(subject, driven.bench.graph, feeds)
            trial.check(memory.read(), f"with inputs in its own buffers, execution {number + 1}")
        for name, buffer in read.made.items():
            is_same = _elements(buffer, feeds[name]).tobytes() == feeds[name].tobytes()
            check(is_same, f"an execution has changed the buffer of the input '{name}'")

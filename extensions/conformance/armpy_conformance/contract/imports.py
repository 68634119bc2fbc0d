"""Rules about memory of others that a backend uses where it lies."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator

import numpy as np

from armpy.backend import (
    ALIGNMENT_BYTES,
    ExternalMemory,
    ITensorHandle,
    MemorySource,
    NetworkResources,
    ReasonCode,
    Support,
)
from armpy.errors import ArmpyError
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.tensor import TensorInfo
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NothingToKeepError, ViolationError, check
from armpy_conformance.contract.driven import POISON, Driven, ExecutionTensors, backend_of_runtime
from armpy_conformance.contract.growth import num_open_files
from armpy_conformance.contract.networks import bench, sample_bench, samples
from armpy_conformance.differential_run import other_feeds

_SOURCES = MemorySource.MALLOC | MemorySource.SHARED_MEMORY
"""Memory that the kit can lend; a device's own kinds of memory are its author's to test."""

_TIMES = 50


class LentMemory:
    """Memory that a tensor may lie in, with guards in front of it and after its padding.

    Parameters
    ----------
    source : MemorySource
        MALLOC or SHARED_MEMORY.
    declared : HandleFactoryProxy
        Says where tensors begin, and how long their memory is.
    shift_bytes : int
        How far its beginning is from where elements may begin.

    Attributes
    ----------
    memory : ExternalMemory
        Its file descriptor stays open until `close`.
    """

    def __init__(
        self,
        source: MemorySource,
        info: TensorInfo,
        declared: HandleFactoryProxy,
        shift_bytes: int = 0,
    ) -> None:
        size = declared.room_bytes(info)
        start = declared.block_bytes + shift_bytes
        whole = size + start + ALIGNMENT_BYTES
        self._descriptor = -1
        if source is MemorySource.MALLOC:
            raw = np.empty(whole + declared.block_bytes, np.uint8)
            first = -raw.ctypes.data % declared.block_bytes
            self._bytes = raw[first : first + whole]
            self.memory = ExternalMemory(source, size, self._bytes[start : start + size])
        else:
            self._descriptor = os.memfd_create("armpy-testing")
            os.ftruncate(self._descriptor, whole)
            self.memory = ExternalMemory(source, size, None, self._descriptor, start)
            around = ExternalMemory(source, whole, None, self._descriptor, 0)
            self._bytes = around.map()
        self._bytes[...] = POISON
        self._room = slice(start, start + size)
        self._part = slice(start, start + info.size_bytes)
        self._info = info

    @property
    def elements(self) -> Array:
        """The tensor, as the lender sees it."""
        flat = self._bytes[self._part].copy().view(self._info.data_type.dtype)
        return flat.reshape(self._info.known_shape)

    def fill(self, elements: Array) -> None:
        """Change the tensor, as the lender may between executions."""
        self._bytes[self._part] = np.ascontiguousarray(elements).reshape(-1).view(np.uint8)

    @property
    def is_whole(self) -> bool:
        """Return whether nothing was written beside the tensor and its padding."""
        beside = np.delete(self._bytes, self._room)
        return bool((beside == POISON).all())

    def close(self) -> None:
        """Close the file descriptor, as lenders may when the call is over that it came with."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _drivens(subject: BackendUnderTest) -> Iterator[tuple[Driven, MemorySource]]:
    """Networks whose application says that it lends memory, with each kind that can be lent."""
    resources = NetworkResources(input_sources=_SOURCES, output_sources=_SOURCES)
    backend = backend_of_runtime(subject)
    has_some = False
    for case in samples(subject):
        driven = Driven(backend, sample_bench(subject, case), resources)
        for source in driven.factory.import_sources & _SOURCES:
            is_there = source is MemorySource.MALLOC or hasattr(os, "memfd_create")
            if is_there and _is_imported(driven, source):
                has_some = True
                yield driven, source
    if not has_some:
        raise NothingToKeepError("it imports no memory of the kinds that the kit can lend")


def _is_imported(driven: Driven, source: MemorySource) -> bool:
    """Return whether memory of a kind is imported for a network's first input."""
    value = next(iter(driven.sources.values()))
    lent = LentMemory(source, value.info, driven.declared)
    answer = driven.factory.can_import(value.info, lent.memory)
    lent.close()
    return bool(answer)


def answers_are_kept(subject: BackendUnderTest) -> None:
    """Importable memory is imported, and other memory is refused with a reason."""
    for driven, source in _drivens(subject):
        for value in (*driven.sources.values(), *driven.results.values()):
            # The core asks about nothing that does not begin as the factory declares.
            for shift in (0, 1) if driven.declared.takes_any_memory else (0,):
                lent = LentMemory(source, value.info, driven.declared, shift)
                _check_answer(driven, value.info, lent.memory)
                lent.close()
        if source is MemorySource.SHARED_MEMORY:
            _check_too_short(driven, value.info)


def _check_too_short(driven: Driven, info: TensorInfo) -> None:
    """Check that a file in which there is no room for the tensor is refused, at last when used."""
    room, start = driven.declared.room_bytes(info), driven.declared.block_bytes
    whole = ExternalMemory.shared(room)
    beyond = ExternalMemory(whole.source, room, None, whole.file_descriptor, start)
    try:
        driven.factory.import_memory(info, beyond)
    except ArmpyError:
        return
    raise ViolationError(f"a file is imported that is too short for {info}")


def _check_answer(driven: Driven, info: TensorInfo, memory: ExternalMemory) -> None:
    """Check that `import_memory` does what `can_import` says."""
    factory, subject_text = driven.factory, f"{memory.source} for {info}"
    answer = factory.can_import(info, memory)
    check(
        isinstance(answer, Support)
        and (answer or (answer.text.strip() and isinstance(answer.code, ReasonCode))),
        f"can_import answers {answer!r} about {subject_text}: a no has a text and a code",
    )
    try:
        handle = factory.import_memory(info, memory, read=True, write=True)
    except ArmpyError as error:
        check(
            not answer, f"can_import says yes to {subject_text}, but import_memory raised: {error}"
        )
        return
    check(
        answer,
        f"can_import says no to {subject_text} ({answer.text}), but import_memory imports it",
    )
    check(handle.info == info, f"the handle that was imported for {info} is of {handle.info}")
    factory.unimport(handle)


def _import(
    driven: Driven,
    memory: ExecutionTensors,
    source: MemorySource,
    values: dict[str, Value],
    *,
    written: bool,
) -> dict[str, LentMemory]:
    """Put imported tensors in the place of the backend's own."""
    lent_by_name = {}
    for name, value in values.items():
        if value not in memory.handles:  # a constant
            continue
        lent_by_name[name] = lent = LentMemory(source, value.info, driven.declared)
        memory.handles[value] = driven.factory.import_memory(
            value.info, lent.memory, read=not written, write=written
        )
        lent.close()
    return lent_by_name


def inputs_are_read_where_they_lie(subject: BackendUnderTest) -> None:
    """Elements that the lender writes between two executions are read by the second one."""
    for driven, source in _drivens(subject):
        memory = driven.memory()
        lent = _import(driven, memory, source, driven.sources, written=False)
        first = driven.bench.feeds
        for feeds in (first, other_feeds(driven.bench.graph, first), first):
            for name, part in lent.items():
                part.fill(feeds[name])
            with driven.held():
                memory.execute()
                trial = bench(subject, driven.bench.graph, feeds)
                trial.check(memory.read(), f"with inputs in imported {source}")
            for name, part in lent.items():
                unchanged = part.elements.tobytes() == feeds[name].tobytes() and part.is_whole
                check(unchanged, f"the imported input '{name}' in {source} was written to")
        _unimport(driven, memory, driven.sources)


def outputs_are_written_where_they_lie(subject: BackendUnderTest) -> None:
    """The lender's memory holds the results after an execution, and nothing beside them."""
    for driven, source in _drivens(subject):
        memory = driven.memory()
        lent = _import(driven, memory, source, driven.results, written=True)
        for number in range(2):
            with driven.held():
                memory.feed(driven.bench.feeds)
                memory.execute()
            when = f"with outputs in imported {source}, in execution {number + 1}"
            driven.check({**memory.read(), **{n: p.elements for n, p in lent.items()}}, when)
            for name, part in lent.items():
                check(part.is_whole, f"{when}, bytes beside the output '{name}' were written to")
                part.fill(np.zeros_like(part.elements))
        _unimport(driven, memory, driven.results)


def _unimport(driven: Driven, memory: ExecutionTensors, values: dict[str, Value]) -> None:
    """End the use of imported tensors."""
    for value in values.values():
        handle = memory.handles.pop(value, None)
        if handle is not None:
            driven.factory.unimport(handle)


def memory_is_let_go(subject: BackendUnderTest) -> None:
    """Nothing of the lender's is kept when a tensor is imported no more: arrays, open files."""
    for driven, source in _drivens(subject):
        value = next(iter(driven.sources.values()))
        _borrow(driven, source, value.info)
        before = num_open_files()
        for _ in range(_TIMES):
            array = _borrow(driven, source, value.info)
        gc.collect()
        opened = num_open_files() - before
        check(opened < _TIMES, f"{opened} files are open after {_TIMES} imports of {source}")
        is_kept = source is MemorySource.MALLOC and array() is not None
        check(not is_kept, "an array is kept that is imported no more")


def _borrow(driven: Driven, source: MemorySource, info: TensorInfo) -> weakref.ref[Array]:
    """Import some memory and release it; returns a reference that shows whether it is freed."""
    lent = LentMemory(source, info, driven.declared)
    handle: ITensorHandle = driven.factory.import_memory(info, lent.memory, write=True)
    lent.close()
    handle.map(write=False)
    handle.unmap()
    driven.factory.unimport(handle)
    base = lent._bytes.base
    return weakref.ref(base if isinstance(base, np.ndarray) else lent._bytes)


def exports_are_the_tensors_themselves(subject: BackendUnderTest) -> None:
    """A mapping of an exported tensor shows its elements, and the tensor those written there."""
    backend = backend_of_runtime(subject)
    for case in samples(subject):
        driven = Driven(backend, sample_bench(subject, case))
        if not driven.factory.export_sources & MemorySource.SHARED_MEMORY:
            raise NothingToKeepError("it exports no memory that others can map")
        memory = driven.memory()
        feeds = driven.bench.feeds
        for name, value in driven.sources.items():
            memory.handles[value].copy_in_from(np.zeros_like(feeds[name]))
            exported = memory.handles[value].export_memory(MemorySource.SHARED_MEMORY)
            sizes = value.info.size_bytes, driven.declared.room_bytes(value.info)
            check(
                exported.size_bytes in sizes,
                f"{value.info} exports {exported.size_bytes} bytes",
            )
            seen = exported.map()[: value.info.size_bytes]
            check(not seen.any(), f"what {value.info} exports does not have its elements")
            seen[...] = feeds[name].reshape(-1).view(np.uint8)
        with driven.held():
            memory.execute()
        driven.check(memory.read(), "with inputs that were written to the exported memory")
        memory.release()

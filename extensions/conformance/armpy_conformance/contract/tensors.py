"""Rules about tensor handles: maps with a purpose, copies, constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from armpy.backend import ITensorHandle, MemorySource
from armpy.errors import ArmpyError
from armpy.ops.operation import Array
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.contract.case import (
    NotApplicableError,
    NothingToKeepError,
    ViolationError,
    check,
)
from armpy_conformance.contract.driven import Driven, backend_of_runtime, poison
from armpy_conformance.contract.every_operation import one_of_each
from armpy_conformance.contract.networks import sample_bench, samples, with_constants


def _tensors(
    subject: BackendUnderTest, more: Sequence[Case] = ()
) -> Iterator[tuple[ITensorHandle, Array]]:
    """Tensors of the backend's, of its samples and of more cases, and elements for them."""
    backend = backend_of_runtime(subject)
    for case in (*samples(subject), *more):
        driven = Driven(backend, sample_bench(subject, case))
        memory = driven.memory()
        with driven.held():  # tensors are mapped around executions only
            for name, value in driven.sources.items():
                yield memory.handles[value], driven.bench.feeds[name]
        memory.release()


def _is_matrix(item: CaseInput | None) -> bool:
    """Return whether an input is given at run time and has elements along two axes."""
    shape = () if item is None or item.is_constant else item.info.known_shape
    return sum(size > 1 for size in shape) > 1


def _expect(handle: ITensorHandle, elements: Array, when: str) -> None:
    """Check what a tensor holds."""
    held = np.empty_like(elements)
    handle.copy_out_to(held)
    check(
        held.tobytes() == elements.tobytes(),
        f"{when}, {handle.info} holds {held.tolist()}, not {elements.tolist()}",
    )


def maps_for_writing_bring_every_element(subject: BackendUnderTest) -> None:
    """Elements written to a write-only map are in the tensor when it is unmapped."""
    for handle, elements in _tensors(subject):
        poison(handle)
        array = handle.map(read=False)
        form = (array.dtype, array.shape)
        check(
            form == (elements.dtype, elements.shape) and array.flags.c_contiguous,
            f"a map of {handle.info} is {form[0]}{form[1]}, or not in one piece",
        )
        array[...] = elements
        handle.unmap()
        _expect(handle, elements, "after map(read=False)")


def maps_for_reading_change_nothing(subject: BackendUnderTest) -> None:
    """A map that is not written shows the elements, and leaves them as they are."""
    for handle, elements in _tensors(subject):
        handle.copy_in_from(elements.copy())
        for _ in range(2):
            shown = handle.map(write=False)
            check(
                shown.tobytes() == elements.tobytes(),
                f"map(write=False) of {handle.info} shows {shown.tolist()}, "
                f"not {elements.tolist()}",
            )
            handle.unmap()
            _expect(handle, elements, "after map(write=False)")


def maps_keep_what_is_not_written(subject: BackendUnderTest) -> None:
    """A map for both shows the elements, and keeps those that are not written."""
    for handle, elements in _tensors(subject):
        handle.copy_in_from(elements.copy())
        wanted = elements.copy()
        wanted.flat[0] = elements.flat[-1]
        array = handle.map()
        array.flat[0] = elements.flat[-1]
        handle.unmap()
        _expect(handle, wanted, "after one element was written in a map for both")


def copies_are_like_maps(subject: BackendUnderTest) -> None:
    """Copying in and out moves every element, of any array of the tensor's shape, and no other."""
    of_matrices = [case for case in one_of_each(subject) if _is_matrix(case.inputs[0])]
    for handle, elements in _tensors(subject, of_matrices[:1]):
        spread = np.zeros((*elements.shape, 2), elements.dtype)
        spread[..., 0] = elements
        poison(handle)
        handle.copy_in_from(spread[..., 0])
        _expect(handle, elements, "after an array with gaps was copied in")
        poison(handle)
        handle.copy_in_from(np.asfortranarray(elements))
        _expect(handle, elements, "after an array with its first axis innermost was copied in")
        target = np.zeros_like(spread)
        handle.copy_out_to(target[..., 0])
        check(
            target[..., 0].tobytes() == elements.tobytes() and not target[..., 1].any(),
            f"copying {handle.info} out to an array with gaps is wrong",
        )
        try:
            handle.copy_in_from(np.zeros((3, *elements.shape), elements.dtype))
        except ArmpyError:
            _expect(handle, elements, "after elements of another shape were refused")
        else:
            raise ViolationError(f"{handle.info} takes elements of another shape")


def constants_hold_their_elements(subject: BackendUnderTest) -> None:
    """Each of several constants has its own elements, which are never written."""
    backend = backend_of_runtime(subject)
    for case in samples(subject):
        driven = Driven(backend, sample_bench(subject, case))
        constants = []
        for name, value in driven.sources.items():
            for elements in (driven.bench.feeds[name], np.zeros_like(driven.bench.feeds[name])):
                source = driven.declared.fitting(value.info, elements.copy())
                source.flags.writeable = False
                constants.append(
                    (driven.factory.create_constant_handle(value.info, source), elements)
                )
        for handle, elements in constants:
            _expect(handle, elements, "as one of several constants")


def tensors_lie_where_their_factory_declares(subject: BackendUnderTest) -> None:
    """Tensors that others may read in host memory begin where the factory says that they do."""
    backend = backend_of_runtime(subject)
    for case in samples(subject):
        driven = Driven(backend, sample_bench(subject, case))
        alignment = driven.declared.alignment_bytes
        is_read_by_others = driven.declared.export_sources & MemorySource.MALLOC
        if alignment == 1 or not is_read_by_others:
            raise NothingToKeepError("it declares no alignment of memory that others read")
        memory = driven.memory()
        with driven.held():
            for value, handle in memory.handles.items():
                beyond = handle.map(write=False).ctypes.data % alignment
                handle.unmap()
                check(
                    not (beyond and value.info.size_bytes),
                    f"a tensor of {value.info} begins {beyond} bytes after a multiple of "
                    f"{alignment}, which its factory '{driven.factory.factory_id}' declares",
                )
        memory.release()


def networks_have_constants_of_their_own(subject: BackendUnderTest) -> None:
    """Two networks that differ in their constants alone, side by side."""
    backend = backend_of_runtime(subject)
    cases = with_constants(subject)
    if not cases:
        raise NotApplicableError("no operation case with constants passes on this backend")
    for pair in cases:
        loaded = [Driven(backend, sample_bench(subject, case)) for case in pair]
        memories = [driven.memory() for driven in loaded]
        for number in range(2):
            for driven, memory in zip(loaded, memories, strict=True):
                driven.run(memory, f"in execution {number + 1} beside other constants")
        for memory in memories:
            memory.release()

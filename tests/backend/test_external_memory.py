"""External memory: its kinds, and the host's view of it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from armpy.backend import ExternalMemory, MemorySource
from armpy.errors import InvalidArgumentError, MemoryImportError
from armpy_testing.models.networks import floats
from armpy_testing.systems import NEEDS_SHARED_MEMORY


@pytest.fixture
def eight(tmp_path: Path) -> Iterator[ExternalMemory]:
    """The memory of a file with 8 bytes."""
    with (tmp_path / "eight").open("w+b") as file:
        file.truncate(8)
        yield ExternalMemory.of_file_descriptor(file.fileno(), 8)


@pytest.mark.parametrize("array", [floats(1, 2, 3)[::2], np.array([None])])
def test_elements_that_do_not_lie_side_by_side_are_refused(array: np.ndarray) -> None:
    with pytest.raises(InvalidArgumentError, match="do not lie side by side"):
        ExternalMemory.of_array(array)


@pytest.mark.parametrize(
    ("source", "size", "array", "text"),
    [
        (MemorySource.UNDEFINED, 4, None, "not of one kind"),
        (MemorySource.MALLOC | MemorySource.DMA_BUF, 4, None, "not of one kind"),
        (MemorySource.DMA_BUF, -1, None, "Expected a whole number of 0 or more; got -1"),
        (MemorySource.MALLOC, 4, None, "Expected only an array; got no array and file d"),
        (MemorySource.DMA_BUF, 4, None, "Expected only a file descriptor; .* descriptor -1"),
        (MemorySource.DEVICE, 4, np.zeros(4, np.uint8), "Expected only a device; got an array"),
        (MemorySource.MALLOC, 4, np.zeros(3, np.uint8), r"uint8 \(4,\); got uint8 \(3,\)"),
        (MemorySource.MALLOC, 4, np.zeros(4, np.int8), r"got int8 \(4,\)"),
        (MemorySource.MALLOC, 4, np.zeros(8, np.uint8)[::2], "not a plain array"),
    ],
)
def test_what_cannot_be_memory_is_refused(
    source: MemorySource, size: int, array: np.ndarray | None, text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^ExternalMemory.*{text}"):
        ExternalMemory(source, size, array)


@NEEDS_SHARED_MEMORY
def test_shared_memory_is_one_memory_for_all_who_map_it() -> None:
    memory = ExternalMemory.shared(10_000)
    first = memory.map()
    assert not first.any()
    part = ExternalMemory.of_file_descriptor(memory.file_descriptor, 100, offset_bytes=4099)
    part.map()[:] = 7
    assert first[4099:4199].tolist() == [7] * 100
    assert first.sum() == 700


@NEEDS_SHARED_MEMORY
def test_a_shared_memorys_descriptor_is_closed_with_it_and_its_maps_stay() -> None:
    memory = ExternalMemory.shared(8)
    descriptor, mapped = memory.file_descriptor, memory.map()
    os.fstat(descriptor)
    del memory
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    mapped[:] = 1
    assert mapped.sum() == 8


def test_memory_that_is_not_to_be_written_cannot_be(eight: ExternalMemory) -> None:
    assert eight.map().flags.writeable
    assert not eight.map(write=False).flags.writeable


def test_a_file_that_is_too_short_is_not_mapped(eight: ExternalMemory) -> None:
    longer = ExternalMemory.of_file_descriptor(eight.file_descriptor, 8, offset_bytes=1)
    with pytest.raises(MemoryImportError, match=r"the file has 8 bytes.*8 bytes from 1 on"):
        longer.map()


def test_a_file_that_is_open_to_be_read_only_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "elements"
    path.write_bytes(b"abcd")
    descriptor = os.open(path, os.O_RDONLY)
    memory = ExternalMemory.of_file_descriptor(descriptor, 4)
    assert memory.map(write=False).tobytes() == b"abcd"
    with pytest.raises(MemoryImportError, match="denied"):
        memory.map()
    os.close(descriptor)
    with pytest.raises(MemoryImportError, match=r"Bad file descriptor|handle"):
        memory.map(write=False)


def test_read_only_memory_of_the_process_is_not_written() -> None:
    memory = ExternalMemory.of_array(np.frombuffer(b"abcd", np.uint8))
    assert memory.map(write=False).tobytes() == b"abcd"
    with pytest.raises(MemoryImportError, match="it is read-only"):
        memory.map()


def test_protected_memory_is_never_mapped(eight: ExternalMemory) -> None:
    memory = ExternalMemory.of_file_descriptor(
        eight.file_descriptor, 8, source=MemorySource.DMA_BUF_PROTECTED
    )
    with pytest.raises(MemoryImportError, match="never mapped by the host"):
        memory.map(write=False)
    with pytest.raises(MemoryImportError, match="never mapped by the host"):
        np.asarray(memory)


@pytest.mark.parametrize(("descriptor", "source"), [(-1, "DMA_BUF"), (0, "MALLOC"), (0, "DEVICE")])
def test_what_is_no_file_descriptor_is_refused(descriptor: int, source: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"does not fit.*file descriptor {descriptor}"):
        ExternalMemory.of_file_descriptor(descriptor, 4, source=MemorySource[source])


def test_other_libraries_see_the_bytes_in_place(eight: ExternalMemory) -> None:
    np.asarray(eight)[:] = range(1, 9)
    assert np.from_dlpack(eight).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    constant = ExternalMemory.of_array(np.frombuffer(b"abcd", np.uint8))
    assert np.asarray(constant).tobytes() == b"abcd"


def test_an_empty_tensor_needs_no_map(eight: ExternalMemory) -> None:
    assert ExternalMemory.of_file_descriptor(eight.file_descriptor, 0).map().shape == (0,)

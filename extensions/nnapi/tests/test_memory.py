"""Memory that is shared with models and executions."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from armpy_nnapi import Execution, Memory, Model, OperationCode, ResultCode

from .nnapi_models import (
    FLOAT_2,
    add_activation,
    add_operands,
    compiled,
    fails,
    floats,
    sum_model,
)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    """A file of 64 bytes: 0, 1, 2, ..."""
    path = tmp_path / "values"
    path.write_bytes(bytes(range(64)))
    fd = os.open(path, os.O_RDWR)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(("fd", "size"), [(0, 0), (-1, 4), (0, -1)])
def test_a_file_is_mapped_with_a_size_and_a_descriptor(fd: int, size: int) -> None:
    with fails(ResultCode.BAD_DATA, "the region cannot be"):
        Memory.from_fd(fd, size)


def test_a_descriptor_that_is_not_open_cannot_be_duplicated(descriptor: int) -> None:
    with fails(ResultCode.UNEXPECTED_NULL, "descriptor 9999 is not open"):
        Memory.from_fd(9999, 4)


def test_a_region_beyond_the_file_cannot_be_mapped(descriptor: int) -> None:
    with fails(ResultCode.UNMAPPABLE, "the file cannot be mapped"):
        Memory.from_fd(descriptor, 65)


def test_a_mapping_begins_at_any_byte(descriptor: int) -> None:
    with Memory.from_fd(descriptor, 8, offset=5) as memory:
        assert bytes(memory.region(1, 3, "here")) == bytes([6, 7, 8])
        assert memory.size == 8
    behind_a_page = mmap.ALLOCATIONGRANULARITY + 5
    os.pwrite(descriptor, b"\0numbers", behind_a_page)
    with Memory.from_fd(descriptor, 8, offset=behind_a_page) as memory:
        assert bytes(memory.region(1, 7, "here")) == b"numbers"


def test_what_is_written_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(bytes(64))
    fd = os.open(path, os.O_RDWR)
    memory = Memory.from_fd(fd, 64)
    os.close(fd)
    execution = Execution(compiled(sum_model()))
    execution.set_input(0, floats(1, 2))
    execution.set_input(1, floats(10, 20))
    execution.set_output_from_memory(0, memory, 16, 8)
    execution.compute()
    assert np.frombuffer(path.read_bytes(), np.float32, 2, 16).tolist() == [11, 22]
    assert path.read_bytes()[24:] == bytes(40)


@pytest.mark.parametrize(
    ("buffer", "code", "problem"),
    [
        (None, ResultCode.UNEXPECTED_NULL, "the buffer is None"),
        (b"", ResultCode.BAD_DATA, "the memory has no bytes"),
        (7, ResultCode.BAD_DATA, "it has no memory to share"),
        (np.zeros((4, 4))[:, :2], ResultCode.BAD_DATA, "the buffer is not contiguous"),
    ],
)
def test_memory_is_made_from_a_buffer(buffer: object, code: ResultCode, problem: str) -> None:
    with fails(code, problem):
        Memory(buffer)


@pytest.mark.parametrize(("offset", "length"), [(0, 0), (0, 9), (8, 1), (-1, 4), (4, 5)])
def test_a_region_lies_within_the_memory(offset: int, length: int) -> None:
    with fails(ResultCode.BAD_DATA, "here: the region is not in the memory.*8; got"):
        Memory(bytearray(8)).region(offset, length, "here")


def test_a_models_constants_are_used_in_place() -> None:
    values = floats(0, 10, 20)
    model = Model()
    a, b, total = add_operands(model, FLOAT_2, FLOAT_2, FLOAT_2)
    model.set_operand_value_from_memory(b, Memory(values), 4, 8)
    model.add_operation(OperationCode.ADD, [a, b, add_activation(model)], [total])
    model.identify_inputs_and_outputs([a], [total])
    model.finish()
    elements = model.description.main.operands[b].elements
    assert elements is not None
    assert np.shares_memory(elements, values)
    assert compiled(model)(floats(1, 2))[0].tolist() == [11, 22]


def test_closed_memory_is_not_used_any_more(descriptor: int) -> None:
    memory = Memory.from_fd(descriptor, 8)
    region = memory.region(0, 8, "here")
    memory.close()
    assert bytes(region) == bytes(range(8))
    assert repr(memory) == "Memory(closed)"
    with fails(ResultCode.BAD_STATE, "the memory is closed"):
        memory.region(0, 8, "here")

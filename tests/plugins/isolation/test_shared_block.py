"""Memory that a worker shares: blocks, declared memory, allocators."""

from __future__ import annotations

import gc
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import BackendRegistry, DataType, Runtime, RuntimeOptions, TensorInfo
from armpy.errors import BackendCapabilityError
from armpy.plugins.isolation.shared_block import (
    ALIGNMENT_BYTES,
    TensorLayout,
    create_block,
    device_time,
    forbid_writing,
    map_block,
    stop_flag,
)
from armpy_testing.backends import faulty_backend as faulty
from armpy_testing.backends.faulty_backend import FaultyBackend
from armpy_testing.backends.injections import negation, negative, run
from armpy_testing.backends.vector_backend import StrictVectors, VectorBackend, WrongVectors
from armpy_testing.models.networks import chain
from armpy_testing.watched_allocator import WatchedAllocator

needs_seals = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files have no seals")


@needs_seals
def test_its_size_cannot_be_changed() -> None:
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


def test_a_python_without_memfd_shares_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    block = create_block(4096)
    os.write(block, b"weights")
    forbid_writing(block)
    assert os.fstat(block).st_size == 4096
    with map_block(block, writable=False) as mapped:
        assert mapped[:7] == b"weights"
    os.close(block)
    assert not [*tmp_path.iterdir()]


def test_tensors_are_aligned_and_apart_and_after_the_header() -> None:
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
    flag, time_ns = stop_flag(block), device_time(block)
    flag[:], time_ns[:] = 1, -1
    assert (flag.tolist(), time_ns.tolist()) == ([1], [-1])
    for array, info in zip(arrays, infos, strict=True):
        assert (array.shape, array.dtype) == (info.shape, info.data_type.dtype)
        assert not array.any()
    del arrays, array, flag, time_ns
    gc.collect()


# What a handle factory declares is kept to in a process of the backend's own, too


@contextmanager
def isolated(make: type[VectorBackend]) -> Iterator[Runtime]:
    """A runtime with such a backend in a process of its own, and CpuRef in this one."""
    registry = BackendRegistry()
    registry.register("Simd", make)
    registry.register("CpuRef", ReferenceBackend)
    backends = ["Simd", "CpuRef"]
    options = RuntimeOptions(backends=backends, registry=registry, isolation={"Simd": "process"})
    with Runtime(options) as runtime:
        yield runtime


@pytest.mark.slow
def test_tensors_lie_as_declared_in_the_worker() -> None:
    with isolated(StrictVectors) as runtime:
        network = runtime.load_network(chain(3))
        for start in (0, 1):
            x = np.arange(5, dtype=np.float32)[start : start + 4]
            y = runtime.enqueue_workload(network, {"x": x})["y"]
            np.testing.assert_array_equal(y, x + 3)
        placement = runtime.get_network(network).placement
        assert placement is not None
        assert {layer.backend for layer in placement.layers} == {"Simd"}


@pytest.mark.slow
def test_what_cannot_be_kept_to_is_refused_with_the_same_reason() -> None:
    with isolated(WrongVectors) as runtime:
        network = runtime.load_network(chain(3))
        x = np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(runtime.enqueue_workload(network, {"x": x})["y"], x + 3)
        placement = runtime.get_network(network).placement
        assert placement is not None
        assert {layer.backend for layer in placement.layers} == {"CpuRef"}
        texts = [refusal.text for refusal in placement.refusals]
        assert any("alignment_bytes" in text and "a power of two" in text for text in texts), texts


# What an isolated backend takes does not come from the application's allocator, and it is said


def options(backends: list[str] | None) -> RuntimeOptions:
    """Those of a runtime with an allocator for an isolated backend."""
    registry = BackendRegistry()
    registry.register(faulty.NAME, FaultyBackend)
    registry.register("CpuRef", ReferenceBackend)
    return RuntimeOptions(
        backends=backends,
        registry=registry,
        isolation={faulty.NAME: "process"},
        custom_allocators={faulty.NAME: WatchedAllocator()},
    )


@pytest.mark.slow
def test_isolated_backend_with_an_allocator_is_left_out_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), Runtime(options(None)) as runtime:
        assert [backend.get_id() for backend in runtime.backends] == ["CpuRef"]
        np.testing.assert_array_equal(
            run(runtime, runtime.load_network(negation()), 0), negative(0)
        )
    assert "use_custom_memory_allocator: it has a process of its own" in caplog.text


@pytest.mark.slow
def test_isolated_backend_that_is_named_with_an_allocator_is_refused() -> None:
    with pytest.raises(BackendCapabilityError, match="it has a process of its own"):
        Runtime(options([faulty.NAME, "CpuRef"]))

"""What an isolated backend takes does not come from the application's allocator, and it is said."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import BackendRegistry, Runtime, RuntimeOptions
from armpy.errors import BackendCapabilityError
from tests.support import faulty_backend as faulty
from tests.support.faulty_backend import FaultyBackend
from tests.support.injections import negation, negative, run
from tests.support.watched_allocator import WatchedAllocator


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


def test_isolated_backend_with_an_allocator_is_left_out_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), Runtime(options(None)) as runtime:
        assert [backend.get_id() for backend in runtime.backends] == ["CpuRef"]
        np.testing.assert_array_equal(
            run(runtime, runtime.load_network(negation()), 0), negative(0)
        )
    assert "use_custom_memory_allocator: it has a process of its own" in caplog.text


def test_isolated_backend_that_is_named_with_an_allocator_is_refused() -> None:
    with pytest.raises(BackendCapabilityError, match="it has a process of its own"):
        Runtime(options([faulty.NAME, "CpuRef"]))

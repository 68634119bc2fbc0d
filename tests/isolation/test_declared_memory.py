"""What a handle factory declares is kept to in a process of the backend's own, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from armpy_reference import ReferenceBackend

from armpy import BackendRegistry, Runtime, RuntimeOptions
from tests.support.networks import chain
from tests.support.vector_backend import StrictVectors, VectorBackend, WrongVectors


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

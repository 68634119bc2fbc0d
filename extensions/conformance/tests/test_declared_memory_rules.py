"""Rules about what handle factories declare: backends and cores that do not keep to it are seen."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest

from armpy.backend import (
    DefaultAllocator,
    HostTensorHandle,
    IBackendInternal,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    WorkloadInfo,
)
from armpy.model import Model
from armpy.ops.operation import Array, Operation
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.tensor import TensorInfo
from armpy_conformance import CaseResult
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.conformance import cases_for
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.vector_backend import VectorBackend, VectorFactory
from armpy_testing.models.networks import chain

from .kit_runs import options_for

AREAS = ("contract/tensors/", "contract/arenas/", "contract/alignment/", "contract/imports/")


def failures(backend: IBackendInternal, areas: tuple[str, ...] = AREAS) -> list[CaseResult]:
    """Findings of the rules about memory, or of some of them, against a backend."""
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    cases = [case for case in cases_for(subject) if case.id.startswith(areas)]
    assert cases
    results: list[CaseResult] = [case.judge(subject) for case in cases]
    return [result for result in results if result.outcome.is_bad]


class SlippingFactory(VectorFactory):
    """Puts tensors into memory of its own, where they happen to lie."""

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        own = DefaultAllocator().allocate(info.size_bytes + 128, 64)[4:]
        elements: Array = own[: info.size_bytes].view(info.data_type.dtype)
        return HostTensorHandle(info, elements.reshape(info.known_shape))


class Overflowing(VectorBackend):
    """Writes whole vectors of 64 bytes, and declares shorter ones."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        right = super().create_workload_factory(network)

        class Workload(IWorkload):
            def __init__(self, right: IWorkload) -> None:
                self._right = right

            def execute(
                self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
            ) -> None:
                self._right.execute(inputs, outputs)
                for handle in outputs:
                    array = handle.map()
                    # Short of the guards' own end, as it is the kit's memory.
                    tail_bytes = -array.nbytes % 64
                    ctypes.memset(array.ctypes.data + array.nbytes, 0xEE, tail_bytes)

        class Factory(IWorkloadFactory):
            def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
                return Workload(right.create_workload(operation, info))

        return Factory()


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("declared", [(1, 128), (256, 32)])
def test_a_backend_that_keeps_to_what_it_declares_passes(declared: tuple[int, int]) -> None:
    backend = VectorBackend(*declared)
    assert [f"{failure.case}: {failure.text}" for failure in failures(backend)] == []
    assert backend.seen
    assert backend.misplaced == []


@pytest.mark.slow
def test_handles_that_lie_elsewhere_than_declared_are_found() -> None:
    backend = VectorBackend(64)
    backend.factory = SlippingFactory(64)
    texts = {failure.case: failure.text for failure in failures(backend)}
    text = texts["contract/alignment/tensors-lie-where-their-factory-declares"]
    assert "begins 4 bytes after a multiple of 64" in text
    assert "'test/vectors'" in text


@pytest.mark.slow
def test_writing_past_the_padding_is_found() -> None:
    # Other rules give it memory without guards, which it destroys.
    areas = ("contract/alignment/", "contract/imports/")
    texts = {failure.case: failure.text for failure in failures(Overflowing(1, 16), areas)}
    text = texts["contract/alignment/nothing-is-written-past-the-padding"]
    assert "past the 16 bytes to which padding_bytes rounds it up" in text
    imported = texts["contract/imports/outputs-are-written-where-they-lie"]
    assert "bytes beside the output" in imported


def test_a_core_that_does_not_keep_to_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a backend sees it, whichever part of the core forgets it."""
    odd = np.arange(5, dtype=np.float32)[1:]
    careful = VectorBackend(1024, 16)
    Model(chain(3), runtime_of(careful))(odd)
    assert careful.seen
    assert careful.misplaced == []
    monkeypatch.setattr(HandleFactoryProxy, "gives_room_for", lambda *_, **__: True)
    monkeypatch.setattr(HandleFactoryProxy, "takes_any_memory", True)
    forgetful = VectorBackend(1024, 16)
    Model(chain(3), runtime_of(forgetful))(odd)
    assert forgetful.misplaced

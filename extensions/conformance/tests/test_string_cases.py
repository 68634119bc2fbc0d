"""The kit's cases of strings find what backends that claim strings get wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import ITensorHandle, IWorkload, IWorkloadFactory, NetworkResources, WorkloadInfo
from armpy.execution import RuntimeOptions
from armpy.ops.operation import Array, Operation
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.cases.strings import string_cases
from armpy_conformance.judge import judge
from armpy_conformance.result import Outcome
from armpy_testing.backends.fake_backends import registry_of


class _Workload(IWorkload):
    def __init__(self, right: IWorkload, spoil: Callable[[str], str]) -> None:
        self._right, self._spoil = right, spoil

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        self._right.execute(inputs, outputs)
        for handle in outputs:
            array: Array = handle.map()
            if array.dtype == np.object_:
                array.reshape(-1)[...] = [self._spoil(text) for text in array.reshape(-1)]
            handle.unmap()


class _Factory(IWorkloadFactory):
    def __init__(self, right: IWorkloadFactory, spoil: Callable[[str], str]) -> None:
        self._right, self._spoil = right, spoil

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return _Workload(self._right.create_workload(operation, info), self._spoil)


class Spoiling(ReferenceBackend):
    """CpuRef, whose strings go through a function."""

    def __init__(self, spoil: Callable[[str], str]) -> None:
        self._spoil = spoil

    def get_id(self) -> str:
        return "Spoiling"

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory(super().create_workload_factory(network), self._spoil)


def outcomes(backend: ReferenceBackend) -> dict[str, Outcome]:
    """Outcome of each case by its id."""
    options = RuntimeOptions(registry=registry_of(backend, ReferenceBackend()))
    subject = BackendUnderTest(backend.get_id(), options)
    return {case.id: judge(subject, case).outcome for case in string_cases()}


FAULTS: dict[str, Callable[[str], str]] = {
    "ends at a NUL": lambda text: text.partition("\0")[0],
    "loses spaces": lambda text: text.strip(),
    "counts bytes": lambda text: text.encode()[: len(text)].decode(errors="ignore"),
    "latin-1": lambda text: text.encode("latin-1", "replace").decode("latin-1"),
    "replaces empty ones": lambda text: text or " ",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_backend_that_changes_strings_fails(fault: str) -> None:
    by_case = outcomes(Spoiling(FAULTS[fault]))
    assert Outcome.FAILED in by_case.values()
    assert by_case["Comparison/by-hand-strings-not-equal/string"] is Outcome.PASSED


def test_a_backend_with_right_strings_passes() -> None:
    pytest.importorskip("re2", reason="CpuRef refuses regular expressions without google-re2")
    assert set(outcomes(Spoiling(str)).values()) == {Outcome.PASSED}

"""The kit allows what a device declares of its arithmetic, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    DeviceInfo,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    Numerics,
    WorkloadInfo,
)
from armpy.execution import RuntimeOptions
from armpy.ops import Activation, ActivationFunction
from armpy.ops.operation import Array, Operation
from armpy.types import DataType
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.judge import judge
from armpy_conformance.result import Outcome
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.models.networks import f32

SUBNORMAL = 2.0**-140


class Careless(ReferenceBackend):
    """Loses NaN, or takes small numbers for zero."""

    def __init__(self, numerics: Numerics, *, loses: str) -> None:
        self.numerics, self.loses = numerics, loses

    def get_id(self) -> str:
        return "Careless"

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(numerics=self.numerics),)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory(super().create_workload_factory(network), self.loses)


class _Factory(IWorkloadFactory):
    def __init__(self, right: IWorkloadFactory, loses: str) -> None:
        self._right, self._loses = right, loses

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return _Workload(self._right.create_workload(operation, info), self._loses)


class _Workload(IWorkload):
    def __init__(self, right: IWorkload, loses: str) -> None:
        self._right, self._loses = right, loses

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        self._right.execute(inputs, outputs)
        for handle in outputs:
            array = handle.map()
            if self._loses == "nan":
                array[np.isnan(array)] = 0
            if self._loses == "subnormal":
                array[np.abs(array) < np.finfo(np.float32).tiny] = 0
            if self._loses == "infinity":
                array[np.isposinf(array)] = np.finfo(np.float32).max
            if self._loses == "ones":
                array[array == 1] = 0
            handle.unmap()


def case_of(values: Sequence[float]) -> Case:
    data: Array = np.array(values, np.float32)
    operation = Activation(ActivationFunction.RELU)
    return Case("numerics", operation, (CaseInput(f32(len(values)), data),), (f32(len(values)),))


@pytest.mark.parametrize(
    ("numerics", "loses", "outcome"),
    [
        (Numerics(), "nan", Outcome.FAILED),
        (Numerics(keeps_nan=False), "nan", Outcome.PASSED),
        (Numerics(flushes_subnormals=True), "nan", Outcome.FAILED),
        (Numerics(keeps_nan=False), "ones", Outcome.FAILED),
        (Numerics(flushes_subnormals=True), "ones", Outcome.FAILED),
        (Numerics(flushes_subnormals=True), "subnormal", Outcome.PASSED),
        (Numerics(), "infinity", Outcome.FAILED),
        (Numerics(keeps_infinity=False), "infinity", Outcome.PASSED),
        (Numerics(keeps_infinity=False), "ones", Outcome.FAILED),
    ],
)
def test_what_is_declared_is_allowed(numerics: Numerics, loses: str, outcome: Outcome) -> None:
    backend = Careless(numerics, loses=loses)
    options = RuntimeOptions(registry=registry_of(backend, ReferenceBackend()))
    subject = BackendUnderTest("Careless", options)
    result = judge(
        subject, case_of([float("nan"), 1.0, -1.0, SUBNORMAL, 2.0, 3.0, float("inf"), 5.0])
    )
    assert result.outcome is outcome, result.text


def test_float16_is_held_to_more_where_nothing_is_declared() -> None:
    from armpy_conformance.differential_run import DifferentialRun, tolerance_of

    def tolerance(numerics: Numerics) -> float:
        run = DifferentialRun(None, ({}, {}), ({}, {}), (), numerics=numerics)  # type: ignore[arg-type]
        return tolerance_of(run, DataType.FLOAT16).relative

    assert tolerance(Numerics(sums_float16=True)) == 8 * tolerance(Numerics())

"""The kit allows what a device declares of its arithmetic, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from armpy.backend import (
    DeviceInfo,
    Numerics,
)
from armpy.ops import Activation, ActivationFunction
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.contract.networks import bench
from armpy_conformance.judge import judge
from armpy_conformance.result import Outcome
from armpy_testing.models.networks import f32

from .kit_runs import options_for
from .planted.shapes import Call, Fault, Plain

SUBNORMAL = 2.0**-140


LOST: dict[str, Callable[[Array], Array]] = {
    "nan": np.isnan,
    "subnormal": lambda array: np.abs(array) < np.finfo(np.float32).tiny,
    "infinity": np.isposinf,
    "ones": lambda array: array == 1,
}
"""Elements in whose place a careless device gives another number."""


@dataclass
class Loses(Fault):
    """Some numbers are lost."""

    what: str

    def after(self, call: Call) -> None:
        for array in call.outputs:
            number = np.finfo(np.float32).max if self.what == "infinity" else 0
            array[LOST[self.what](array)] = number


class Careless(Plain):
    """Declares its arithmetic."""

    def __init__(self, numerics: Numerics, fault: Fault) -> None:
        super().__init__(fault)
        self._numerics = numerics

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(numerics=self._numerics),)


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
    backend = Careless(numerics, Loses(loses))
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    result = judge(
        subject, case_of([float("nan"), 1.0, -1.0, SUBNORMAL, 2.0, 3.0, float("inf"), 5.0])
    )
    assert result.outcome is outcome, result.text


def test_networks_have_no_inputs_that_a_device_reads_otherwise() -> None:
    backend = Careless(Numerics(flushes_subnormals=True), Loses("subnormal"))
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    case = case_of([-SUBNORMAL])
    root = replace(case, operation=Activation(ActivationFunction.SQRT)).graph()
    trial = bench(subject, root, case.feeds())
    assert [array.tolist() for array in trial.expected.values()] == [[0.0]]  # not NaN


def test_float16_is_held_to_more_where_nothing_is_declared() -> None:
    from armpy_conformance.differential_run import DifferentialRun, tolerance_of

    def tolerance(numerics: Numerics) -> float:
        run = DifferentialRun(None, ({}, {}), ({}, {}), (), numerics=numerics)  # type: ignore[arg-type]
        return tolerance_of(run, DataType.FLOAT16).relative

    assert tolerance(Numerics(sums_float16=True)) == 8 * tolerance(Numerics())

"""Expected outputs that no backend computed hold CpuRef itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from armpy.ops import (
    Activation,
    ActivationFunction,
    Comparison,
    Concat,
    Convolution2d,
    ElementwiseBinary,
    Operation,
    Softmax,
    UnaryOperation,
)
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance import Case
from armpy_conformance.case import CaseInput
from armpy_conformance.cases import operation_cases
from armpy_conformance.cases.functions import case_templates, undefined_functions
from armpy_conformance.definitions import functions
from armpy_conformance.definitions.expected import (
    has_real_definition,
    in_real_arithmetic,
    with_expected,
)
from armpy_testing.backends.lying_backends import Tampering, adds_one

from .kit_runs import run

S8, S16 = DataType.QASYMM_S8, DataType.QSYMM_S16


class LyingReference(Tampering):
    """CpuRef whose answers are off by one."""

    def get_id(self) -> str:
        return "CpuRef"


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [Activation, Convolution2d, Concat, Softmax, ElementwiseBinary])
def test_a_reference_that_lies_fails_though_it_says_what_is_right(kind: type[Operation]) -> None:
    result = run(LyingReference(adds_one, (kind,)), f"{kind.__name__}/")
    assert not result.is_passed
    # Quantised elements that are off by one are found by their mean.
    types = Counter(problem.data_type for problem in result.problems)
    assert types["FLOAT32"] >= 5
    assert types["QASYMM_S8"] >= 3 or kind is Softmax


def quantized(operation: Operation, data_type: DataType = S8) -> Case:
    info = TensorInfo((3,), data_type, Quantization.per_tensor(0.5, 0 if data_type is S16 else 2))
    case_input = CaseInput(info, np.array([-4, 2, 9], data_type.dtype))
    return Case("Some/case/type", operation, (case_input,), (info,))


def test_quantised_expectations_are_rounded_real_numbers() -> None:
    case = in_real_arithmetic(quantized(Activation(ActivationFunction.SQUARE)))
    assert case.expected is not None
    # (-3)**2, 0 and 3.5**2 in halves, from 2: 12.25 rounds to 12.5.
    assert case.expected[0].tolist() == [20, 2, 27]
    assert case.expected[0].dtype == np.int8


@pytest.mark.parametrize(
    "case",
    [quantized(Comparison()), quantized(Activation(ActivationFunction.TANH, 1, 1), S16)],
    ids=["comparison", "table"],
)
def test_what_fixed_point_decides_is_not_computed_with_real_numbers(case: Case) -> None:
    assert not has_real_definition(case)
    assert with_expected(case) is case


ANSWERED_BY_CPU_REF = """
    AxisAlignedBboxTransform BidirectionalSequenceLstm BidirectionalSequenceRnn
    BlockwiseFullyConnected BoxWithNmsLimit DetectionPostProcess Fill GenerateProposals
    HashtableLookup HeatmapMaxKeypoint InstanceNormalization LshProjection Lstm MaxPoolWithIndices
    MurmurHash3 NonMaxSuppression NonZero Normalization OneHot QLstm QuantizedLstm RandomMultinomial
    Range Rank Rnn RoiAlign RoiPooling Shape SoftNonMaxSuppression Svdf TopkV2
    UnidirectionalSequenceLstm UnidirectionalSequenceRnn Unique
"""
"""Operations whose generated cases have CpuRef's answers: a wrong workload of CpuRef passes them.
Values worked out by hand, other engines' answers and published examples judge those."""


@pytest.mark.slow
def test_every_other_operation_has_a_definition() -> None:
    defined = {c.operation.name for c in operation_cases() if c.defined().expected is not None}
    undefined = {case.operation.name for case in operation_cases()} - defined
    missing = undefined - set(ANSWERED_BY_CPU_REF.split())
    assert not missing, (
        f"{', '.join(sorted(missing))}: only CpuRef's own answers would be compared. Add an entry "
        "to FUNCTIONS or MOVEMENTS in armpy_conformance/definitions/functions.py"
    )
    assert undefined == set(ANSWERED_BY_CPU_REF.split()), "some have a definition by now"


def test_every_function_of_floats_has_a_definition() -> None:
    missing = undefined_functions()
    assert not missing, "\n".join(missing)


ERF = UnaryOperation.ERF


def test_a_function_without_a_definition_is_one_failure_that_names_the_lines_to_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {f: g for f, g in functions.TABLES[UnaryOperation][1].items() if f != ERF}
    monkeypatch.setitem(functions.TABLES, UnaryOperation, ("_UNARY", table))  # type: ignore[misc]
    assert undefined_functions() == [
        "UnaryOperation.ERF has no definition: add it to _UNARY in "
        "armpy_conformance/definitions/functions.py, and its inputs to OF_FLOATS in "
        "armpy_conformance/cases/functions.py"
    ]
    lines = [line for line in case_templates() if getattr(line.operation, "operation", 0) is ERF]
    cases = [case for line in lines for case in line.cases()]
    assert cases
    assert all(with_expected(case) is case for case in cases)

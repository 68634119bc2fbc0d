"""The conformance kit's cases agree with CpuRef on every instruction set.

Whole numbers are equal, floats close; every other case is computed in the shares of two threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.support import support_of_constants

from armpy.graph import Graph
from armpy_conformance.case import Case
from armpy_conformance.cases import operation_cases
from armpy_conformance.cases.control_flow import control_flow_cases

from .support import (
    PRODUCT_ISAS,
    PRODUCT_NAMES,
    check_outputs,
    refusals,
    release_guarded,
    run_compiled,
    run_reference,
    without_subnormals,
)

PARTS = 24
"""The cases are tested in so many parts: one by default, all before landing."""

WITHOUT_LOWERING = {
    "AxisAlignedBboxTransform",
    "BidirectionalSequenceLstm",
    "BidirectionalSequenceRnn",
    "BitCast",
    "BoxWithNmsLimit",
    "DecisionTrees",
    "DetectionPostProcess",
    "Determinant",
    "Dft",
    "GenerateProposals",
    "HashtableLookup",
    "HeatmapMaxKeypoint",
    "LshProjection",
    "Lstm",
    "MaxPoolWithIndices",
    "MurmurHash3",
    "NonMaxSuppression",
    "NonZero",
    "Pooling3d",
    "QLstm",
    "QuantizedLstm",
    "RandomBits",
    "RandomMultinomial",
    "RandomNormal",
    "RandomUniform",
    "Range",
    "ReverseSequence",
    "Rnn",
    "RoiPooling",
    "SoftNonMaxSuppression",
    "TfIdfVectorizer",
    "UnidirectionalSequenceRnn",
    "Unique",
}
"""Operations that NumbaAcc leaves to other backends."""

NUM_REFUSED = {
    "Activation": 107,
    "ArgMinMax": 45,
    "Attention": 29,
    "BatchMatMul": 16,
    "Cast": 79,
    "Comparison": 85,
    "Convolution2d": 55,
    "Convolution3d": 28,
    "Cumulate": 2,
    "DepthwiseConvolution2d": 73,
    "ElementwiseBinary": 136,
    "ElementwiseUnary": 183,
    "FullyConnected": 34,
    "GatherElements": 2,
    "GridSample": 1,
    "L2Normalization": 12,
    "LayerNormalization": 13,
    "LogSoftmax": 16,
    "Normalization": 46,
    "OneHot": 4,
    "Pad": 3,
    "Prelu": 23,
    "Quantize": 43,
    "RecurrentSequence": 54,
    "Reduce": 57,
    "RmsNormalization": 15,
    "RoiAlign": 18,
    "ScatterElements": 4,
    "ScatterNd": 7,
    "Select": 34,
    "Softmax": 67,
    "Svdf": 8,
    "TopkV2": 6,
    "TransposeConvolution2d": 62,
    "TransposeConvolution3d": 32,
    "UnidirectionalSequenceLstm": 34,
}
"""How many cases of the other operations NumbaAcc refuses; none of those that are not named."""

by_isa = pytest.mark.parametrize("isa", PRODUCT_ISAS, ids=PRODUCT_NAMES)


@pytest.mark.slow
def test_no_other_case_is_refused() -> None:
    refused = [
        case.operation.name
        for case in (*operation_cases(), *control_flow_cases())
        if not is_taken(case.graph())
    ]
    assert set(refused) == WITHOUT_LOWERING.union(NUM_REFUSED)
    assert Counter(name for name in refused if name in NUM_REFUSED) == NUM_REFUSED


@by_isa
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))]
)
def test_cases_agree_with_the_reference(part: int, isa: Isa) -> None:
    cases = operation_cases()[part::PARTS]
    assert [*problems_of(cases[::2], isa, 0), *problems_of(cases[1::2], isa, 2)] == []


@pytest.mark.slow
@by_isa
def test_branches_and_loops_agree_with_the_reference(isa: Isa) -> None:
    assert problems_of(control_flow_cases(), isa, 0) == []


def is_taken(graph: Graph) -> bool:
    """Return whether NumbaAcc takes every layer."""
    return not refusals(graph) and all(map(support_of_constants, graph.layers))


def problems_of(cases: Iterable[Case], isa: Isa, num_threads: int) -> list[str]:
    """Differences from CpuRef of the cases that NumbaAcc takes."""
    problems = []
    for case in cases:
        graph, inputs = case.graph(), without_subnormals(case.feeds())
        if not is_taken(graph):
            continue
        with np.errstate(all="ignore"):
            expected = run_reference(graph, inputs)
        actual = run_compiled(graph, inputs, isa, num_threads=num_threads)
        try:
            check_outputs(graph, expected, actual, isa.name)
        except AssertionError as error:
            problems.append(f"{case.id}: {error}")
        release_guarded()
    return problems

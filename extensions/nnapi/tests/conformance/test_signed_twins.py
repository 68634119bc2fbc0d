"""Examples of unsigned quantised tensors and their signed twins, equal up to 128."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import ReasonCode, Support
from armpy.execution import RuntimeOptions
from armpy.types import DataType
from armpy_conformance import Outcome
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.vectors import run_vectors
from armpy_nnapi.conformance.vectors.example import Example
from armpy_nnapi.conformance.vectors.judge import Variation, VectorJudge
from armpy_nnapi.conformance.vectors.runner import variations_of
from armpy_nnapi.conformance.vectors.twins import has_signed_twin, signed_twin
from armpy_nnapi.conformance.vectors.writer import write_examples
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.backends.lying_backends import write_liar
from armpy_testing.backends.scripted_backend import Call, ScriptedBackend, declaration

U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED


def addition(code: OperationCode = OperationCode.ADD) -> Example:
    """(1, 2) plus the constant (10, 100), of scale 0.5 and zero point 0."""
    tensor = Operand(U8, (2,), 0.5, 0, Lifetime.SUBGRAPH_INPUT)
    constant = Operand(U8, (2,), 0.5, 0, Lifetime.CONSTANT_COPY, bytes([20, 200]))
    none = Operand(OperandCode.INT32, lifetime=Lifetime.CONSTANT_COPY, data=bytes(4))
    output = Operand(U8, (2,), 0.5, 3, Lifetime.SUBGRAPH_OUTPUT)
    graph = Subgraph(
        (tensor, constant, none, output), (OperationNode(code, (0, 1, 2), (3,)),), (0,), (3,)
    )
    inputs, outputs = np.asarray([2, 4], np.uint8), np.asarray([25, 207], np.uint8)
    return Example("add", "made.json.gz", ModelDescription(graph), (inputs,), (outputs,))


def test_a_twin_has_signed_tensors_of_the_same_real_numbers() -> None:
    twin = signed_twin(addition())
    tensor, constant, none, output = twin.model.main.operands
    assert [o.type for o in (tensor, constant, output)] == [S8] * 3
    assert [o.zero_point for o in (tensor, constant, output)] == [-128, -128, -125]
    assert constant.data == bytes([0x94, 72])  # 20 - 128 is -108 is 0x94; 200 - 128
    assert none == addition().model.main.operands[2]
    assert twin.inputs[0] is not None
    assert twin.outputs[0] is not None
    assert twin.inputs[0].tolist() == [-126, -124]
    assert twin.inputs[0].dtype == np.dtype(np.int8)
    assert twin.outputs[0].tolist() == [-103, 79]


def test_only_unsigned_examples_have_twins() -> None:
    assert has_signed_twin(addition())
    assert not has_signed_twin(addition(OperationCode.CAST))
    assert not has_signed_twin(replace(addition(), expects_failure=True))
    assert not has_signed_twin(signed_twin(addition()))
    assert [v.case.rpartition("/")[2] for v in variations_of(addition())] == [
        "as declared",
        "unknown output dimensions",
        "signed twin",
    ]


def test_a_right_backend_passes_and_a_layer_ran_on_signed_tensors() -> None:
    result = VectorJudge("CpuRef")(Variation(addition(), False, is_signed_twin=True))
    assert (result.outcome, result.ran) == (Outcome.PASSED, ("ElementwiseBinary QASYMM_S8",))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["adds_one_to_signed", "adds_one_to_unsigned"])
def test_a_backend_whose_twins_differ_is_caught(tmp_path: Path, how: str) -> None:
    options = write_liar(tmp_path / "liar", f"Tampering(lying_backends.{how}, None)")
    write_examples(tmp_path / "made.json.gz", [addition()])
    result = run_vectors(tmp_path, "Liar", runtime_options=options, jobs=1)
    (problem,) = result.problems  # one step is within the tolerance of the published outputs
    assert problem.case.endswith("/signed twin")
    assert "output 0 is not the unsigned one less 128: 2 of 2 elements are wrong" in problem.text


def no_signed(call: Call) -> object:
    """Take what CpuRef takes, but no signed 8-bit tensors."""
    if any(
        info is not None and info.data_type is DataType.QASYMM_S8
        for info in call.arguments["inputs"]
    ):
        return Support.no(ReasonCode.DATA_TYPE, "no signed elements")
    return call.right()


@pytest.mark.parametrize("level", [29, 30])
def test_a_device_of_the_latest_level_has_to_take_signed_elements_as_well(level: int) -> None:
    declared = declaration(feature_level=level)
    backend = ScriptedBackend("Half", {"support": no_signed}, declared=declared)
    judge = VectorJudge("Half", RuntimeOptions(registry=registry_of(backend, ReferenceBackend())))
    as_declared, _, twin = (judge(variation) for variation in variations_of(addition()))
    assert as_declared.outcome is Outcome.PASSED
    if level < 30:
        assert twin.outcome is Outcome.UNSUPPORTED
    else:
        assert twin.outcome is Outcome.FAILED
        assert "Half does not take ADD for signed elements, and does for unsigned" in twin.text
        assert "Expected both of a device of feature level 30" in twin.text


@pytest.mark.parametrize(
    ("name", "off_by", "is_right"),
    [("add", 1, True), ("add", 2, False), ("mobilenet_v1", 3, True), ("mobilenet_v1", 4, False)],
)
def test_quantised_results_may_be_off_by_one_and_those_of_mobilenets_by_three(
    name: str, off_by: int, is_right: bool
) -> None:
    (right,) = addition().outputs
    assert right is not None
    example = replace(addition(), name=name, outputs=(right + np.uint8(off_by),))
    result = VectorJudge("CpuRef")(Variation(example, False))
    assert result.outcome is (Outcome.PASSED if is_right else Outcome.FAILED)

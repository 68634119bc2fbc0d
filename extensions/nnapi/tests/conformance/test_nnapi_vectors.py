"""The published operation tests, and the runner that judges backends by them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError
from armpy_conformance import Outcome
from armpy_nnapi import OperandCode, OperationCode
from armpy_nnapi.conformance.vectors import run_vectors
from armpy_nnapi.conformance.vectors.example import Example, read_examples, read_file
from armpy_nnapi.conformance.vectors.judge import Variation, VectorJudge
from armpy_nnapi.conformance.vectors.writer import write_examples
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_testing.backends.lying_backends import write_liar
from armpy_testing.effort import IS_CAMPAIGN, effort
from armpy_testing.shared import shared_file

pytestmark = pytest.mark.slow

PARTS = effort(1)
"""In which the published examples are run, so that all cores of a run have some of them."""


def some_of(files: Sequence[Path]) -> list[Path]:
    """Every twelfth file, and the smallest that has an operation; all in the full form."""
    examples = {file: read_file(file) for file in files}
    chosen: list[Path] = []
    seen: set[str] = set()
    for number, file in enumerate(sorted(files, key=lambda file: len(examples[file]))):
        operations = {name for example in examples[file] for name in example.operations}
        if IS_CAMPAIGN or number % 12 == 0 or not operations <= seen:
            chosen.append(file)
            seen |= operations
    return chosen


def addition(expected: list[float], *, relaxed: bool = False, name: str = "add") -> Example:
    """1, 2 plus 10, 20."""
    tensor = Operand(OperandCode.TENSOR_FLOAT32, (2,), lifetime=Lifetime.SUBGRAPH_INPUT)
    none = Operand(OperandCode.INT32, lifetime=Lifetime.CONSTANT_COPY, data=bytes(4))
    output = Operand(OperandCode.TENSOR_FLOAT32, (2,), lifetime=Lifetime.SUBGRAPH_OUTPUT)
    node = OperationNode(OperationCode.ADD, (0, 1, 2), (3,))
    graph = Subgraph((tensor, tensor, none, output), (node,), (0, 1), (3,))
    return Example(
        name,
        "made.json.gz",
        ModelDescription(graph, relaxed=relaxed),
        (np.asarray([1, 2], np.float32), np.asarray([10, 20], np.float32)),
        (np.asarray(expected, np.float32),),
    )


def outcomes(example: Example) -> set[Outcome]:
    judge = VectorJudge("CpuRef")
    return {judge(Variation(example, unknown)).outcome for unknown in (False, True)}


def test_right_answers_pass() -> None:
    assert outcomes(addition([11, 22])) == {Outcome.PASSED}


def test_wrong_answers_fail_with_the_worst_element() -> None:
    result = VectorJudge("CpuRef")(Variation(addition([11, 23]), False))
    assert result.outcome is Outcome.FAILED
    assert "output 0: 1 of 2 elements are wrong" in result.text


def test_a_relaxed_model_may_be_as_exact_as_float16() -> None:
    assert outcomes(addition([11.05, 22], relaxed=True)) == {Outcome.PASSED}
    assert outcomes(addition([11.05, 22])) == {Outcome.FAILED}


def test_a_model_that_must_fail_and_does_not_fails() -> None:
    example = addition([11, 22])
    failing = Example(
        example.name, example.file, example.model, example.inputs, example.outputs, True
    )
    assert outcomes(failing) == {Outcome.FAILED}


def test_a_layer_that_is_given_back_did_not_pass(tmp_path: Path) -> None:
    options = write_liar(tmp_path / "liars", 'lying_backends.GivesBack("Liar")')
    write_examples(tmp_path / "made.json.gz", [addition([11, 22])])
    result = run_vectors(tmp_path, "Liar", runtime_options=options, jobs=1)
    assert {(r.outcome, r.text) for r in result.results} == {
        (Outcome.ELSEWHERE, "given back: single layers are not worth it")
    }
    assert result.shortcomings == ("no layer ran on Liar: this proves nothing about it",)
    assert not result.is_passed


def test_what_must_fail_and_does_proves_nothing_about_the_backend() -> None:
    example = replace(addition([11, 22]), inputs=(np.zeros(3, np.float32),) * 2)
    assert outcomes(replace(example, expects_failure=True)) == {Outcome.ELSEWHERE}


def test_layers_that_ran_are_counted() -> None:
    result = VectorJudge("CpuRef")(Variation(addition([11, 22]), False))
    assert result.claimed == result.ran == ("ElementwiseBinary FLOAT32",)


def test_a_directory_is_counted_by_example(tmp_path: Path) -> None:
    good, bad = addition([11, 22], name="good"), addition([1, 2], name="bad")
    write_examples(tmp_path / "deep" / "made.json.gz", [good, bad])
    result = run_vectors(tmp_path, "CpuRef", jobs=1)
    document = json.loads(result.to_json())
    counts = {name: document[name] for name in ("passed", "failed", "unsupported", "crashed")}
    assert counts == {"passed": 1, "failed": 1, "unsupported": 0, "crashed": 0}
    assert (document["examples"], document["variations"]) == (2, 4)
    assert not result.is_passed
    assert result.by_operation["ADD"]["failed"] == 2


def test_a_filter_that_selects_nothing_is_an_error(tmp_path: Path) -> None:
    write_examples(tmp_path / "made.json.gz", [addition([11, 22])])
    with pytest.raises(InvalidArgumentError, match=r"no example is selected.*'nothing'"):
        run_vectors(tmp_path, "CpuRef", filter="nothing")


@pytest.mark.parametrize("part", range(PARTS))
def test_every_published_example_passes_on_the_reference(part: int, tmp_path: Path) -> None:
    files = some_of(sorted(shared_file("nnapi_cts").rglob("*.json.gz"))[part::PARTS])
    for file in files:
        (tmp_path / file.parent.name).mkdir(exist_ok=True)
        (tmp_path / file.parent.name / file.name).symlink_to(file.resolve())
    result = run_vectors(tmp_path, "CpuRef", jobs=1)
    assert {Path(example.file).name for example in read_examples(tmp_path)} == {
        file.name for file in files
    }
    assert [(r.case, r.text) for r in result.problems] == []
    # Some must be refused, and some are folded: nothing of these runs on a backend.
    assert set(result.by_example.values()) == {Outcome.PASSED, Outcome.ELSEWHERE}
    assert result.layers_run > result.counts["passed"] > 10 * result.counts["answered elsewhere"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("operation", ["depthwise", "softmax", "fully_connected", "mobilenet"])
def test_no_published_example_fails_on_the_compiling_backend(operation: str) -> None:
    result = run_vectors(shared_file("nnapi_cts"), "NumbaAcc", filter=operation)
    assert [(r.case, r.text) for r in result.problems] == []
    assert result.counts["passed"] > 0

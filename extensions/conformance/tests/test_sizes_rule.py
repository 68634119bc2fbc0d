"""The kit's verdict on backends whose programs are prepared again for other sizes."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from armpy.backend import (
    Capability,
    ILayerSupport,
    IResizableProgram,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
    ReasonCode,
    Substitution,
    Support,
    WorkloadInfo,
)
from armpy.core.symbolic import Number, Size, is_traced
from armpy.graph import SubgraphView
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import PreCompiled
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case
from armpy_conformance.contract import CONTRACT_CASES, judge_contract
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.networks import RELU, f32
from armpy_testing.preparations import ORDINARY_PROGRAMS

from .kit_runs import options_for

(RULE,) = (case for case in CONTRACT_CASES if case.id.startswith("contract/sizes/"))

Answer = Callable[["Resizable", Sequence[Number]], Any]  # Any: some are wrong on purpose


class Resizable(IResizableProgram):
    """How many elements there are, which follows from sizes."""

    def __init__(self, count: Size, answer: Answer) -> None:
        self.count = count
        self._answer = answer

    def needed(self) -> Sequence[Size]:
        return [self.count]

    def for_sizes(self, numbers: Sequence[Number]) -> tuple[object, int]:
        program: tuple[object, int] = self._answer(self, numbers)
        return program


class RectifyOnly(ILayerSupport):
    """Takes RELU of floats."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if operation == RELU and outputs[0].data_type is DataType.FLOAT32:
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "RELU of float32 only")


class Rectify(IWorkload, IWorkloadFactory):
    """The positive part of as many elements as the program says, followed by 7s."""

    def __init__(self, count: int = 0) -> None:
        self._count = count

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        assert isinstance(operation, PreCompiled)
        return Rectify(operation.program)

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        assert inputs[0] is not None
        elements, out = inputs[0].map().reshape(-1), outputs[0].map().reshape(-1)
        out[:] = 7
        np.maximum(elements[: self._count], 0, out=out[: self._count])


class Sized(FakeBackend):
    """Compiles parts to the number of their elements, each of any length."""

    def __init__(self, answer: Answer, *, is_declared: bool = True) -> None:
        super().__init__("Sized")
        self._answer = answer
        self._is_declared = is_declared

    def get_capabilities(self) -> dict[str, bool | int | float | str]:
        return {Capability.TRACED_SIZES: self._is_declared}

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return RectifyOnly()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Rectify()

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        shapes = tuple(value.info.known_shape for value in view.outputs)
        count = math.prod(shapes[0])
        program = Resizable(count, self._answer) if is_traced(count) else count  # type: ignore[arg-type]
        substitution = Substitution.by_operation(view, PreCompiled(program, shapes))
        return OptimizationViews(substitutions=[substitution])


def right(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    return numbers[program.count.number], 0


def stale(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    return program.count.now, 0


def too_few(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    return max(1, int(numbers[program.count.number]) - 1), 0


def raises(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    raise RuntimeError("the formula is lost")


def gives_nothing(program: Resizable, numbers: Sequence[Number]) -> None:
    return None


def needs_less_than_nothing(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    return numbers[program.count.number], -1


BROKEN = [
    (raises, "for_sizes: the backend raised RuntimeError"),
    (gives_nothing, "for_sizes: the answer has the wrong type"),
    (needs_less_than_nothing, "for_sizes: the answer is not a program with the bytes"),
]
BROKEN_IDS = [answer.__name__ for answer, _ in BROKEN]


@cache
def notes() -> dict[str, tuple[Case, ...]]:
    """The cases that the rule is tried with, which takes longer to find out than to try."""
    subject = BackendUnderTest("Sized", options_for(Sized(right)))
    assert judge_contract(subject, RULE).outcome is Outcome.PASSED
    return subject.notes


def judged(backend: Sized) -> tuple[Outcome, str]:
    """Outcome of the rule, and the reason."""
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    subject.notes.update(notes())
    result = judge_contract(subject, RULE)
    return result.outcome, result.text


@pytest.mark.slow
def test_programs_that_follow_their_sizes_pass() -> None:
    assert judged(Sized(right)) == (Outcome.PASSED, "")


def test_backends_that_declare_nothing_pass_and_it_is_said() -> None:
    outcome, text = judged(Sized(stale, is_declared=False))
    assert outcome is Outcome.PASSED
    assert text == "it does not say that sizes may be traced"


@pytest.mark.parametrize("answer", [stale, too_few], ids=lambda answer: answer.__name__)
def test_programs_for_other_sizes_than_they_say_fail(answer: Answer) -> None:
    outcome, text = judged(Sized(answer))
    assert outcome is Outcome.FAILED
    assert "of PreCompiled is wrong" in text or "of Activation is wrong" in text


@pytest.mark.parametrize(("answer", "said"), BROKEN, ids=BROKEN_IDS)
def test_programs_that_cannot_be_made_for_other_sizes_fail(answer: Answer, said: str) -> None:
    outcome, text = judged(Sized(answer))
    assert outcome is Outcome.FAILED
    assert said in text


@pytest.mark.parametrize(("answer", "said"), BROKEN, ids=BROKEN_IDS)
def test_applications_get_their_answers_from_such_backends_all_the_same(
    answer: Answer, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    net = Network()
    net.output("y", net.add(RELU, net.input("x", f32(None))))
    model = Model(net, runtime_of(Sized(answer)))
    with caplog.at_level(logging.WARNING, "armpy.execution"):
        for size in range(1, ORDINARY_PROGRAMS + 4):
            feeds = {"x": np.arange(size, dtype=np.float32)}
            assert model.run(feeds)["y"].tolist() == list(range(size))
    (warning,) = caplog.messages
    assert said in warning
    assert warning.startswith("sizes are no longer traced")

"""CpuRef passes; every way of being wrong is found and named."""

from __future__ import annotations

import itertools
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from armpy import ops
from armpy.backend import (
    OptimizationViews,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.errors import BackendError, BackendUnavailableError, InvalidArgumentError
from armpy.graph import SubgraphView
from armpy.graph.network import Network
from armpy.ops import Activation, BinaryOperation, ElementwiseBinary, Reshape
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import Outcome, Pattern, run_conformance
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.crash.scene import Scene
from armpy_conformance.neighbours import COMPANIES
from armpy_conformance.patterns import judge_pattern
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    CountingManager,
    FakeBackend,
    Handles,
    Outputs,
    OwnMemoryBackend,
    Step,
)
from armpy_testing.backends.lying_backends import (
    OPERATIONS,
    Answering,
    Crowded,
    GivesBack,
    KeepsConstants,
    OnlyOnce,
    Pairs,
    Stale,
    Tamper,
    Tampering,
    Unfinished,
    WeightedRelu,
    WrongWhenFused,
    adds_one,
    changes_inputs,
    drops_nan,
    gives_nan,
    integers_of_nan_are_lowest,
    nan_equals,
    passes_over_nan,
    refusing,
    spreads_nan,
    write_liar,
)
from armpy_testing.effort import effort, part_of_kit

from .declaring_backend import Declaring, exponential_pattern
from .kit_runs import options_for, run, run_one


@pytest.mark.slow
def test_cpu_ref_passes_every_case() -> None:
    result = run_conformance("CpuRef")
    assert result.problems == ()
    refused = {r.operation for r in result.results if r.outcome is Outcome.UNSUPPORTED}
    assert refused == {"If", "While"}  # the core takes them
    answered = [r for r in result.results if r.outcome is Outcome.ELSEWHERE]
    # Folded, or taken out, by the core; among pairs of attributes are some that change nothing.
    elsewhere = {r.operation for r in answered if "/pairs-" not in r.case}
    assert elsewhere == {"Rank", "Shape", "Range", "Reduce", "Resize", "pattern"}
    assert len(answered) < result.counts["passed"] / 50
    assert result.counts["passed"] > 2000
    assert result.layers_run > result.counts["passed"]
    assert (result.exercised, result.shortcomings) == (1.0, ())
    assert result.is_passed


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "backend",
    [
        FakeBackend("Honest", OPERATIONS, memory_manager=CountingManager()),
        FakeBackend("Honest", OPERATIONS),
        CompilingBackend("Honest", OPERATIONS),
        OwnMemoryBackend("Honest", OPERATIONS),
    ],
    ids=["memory manager", "workloads", "compiler", "own memory"],
)
def test_an_honest_backend_passes_on_what_it_claims(backend: FakeBackend) -> None:
    result = run(backend, ("contract/", "Activation/relu", "Binary/add", "Convolution2d/"))
    assert result.problems == ()
    others = [r for r in result.results if "Convolution2d/" in r.case]
    assert {r.outcome for r in others} == {Outcome.UNSUPPORTED}
    assert "Honest does not do" in others[0].text


def test_cases_passed_by_a_backend_differ_from_those_answered_by_the_core() -> None:
    result_of_run = run(FakeBackend("Ranks", (ops.Rank,)), "Rank/scalar/float32-")
    (result,) = result_of_run.results
    assert result.outcome is Outcome.ELSEWHERE
    assert result.text == "the core gave the answer without asking a backend"
    assert result_of_run.counts["passed"] == 0


def test_a_run_in_which_no_layer_ran_on_the_backend_fails() -> None:
    for filter in ("Rank/", "Conv"):
        result = run(FakeBackend("Nothing", ()), filter)
        assert result.problems == ()
        assert result.shortcomings == ("no layer ran on Nothing: this proves nothing about it",)
        assert not result.is_passed
        assert result.coverage == "layers run on Nothing: 0"


def test_a_layer_that_does_nothing_may_be_taken_out_and_did_not_run() -> None:
    class TakesOut(FakeBackend):
        def optimize_subgraph_view(
            self, view: SubgraphView, request: PreparationRequest
        ) -> OptimizationViews:
            return OptimizationViews(deleted=[view])

    result = run_one(TakesOut("Tidy"), "Activation/relu/float32")
    assert result.outcome is Outcome.FAILED  # it did something
    nothing = Pattern("nothing", doing_nothing())
    result = judge_pattern(
        BackendUnderTest("Tidy", options_for(TakesOut("Tidy"))), "nothing", nothing
    )
    assert (result.outcome, result.ran) == (Outcome.ELSEWHERE, ())


def doing_nothing() -> Network:
    """A network that takes the larger of a value and itself."""
    net = Network("nothing")
    x = net.input("x", TensorInfo((3,), DataType.FLOAT32))
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.MAXIMUM), x, x))
    return net


@pytest.mark.slow
def test_a_layer_given_back_alone_is_tried_with_neighbours() -> None:
    parts = part_of_kit("contract/graphs", "Activation/relu", "ElementwiseBinary/add")
    result = run(Pairs("Pairs", OPERATIONS), parts)
    assert result.problems == ()
    assert result.shortcomings == ()
    assert result.exercised == 1.0
    texts = {r.text for r in result.results if r.case == "ElementwiseBinary/add/float32"}
    assert all(text.endswith(" after, as it was given back alone") for text in texts)
    assert result.counts["passed"] > effort(20, 150)
    chained = [r for r in result.results if r.case == "contract/graphs/two-layers"]
    assert [r.outcome for r in chained] == [Outcome.PASSED]


def test_a_pair_that_is_wrong_is_found_where_single_layers_are_given_back() -> None:
    class WrongPairs(Pairs):
        def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
            step.right.execute(inputs, outputs)
            adds_one(step.operation, [], [handle.map() for handle in outputs])

    result = run_one(WrongPairs("Liar", OPERATIONS))
    assert result.outcome is Outcome.FAILED
    assert "Liar / ElementwiseBinary() on" in result.text
    assert "after: output: " in result.text


def test_a_backend_that_takes_pairs_alone_is_judged_by_patterns() -> None:
    result = run(WeightedRelu("Pairs"), "pattern/dense-relu/float32")
    (case,) = result.results
    assert (case.outcome, case.text) == (Outcome.PASSED, "2 of 2 layers")
    result = run(WeightedRelu("Liar", is_wrong=True), "pattern/dense-relu/float32")
    (case,) = result.results
    assert case.outcome is Outcome.FAILED
    assert "Liar / dense-relu/float32: the output 'y'" in case.text


def test_crash_networks_are_chosen_by_all_of_their_layers(tmp_path: Path) -> None:
    scene = Scene("Liar", write_liar(tmp_path, "lying_backends.WeightedRelu()"), "", 0)
    assert scene.networks() == ["classifier/FLOAT32"]


@pytest.mark.slow
def test_what_is_wrong_only_when_fused_is_found_in_a_pattern() -> None:
    result = run(WrongWhenFused("Liar", OPERATIONS), "pattern/")
    assert {r.operation for r in result.problems} >= {"pattern"}
    assert any("Liar / add-relu/float32: the output 'y'" in r.text for r in result.problems)


def test_of_a_pattern_some_layers_may_run_elsewhere() -> None:
    run_result = run(FakeBackend("Some", (Activation,)), "pattern/dense-relu/float32")
    (result,) = run_result.results
    assert (result.outcome, result.text) == (Outcome.PASSED, "1 of 2 layers")
    assert result.ran == ("Activation FLOAT32",)


@pytest.mark.slow
def test_what_a_backend_declares_has_to_run_and_excuses_what_it_gives_back() -> None:
    parts = part_of_kit("ElementwiseUnary/", "pattern/", "declared/")
    result = run(Declaring("Declaring"), parts)
    assert result.problems == ()
    (declared,) = (r for r in result.results if r.case == "declared/logarithm")
    assert (declared.outcome, declared.text) == (Outcome.PASSED, "2 of 2 layers")
    alone = [r for r in result.results if r.case == "ElementwiseUnary/exp/float32"]
    assert [r.outcome for r in alone] == [Outcome.ELSEWHERE]
    assert alone[0].text == "given back: single layers are not worth it"
    # Of float16 it has shown nothing.
    assert any("ElementwiseUnary FLOAT16, and ran none" in text for text in result.shortcomings)


def test_a_declared_pattern_that_does_not_run_fails_with_its_name() -> None:
    run_result = run(Declaring("Liar", [exponential_pattern(3)]), "declared/")
    (result,) = run_result.problems
    assert result.case == "declared/logarithm"
    assert "Liar / logarithm: " in result.text
    assert "single layers are not worth it" in result.text


@pytest.mark.parametrize("patterns", [7, ["a name"], [exponential_pattern()] * 2])
def test_a_declaration_that_cannot_be_read_is_an_error(patterns: object) -> None:
    with pytest.raises(BackendError, match="Liar / conformance_patterns"):
        run(Declaring("Liar", patterns), "declared/")


def test_an_answer_of_the_execution_before_is_found() -> None:
    result = run_one(Tampering(Stale()))
    assert result.outcome is Outcome.FAILED
    assert "when executed again" in result.text


def test_elements_of_eight_bits_that_are_all_off_by_one_step_are_found() -> None:
    def off_by_one(_: Operation, __: list[Array], outputs: list[Array]) -> None:
        if outputs[0].dtype == np.int8:
            outputs[0][...] = np.where(outputs[0] < 127, outputs[0] + 1, 126)

    result = run_one(Tampering(off_by_one), "ElementwiseBinary/add/qasymm_s8")
    assert result.outcome is Outcome.FAILED
    assert "elements are off by 1 steps on average" in result.text
    backend = Tampering(off_by_one, (Reshape,))
    result = run_one(backend, "Reshape/basic/qasymm_s8")
    assert "Expected" in result.text
    assert "exactly" in result.text


def test_a_wrong_result_names_operation_shapes_types_and_the_worst_element() -> None:
    result = run_one(Tampering(adds_one), "ElementwiseBinary/by-hand-arm-nn-sample/float32")
    assert result.outcome is Outcome.FAILED
    assert result.operation == "ElementwiseBinary"
    assert (
        "Liar / ElementwiseBinary() on (FLOAT32 (2,), FLOAT32 (2,)) -> (FLOAT32 (2,))"
        in result.text
    )
    assert "FLOAT32 (2,)" in result.text
    assert "worst at index (1,). Expected 11 within 1e-05" in result.text
    assert "got 12" in result.text


def test_a_nan_that_cpu_ref_does_not_have_is_found() -> None:
    result = run_one(Tampering(gives_nan))
    assert result.outcome is Outcome.FAILED
    assert "got nan" in result.text


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("kind", "tamper"),
    [
        (ops.Reduce, drops_nan),
        (ops.ArgMinMax, passes_over_nan),
        (ops.TopkV2, drops_nan),
        (ops.Pooling2d, drops_nan),
        (ops.MaxPoolWithIndices, drops_nan),
        (ops.ElementwiseBinary, drops_nan),
        (ops.Activation, drops_nan),
        (ops.Softmax, drops_nan),
        (ops.Convolution2d, drops_nan),
        (ops.DepthwiseConvolution2d, drops_nan),
        (ops.FullyConnected, drops_nan),
        (ops.TransposeConvolution2d, spreads_nan),
        (ops.Resize, drops_nan),
        (ops.Quantize, integers_of_nan_are_lowest),
        (ops.Cast, integers_of_nan_are_lowest),
        (ops.Comparison, nan_equals),
    ],
    ids=lambda value: value.__name__,
)
def test_a_backend_with_another_rule_for_nan_is_found(
    kind: type[Operation], tamper: Tamper
) -> None:
    results = run(Tampering(tamper, (kind,)), f"{kind.__name__}/no-numbers").results
    ran = [result for result in results if result.outcome is not Outcome.UNSUPPORTED]
    assert Outcome.FAILED in {result.outcome for result in ran}


def test_a_sigmoid_that_never_reaches_0_is_found() -> None:
    def floored(operation: Operation, _: list[Array], outputs: list[Array]) -> None:
        if operation == Activation() and outputs[0].dtype == np.float32:
            np.maximum(outputs[0], np.float32(2.0**-125), out=outputs[0])

    (result,) = run(Tampering(floored), "sigmoid times far numbers").problems
    assert "Expected -0 within" in result.text


@pytest.mark.slow
def test_a_changed_input_is_found() -> None:
    result = run_one(Tampering(changes_inputs))
    assert result.outcome is Outcome.FAILED
    assert "the input '0_lhs' was changed by the execution" in result.text


def test_elements_that_are_not_written_are_found() -> None:
    result = run_one(Unfinished())
    assert result.outcome is Outcome.FAILED
    assert "output is not written completely: 1 of" in result.text


def test_a_second_execution_that_is_wrong_is_found() -> None:
    result = run_one(Tampering(OnlyOnce()))
    assert result.outcome is Outcome.FAILED
    assert "when executed again" in result.text


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("create_workload", "said supported, but failed to prepare"),
        ("optimize_subgraph_view", "said supported, but failed to prepare"),
        ("execute", "said supported, but failed to run"),
        ("create_workload_factory", "said supported, but failed to prepare"),
    ],
)
def test_a_lie_about_support_names_the_operation(method: str, said: str) -> None:
    result = run_one(FakeBackend("Liar", faults={method: ZeroDivisionError("oops")}))
    assert result.outcome is Outcome.FAILED
    assert "Liar / ElementwiseBinary" in result.text
    assert said in result.text
    assert "oops" in result.text


def test_an_exception_instead_of_an_answer_about_support_is_a_failure() -> None:
    backend = FakeBackend("Liar", faults={"is_layer_supported": ZeroDivisionError("oops")})
    result = run_one(backend)
    assert result.outcome is Outcome.FAILED
    assert re.search(r"oops.* at fake_backends\.py:\d+ in answer", result.text)


def test_an_answer_about_support_of_another_type_is_a_failure() -> None:
    result = run_one(Answering(lambda _: True))
    assert result.outcome is Outcome.FAILED
    assert "is_layer_supported answered True, not a Support" in result.text


def test_what_is_unsupported_carries_the_backends_own_reason() -> None:
    result = run_one(refusing("only on Sundays"))
    assert (result.outcome, result.text) == (Outcome.UNSUPPORTED, "only on Sundays (operation)")


@pytest.mark.slow
def test_a_layer_that_is_given_back_in_any_company_was_not_supported() -> None:
    result = run_one(GivesBack("Shy"))
    assert result.outcome is Outcome.FAILED
    assert "Shy / ElementwiseBinary()" in result.text
    assert "took it in no network: neither alone nor beside RELU, ADD" in result.text
    assert "single layers are not worth it" in result.text


def contract_problems(backend: FakeBackend, rule: str) -> list[str]:
    return [r.text for r in run(backend, f"contract/{rule}").problems]


def test_a_refusal_without_a_reason_breaks_the_contract() -> None:
    (text,) = contract_problems(refusing(" "), "support/answers-have-reasons")
    assert "is a no without a reason" in text


def test_a_refusal_without_a_code_breaks_the_contract() -> None:
    (text,) = contract_problems(refusing("no", None), "support/answers-have-reasons")
    assert "has the code None" in text


def test_answers_that_change_break_the_contract() -> None:
    answers = iter(range(10**6))
    backend = Answering(
        lambda _: Support.no(ReasonCode.OTHER, f"the answer number {next(answers)}")
    )
    (text,) = contract_problems(backend, "support/answers-do-not-change")
    assert "changes" in text


@pytest.mark.slow
def test_a_yes_to_an_unknown_operation_breaks_the_contract() -> None:
    (text,) = contract_problems(
        Answering(lambda _: Support.yes()), "support/unknown-operations-are-refused"
    )
    assert "an unknown operation is answered" in text


@pytest.mark.slow
def test_a_workload_that_threads_cannot_share_breaks_the_contract() -> None:
    texts = contract_problems(Tampering(Crowded(), (ElementwiseBinary, Activation)), "threads/")
    assert any("run by 4 threads" in text for text in texts)


def test_an_id_that_changes_breaks_the_contract() -> None:
    class Renamed(FakeBackend):
        is_renamed = False

        def get_id(self) -> str:
            return "Liar2" if self.is_renamed else "Liar"

    backend = Renamed("Liar")
    options = options_for(backend)
    assert options.registry is not None
    options.registry.get("Liar")
    backend.is_renamed = True
    rule = "contract/identity/id-is-constant"
    (problem,) = run_conformance("Liar", runtime_options=options, filter=rule).problems
    assert "Expected 'Liar'; got ['Liar2', 'Liar2', 'Liar2']" in problem.text


def test_a_memory_manager_that_cannot_be_acquired_again_breaks_the_contract() -> None:
    class Once(CountingManager):
        def acquire(self) -> None:
            if self.acquired:
                raise RuntimeError("acquired twice")
            super().acquire()

    backend = FakeBackend("Liar", OPERATIONS, memory_manager=Once())
    (text,) = contract_problems(backend, "memory/manager-can-be-used-again")
    assert "acquired twice" in text


def test_answers_that_change_after_many_questions_break_the_contract() -> None:
    number = itertools.count()
    no = Support.no(ReasonCode.OPERATION, "the table of layers is full")
    backend = Answering(lambda _: Support.yes() if next(number) < 100 else no)
    (text,) = contract_problems(backend, "support/answers-do-not-change")
    assert "the table of layers is full" in text


def test_a_filter_that_selects_nothing_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="no case is selected"):
        run_conformance("CpuRef", filter="no such case")


@pytest.mark.slow
def test_cases_for_other_processes_are_not_made_in_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def not_here() -> NoReturn:
        raise AssertionError("making all cases takes seconds")

    monkeypatch.setattr("armpy_conformance.conformance.all_cases", not_here)
    result = run_conformance("CpuRef", filter="Rank/", jobs=1)
    assert {r.outcome for r in result.results} == {Outcome.ELSEWHERE}


def test_a_backend_that_is_not_there_is_an_error() -> None:
    with pytest.raises(BackendUnavailableError, match="there is no backend 'Missing'"):
        run_conformance("Missing", filter="Rank/")


@pytest.mark.slow
def test_constants_of_another_network_are_noticed() -> None:
    result = run(KeepsConstants(), "TransposeConvolution2d/")
    assert not result.is_passed
    assert any(problem.case.endswith("+other-constants") for problem in result.problems)


def test_what_a_pattern_expects_is_held_against_cpu_ref() -> None:
    pattern = exponential_pattern()
    (name,) = pattern.graph.output_names
    shape = pattern.graph.outputs[0].info.known_shape
    wrong = replace(pattern, expected={name: np.full(shape, 7, np.float32)})
    result = run(Declaring("Liar", [wrong]), "declared/")
    (problem,) = result.problems
    assert f"the pattern expects another output '{name}' than CpuRef" in problem.text


def test_neighbours_can_be_sent_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(COMPANIES))
    assert [[n and n.name for n in company] for company in sent] == [
        [n and n.name for n in company] for company in COMPANIES
    ]

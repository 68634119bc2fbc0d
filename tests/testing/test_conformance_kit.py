"""CpuRef passes; every way of being wrong is found and named."""

from __future__ import annotations

import pytest

from armpy.backend import ReasonCode, Support
from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.ops import Activation, ElementwiseBinary
from armpy.testing import Outcome, run_conformance
from tests.support.fake_backends import (
    CompilingBackend,
    CountingManager,
    FakeBackend,
    OwnMemoryBackend,
)
from tests.support.lying_backends import (
    OPERATIONS,
    Answering,
    Crowded,
    GivesBack,
    OnlyOnce,
    Tampering,
    Unfinished,
    adds_one,
    changes_inputs,
    gives_nan,
    options_for,
    refusing,
    run,
    run_one,
)


def test_cpu_ref_passes_every_case() -> None:
    result = run_conformance("CpuRef")
    assert result.problems == ()
    assert result.counts["unsupported"] == 0
    assert result.counts["passed"] == len(result.results) > 1000
    assert result.is_passed


@pytest.mark.parametrize(
    "backend",
    [
        FakeBackend("Honest", OPERATIONS),
        CompilingBackend("Honest", OPERATIONS),
        OwnMemoryBackend("Honest", OPERATIONS),
        FakeBackend("Honest", OPERATIONS, memory_manager=CountingManager()),
    ],
    ids=["workloads", "compiler", "own memory", "memory manager"],
)
def test_an_honest_backend_passes_on_what_it_claims(backend: FakeBackend) -> None:
    for filter in ("contract/", "Activation/relu", "Binary/add", "Conv"):
        result = run(backend, filter)
        assert result.problems == ()
    assert {r.outcome for r in result.results} == {Outcome.UNSUPPORTED}
    assert "Honest does not do" in result.results[0].text


def test_what_a_backend_passes_is_told_from_what_the_core_answers() -> None:
    (result,) = run(FakeBackend("Nothing", ()), "Rank/scalar/float32-").results
    assert result.outcome is Outcome.PASSED
    assert result.text == "the core gave the answer without asking a backend"


def test_a_wrong_result_names_operation_shapes_types_and_the_worst_element() -> None:
    result = run_one(Tampering(adds_one), "ElementwiseBinary/by-hand-arm-nn-sample/float32")
    assert result.outcome is Outcome.FAILED
    assert result.operation == "ElementwiseBinary"
    assert (
        "Liar / ElementwiseBinary() on (FLOAT32(2,), FLOAT32(2,)) -> (FLOAT32(2,))" in result.text
    )
    assert "FLOAT32(2,)" in result.text
    assert "worst at index (1,). Expected 11 within 1e-05" in result.text
    assert "got 12" in result.text


def test_a_nan_that_cpu_ref_does_not_have_is_found() -> None:
    result = run_one(Tampering(gives_nan))
    assert result.outcome is Outcome.FAILED
    assert "got nan" in result.text


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


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("create_workload", "said supported, but failed to prepare"),
        ("optimize_subgraph", "said supported, but failed to prepare"),
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


def test_an_exception_instead_of_an_answer_about_support_is_a_crash() -> None:
    backend = FakeBackend("Liar", faults={"is_layer_supported": ZeroDivisionError("oops")})
    result = run_one(backend)
    assert result.outcome is Outcome.CRASHED
    assert "ZeroDivisionError: oops" in result.text


def test_an_answer_about_support_of_another_type_is_a_failure() -> None:
    result = run_one(Answering(lambda _: True))
    assert result.outcome is Outcome.FAILED
    assert "is_layer_supported answered True, not a Support" in result.text


def test_what_is_unsupported_carries_the_backends_own_reason() -> None:
    result = run_one(refusing("only on Sundays"))
    assert (result.outcome, result.text) == (Outcome.UNSUPPORTED, "only on Sundays (operation)")


def test_a_layer_given_back_by_optimize_subgraph_is_unsupported() -> None:
    result = run_one(GivesBack("Shy"))
    assert result.outcome is Outcome.UNSUPPORTED
    assert "optimize_subgraph gave the layer back" in result.text


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


def test_a_yes_to_an_unknown_operation_breaks_the_contract() -> None:
    (text,) = contract_problems(
        Answering(lambda _: Support.yes()), "support/unknown-operations-are-refused"
    )
    assert "nobody has heard of" in text


def test_a_workload_that_threads_cannot_share_breaks_the_contract() -> None:
    texts = contract_problems(Tampering(Crowded(), (ElementwiseBinary, Activation)), "threads/")
    assert any("run by 4 threads" in text for text in texts)


def test_an_id_that_changes_breaks_the_contract() -> None:
    class Renamed(FakeBackend):
        is_renamed = False

        @property
        def backend_id(self) -> str:
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


def test_a_filter_that_selects_nothing_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="no case is selected"):
        run_conformance("CpuRef", filter="no such case")


def test_a_backend_that_is_not_there_is_an_error() -> None:
    with pytest.raises(BackendUnavailableError, match="there is no backend 'Nobody'"):
        run_conformance("Nobody", filter="Rank/")

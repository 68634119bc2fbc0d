"""What a run has found, as counts and JSON."""

from __future__ import annotations

import json

from armpy_conformance import CaseResult, ConformanceResult, Outcome

ADD, ADD8 = ("Add FLOAT32",), ("Add QASYMM_S8",)

RESULT = ConformanceResult(
    "Vendor",
    "2.1",
    "1.0",
    (
        CaseResult("Add/a/float32", "Add", "FLOAT32", Outcome.PASSED, "", ADD, ADD),
        CaseResult("Add/b/qasymm_s8", "Add", "QASYMM_S8", Outcome.FAILED, "1 < 2 & <script>", ADD8),
        CaseResult("Mul/a/float32", "Mul", "FLOAT32", Outcome.UNSUPPORTED, "no multiplier"),
    ),
    ("Mul/b/float32",),
    1.5,
)


def test_counts_are_by_operation_and_by_type() -> None:
    assert RESULT.counts == {
        "passed": 1,
        "answered elsewhere": 0,
        "unsupported": 1,
        "known failure": 0,
        "failed": 1,
        "crashed": 0,
    }
    assert RESULT.by_operation["Add"]["failed"] == 1
    assert RESULT.by_data_type["FLOAT32"] == RESULT.counts | {"failed": 0}
    assert str(RESULT) == "Vendor: 1 passed, 1 unsupported, 1 failed"


def test_a_failure_or_an_unused_line_fails_the_run() -> None:
    passed = RESULT.results[:1]
    assert not RESULT.is_passed
    assert ConformanceResult("V", "", "1.0", passed).is_passed
    assert not ConformanceResult("V", "", "1.0", passed, ("x",)).is_passed


def result(outcome: Outcome, claimed: tuple[str, ...], ran: tuple[str, ...]) -> CaseResult:
    return CaseResult("Add/a/float32", "Add", "FLOAT32", outcome, "", claimed, ran)


def test_a_run_says_how_many_layers_ran_and_how_much_of_what_is_claimed() -> None:
    assert (RESULT.layers_run, RESULT.exercised) == (1, 0.5)
    assert RESULT.coverage == "layers run on Vendor: 1; of its claims, 50 % ran on it"
    pattern = CaseResult("pattern/a", "pattern", "FLOAT32", Outcome.PASSED, "", (), ADD * 3)
    more = ConformanceResult("Vendor", "", "1.0", (*RESULT.results[:1], pattern))
    assert (more.layers_run, more.exercised) == (4, 1.0)


def test_a_kind_of_layer_that_is_claimed_and_never_ran_fails_the_run() -> None:
    passed = result(Outcome.PASSED, ADD, ADD)
    idle = result(Outcome.ELSEWHERE, ADD8, ())
    conformance = ConformanceResult("V", "", "1.0", (passed, idle, idle))
    assert conformance.shortcomings == (
        "V says that it supports Add QASYMM_S8, and ran none of 2 such layers",
    )
    assert not conformance.is_passed
    known = result(Outcome.KNOWN, ADD8, ())
    assert ConformanceResult("V", "", "1.0", (passed, known)).is_passed
    elsewhere = result(Outcome.PASSED, (), ADD8)
    assert ConformanceResult("V", "", "1.0", (passed, idle, elsewhere)).is_passed


def test_a_reason_that_refuses_most_cases_of_an_operation_is_named() -> None:
    refused = CaseResult("Add/c/x", "Add", "FLOAT32", Outcome.UNSUPPORTED, "no constants (OTHER)")
    results = (*RESULT.results, *(refused,) * 3)
    assert ConformanceResult("V", "", "1.0", results).main_refusals == (
        "3 of 5 cases of Add are refused: no constants (OTHER)",
    )
    assert RESULT.main_refusals == ()


def test_cases_that_an_early_end_leaves_out_fail_the_run() -> None:
    part = ConformanceResult("V", "", "1.0", RESULT.results[:1], num_selected=3)
    assert part.shortcomings == ("2 of 3 cases were not tried",)


def test_rules_of_the_contract_alone_need_no_layers() -> None:
    rule = CaseResult("contract/identity/id-is-constant", "contract", "", Outcome.PASSED)
    assert ConformanceResult("V", "", "1.0", (rule,)).is_passed
    unsupported = result(Outcome.UNSUPPORTED, (), ())
    assert not ConformanceResult("V", "", "1.0", (rule, unsupported)).is_passed


def test_json_holds_everything() -> None:
    document = json.loads(RESULT.to_json())
    assert document["backend"] == "Vendor"
    assert document["is_passed"] is False
    assert (document["layers_run"], document["exercised"]) == (1, 0.5)
    assert document["results"][1]["outcome"] == "failed"
    assert document["unused_known_failures"] == ["Mul/b/float32"]

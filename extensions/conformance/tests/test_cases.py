"""The table of cases covers every definition, and says the same in every run."""

from __future__ import annotations

import inspect
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from armpy import ops
from armpy.ops import Composite, If, MemCopy, Operation, PreCompiled, StandIn, UnfitGraph, While
from armpy.ops.operation import Array, TypeRule
from armpy.types import DataType
from armpy_conformance import Case, all_cases
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import CaseInput
from armpy_conformance.cases import operation_cases
from armpy_conformance.description import describe

# Operations that the core executes, makes or expands itself, or that a vendor defines: backends
# get no case with one such layer.
NOT_FOR_BACKENDS = (Operation, Composite, MemCopy, PreCompiled, StandIn, UnfitGraph, If, While)

OPERATIONS = sorted(
    (
        kind
        for _, kind in inspect.getmembers(ops, inspect.isclass)
        if issubclass(kind, Operation) and kind not in NOT_FOR_BACKENDS
    ),
    key=lambda kind: kind.__name__,
)


def cases_of(kind: type[Operation]) -> list[Case]:
    return [case for case in operation_cases() if type(case.operation) is kind]


def accepted_by(rule: TypeRule, case: Case) -> bool:
    return rule.accepts([None if i is None else i.info for i in case.inputs], case.outputs)


def has_strings(rule: TypeRule) -> bool:
    """Whether a rule is of strings: tests/ops/test_strings.py has these, the kit does not."""
    return frozenset((DataType.STRING,)) in (*rule.inputs, *rule.outputs)


def test_every_type_rule_of_every_operation_has_a_case() -> None:
    missing = {}
    for kind in OPERATIONS:
        cases = cases_of(kind)
        assert cases or (kind.type_rules and all(map(has_strings, kind.type_rules))), (
            f"the kit has no case of {kind.__name__}. Add to `case_templates` of its family in"
            f' armpy_conformance/cases/: `yield CaseTemplate("plain", {kind.__name__}(),'
            " ((2, 3),))`, and to `FUNCTIONS` of its family in armpy_conformance/definitions/:"
            f" `{kind.__name__}: ...,`"
        )
        rules = [rule for rule in kind.type_rules if not has_strings(rule)]
        if untried := [r for r in rules if not any(accepted_by(r, case) for case in cases)]:
            missing[kind.__name__] = untried
    assert missing == {}


def test_every_type_that_a_first_input_may_have_has_a_case() -> None:
    missing = {}
    for kind in OPERATIONS:
        if not kind.inputs or kind.inputs[0].becomes:  # has no elements in the end
            continue
        firsts = [case.inputs[0] for case in cases_of(kind) if case.inputs]
        types = {item.info.data_type for item in firsts if item is not None}
        rules = [rule for rule in kind.type_rules if not has_strings(rule)]
        allowed = {t for rule in rules for t in rule.inputs[0]} - {DataType.STRING}
        if firsts and not allowed <= types:
            missing[kind.__name__] = allowed - types
    assert missing == {}


def test_ids_are_unique() -> None:
    counts = Counter(case.id for case in all_cases())
    assert [case for case, count in counts.items() if count > 1] == []


@pytest.mark.slow
def test_cases_are_the_same_in_every_run() -> None:
    first = operation_cases()
    operation_cases.cache_clear()
    for case, other in zip(first, operation_cases(), strict=True):
        assert case.id == other.id
        for a, b in zip(case.inputs, other.inputs, strict=True):
            assert (a is None) == (b is None)
            assert a is None or b is None or a.data.tobytes() == b.data.tobytes()


def test_weighted_operations_are_tried_with_constant_and_with_computed_weights() -> None:
    for kind in (ops.Convolution2d, ops.DepthwiseConvolution2d, ops.FullyConnected):
        kinds = {case.inputs[1].is_constant for case in cases_of(kind) if case.inputs[1]}
        assert kinds == {True, False}


def test_every_fused_activation_occurs() -> None:
    for kind in (
        ops.Convolution2d,
        ops.DepthwiseConvolution2d,
        ops.TransposeConvolution2d,
        ops.FullyConnected,
        ops.Pooling2d,
        ops.ElementwiseBinary,
    ):
        used = {case.operation.attributes()["activation"] for case in cases_of(kind)}
        assert used == set(ops.FusedActivation)


def test_extreme_zero_points_occur() -> None:
    infos = [
        item.info
        for case in cases_of(ops.Convolution2d)
        for item in case.inputs[:1]
        if item is not None and item.info.quantization is not None
    ]
    ends = {info.zero_point for info in infos}
    assert {-128, 127, 0, 255} <= ends


SUMMING = (
    ops.BatchMatMul,
    ops.Convolution2d,
    ops.DepthwiseConvolution2d,
    ops.FullyConnected,
    ops.TransposeConvolution2d,
)


@pytest.mark.parametrize("kind", SUMMING, ids=lambda kind: kind.__name__)
def test_float_sums_are_exact_in_whatever_order_they_are_added_up(kind: type[Operation]) -> None:
    # Products are multiples of 1/4, so partial sums of up to 512 are exact even in float16; or of
    # 1/64, and sums of up to 32 are.
    subject = BackendUnderTest("CpuRef")
    for case in cases_of(kind):
        infos = [item.info for item in case.inputs if item is not None]
        has_nan = "no-numbers" in case.id
        # Of float16 products, in float32, of long mantissas (see below), or of two terms.
        rounds = any(t in case.id for t in ("half-precision-sums", "every-bit", "all-bits"))
        if all(info.data_type.is_float for info in infos) and not (has_nan or rounds):
            given = [item.data for item in case.inputs if item is not None]
            parts = next(n for n in (2, 8) if all(_is_whole(data * n) for data in given))
            for output in subject.expected(case.graph(), case.feeds()).values():
                units = output * parts**2
                assert _is_whole(units)
                assert np.abs(units).max(initial=0) <= 2048


def _is_whole(values: Array) -> bool:
    return np.array_equal(values, np.rint(values))


@pytest.mark.parametrize("kind", SUMMING, ids=lambda kind: kind.__name__)
def test_sums_of_long_mantissas_are_exact_in_whatever_order(kind: type[Operation]) -> None:
    subject = BackendUnderTest("CpuRef")
    cases = [case for case in cases_of(kind) if "every-bit" in case.id]
    assert cases
    for case in cases:
        steps = case.changed(inputs=tuple(map(_in_steps, case.inputs)))
        (sums,) = subject.expected(steps.graph(), steps.feeds()).values()
        assert sums.max() < 2**24  # of amounts: each partial sum is an integer that float32 holds


def _in_steps(item: CaseInput | None) -> CaseInput:
    """Amounts of an input's elements, as multiples of their last bit."""
    assert item is not None
    amounts = np.abs(item.data.astype(np.float64))
    halvings = (2.0**-n for n in range(60))
    step = next(s for s in halvings if np.array_equal(amounts / s, np.rint(amounts / s)))
    return replace(item, elements=(amounts / step).astype(item.data.dtype))


@pytest.mark.parametrize("kind", SUMMING, ids=lambda kind: kind.__name__)
def test_sums_of_float16_products_are_exact_in_float32(kind: type[Operation]) -> None:
    for case in (case for case in cases_of(kind) if "half-precision-sums" in case.id):
        for item in case.inputs:
            assert item is not None
            steps = item.data.astype(np.float64) * 2**11
            assert np.array_equal(steps, np.rint(steps))
            assert np.abs(steps).sum(axis=-1).max() < 2**24


def test_a_message_shows_the_attributes_that_are_not_at_their_defaults() -> None:
    operation = ops.Pooling2d(ops.PoolingAlgorithm.AVERAGE, (2, 2))
    assert describe(operation) == "Pooling2d(algorithm=AVERAGE, pool_size=(2, 2))"


def test_cases_can_be_sent_to_other_processes() -> None:
    for case in operation_cases()[::500]:
        for item in case.inputs:
            if item is not None:
                sent = pickle.loads(pickle.dumps(item))
                assert (sent.info, sent.is_constant) == (item.info, item.is_constant)
                assert sent.data.tobytes() == item.data.tobytes()

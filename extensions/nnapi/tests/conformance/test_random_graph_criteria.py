"""How close another backend has to come to CpuRef on random models."""

import numpy as np
import pytest

from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs.criteria import (
    compare_closely,
    compare_exactly,
    foreseeable,
)
from armpy_nnapi.conformance.vectors.example import Example
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)

C = OperationCode


def chain(*codes: OperationCode, type: OperandCode = OperandCode.TENSOR_FLOAT32) -> Example:
    """Operations one after the other; only what each reads and writes is as it must be."""
    scale = 0.5 if type.traits.needs_scale else 0.0
    kinds = [Lifetime.SUBGRAPH_INPUT, *[Lifetime.TEMPORARY_VARIABLE] * (len(codes) - 1)]
    operands = [Operand(type, (20,), scale, lifetime=k) for k in (*kinds, Lifetime.SUBGRAPH_OUTPUT)]
    nodes = tuple(OperationNode(code, (i,), (i + 1,)) for i, code in enumerate(codes))
    graph = Subgraph(tuple(operands), nodes, (0,), (len(codes),))
    return Example("chain", "chain", ModelDescription(graph), (None,), (None,))


def verdict(example: Example, expected: np.ndarray, actual: np.ndarray) -> str:
    return compare_closely(example, 0, expected, actual)


@pytest.mark.parametrize(
    ("code", "allowed", "refused"),
    [
        (C.RESHAPE, 1e-8, 5e-6),
        (C.RELU, 5e-7, 5e-5),
        (C.SOFTMAX, 1e-5, 5e-3),
        (C.CONV_2D, 1e-4, 1e-1),
    ],
)
def test_each_operation_has_its_own_limit(
    code: OperationCode, allowed: float, refused: float
) -> None:
    ones = np.ones(20)
    example = chain(code)
    assert verdict(example, ones, ones + allowed) == ""
    assert "elements are wrong" in verdict(example, ones, ones + refused)


def test_larger_graphs_have_larger_limits() -> None:
    ones, off = np.ones(20), np.ones(20)
    off[0] += 0.04
    assert "1 of 20" in verdict(chain(C.RELU), ones, off)
    assert "1 of 20" in verdict(chain(*[C.RELU] * 5), ones, off)
    assert verdict(chain(*[C.RELU] * 6), ones, off) == ""


def test_small_errors_of_one_sign_add_up() -> None:
    # 5e-4 each is within 1e-3 + 1e-3, and above the 3e-5 that their mean may be.
    ones = np.ones(20)
    text = verdict(chain(C.SOFTMAX), ones, ones + 5e-4)
    assert text == "the mean error is 0.0005. Expected at most 3e-05"
    assert verdict(chain(C.SOFTMAX), ones[:9], ones[:9] + 5e-4) == ""


def test_squares_of_errors_add_up() -> None:
    # Errors of 4e-3 of alternating sign have the mean 0 and the mean square 1.6e-5.
    signs = np.where(np.arange(20) % 2, 4e-3, -4e-3)
    text = verdict(chain(*[C.RELU] * 3), np.ones(20), 1 + signs)
    assert text == "the mean squared error is 1.6e-05. Expected at most 1e-05"


def test_errors_of_large_elements_count_relative_to_them() -> None:
    hundreds = np.full(20, 100.0)
    signs = np.where(np.arange(20) % 2, 4e-2, -4e-2)
    assert verdict(chain(*[C.RELU] * 3), hundreds, hundreds + signs) == ""


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 2e3])
def test_floats_that_say_nothing_are_not_compared(value: float) -> None:
    expected, actual = np.ones(20), np.ones(20)
    expected[3], actual[3] = value, 7
    assert verdict(chain(C.RELU), expected, actual) == ""


def test_a_nan_where_a_number_is_expected_is_wrong() -> None:
    actual = np.ones(20)
    actual[3] = np.nan
    assert "got nan" in verdict(chain(C.SOFTMAX), np.ones(20), actual)


def test_quantised_elements_count_in_steps() -> None:
    example = chain(C.RELU, type=OperandCode.TENSOR_QUANT8_ASYMM)
    expected = np.full(20, 100, np.uint8)
    off_by_two, off_by_three = expected.copy(), expected.copy()
    off_by_two[0], off_by_three[0] = 102, 103
    assert verdict(example, expected, off_by_two) == ""
    assert "Expected 100 within 2; got 103" in verdict(example, expected, off_by_three)
    assert "mean error is 2" in verdict(example, expected, expected + np.uint8(2))


def test_booleans_are_exact_and_integers_off_by_one() -> None:
    truth = np.zeros(20, bool)
    example = chain(C.LOGICAL_NOT, type=OperandCode.TENSOR_BOOL8)
    assert "20 of 20" in verdict(example, truth, ~truth)
    example = chain(C.CAST, type=OperandCode.TENSOR_INT32)
    numbers = np.arange(20, dtype=np.int32)
    assert verdict(example, numbers, numbers + np.int32(1)) == ""
    assert "20 of 20" in verdict(example, numbers, numbers + np.int32(2))


def test_the_reference_has_to_agree_with_itself_exactly() -> None:
    ones = np.ones(20, np.float32)
    assert compare_exactly(chain(C.SIN), 0, ones, ones) == ""
    assert "exactly" in compare_exactly(chain(C.SIN), 0, ones, np.nextafter(ones, 2))
    nans = np.full(20, np.nan, np.float32)
    assert compare_exactly(chain(C.SIN), 0, nans, nans) == ""


@pytest.mark.parametrize(
    ("codes", "count"),
    [
        ((C.ARGMAX,), 2),
        ((C.RESHAPE, C.ARGMAX), 3),
        ((C.SIN, C.ARGMAX), 2),
        ((C.SIN, C.RESHAPE, C.ARGMAX, C.SIN), 3),
        ((C.SIN, C.SIN, C.SIN), 4),
        ((C.RANDOM_MULTINOMIAL,), 1),
    ],
)
def test_what_follows_a_choice_among_uncertain_elements_is_not_foreseeable(
    codes: tuple[OperationCode, ...], count: int
) -> None:
    assert foreseeable(chain(*codes).model.main) == frozenset(range(count))


def test_what_is_not_foreseeable_is_not_compared() -> None:
    zeros = np.zeros(20, np.float32)
    assert verdict(chain(C.SIN, C.FLOOR), zeros, zeros - 1) == ""
    assert verdict(chain(C.FLOOR), zeros, zeros - 1) != ""

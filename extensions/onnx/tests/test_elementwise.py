"""ONNX's elementwise operators beyond its own tests: old operator sets, refusals, randomness."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

from armpy.errors import ArmpyError

from .onnx_nodes import (
    Array,
    NodeCase,
    run_armpy,
    run_reference,
)

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((2, 3, 4, 5)).astype(np.float32)
BYTES = np.arange(6, dtype=np.uint8)
FLOAT, INT32, BOOL = 1, 6, 9


def of(kind: str, *inputs: Array | None, opset: int = 21, **attributes: object) -> NodeCase:
    """A node whose further inputs are constants."""
    return NodeCase(kind, inputs, attributes, opset)


@pytest.mark.parametrize(
    ("shape", "axis", "broadcast_to"),
    [((3, 4), 1, (1, 3, 4, 1)), ((5,), None, (5,)), ((2,), 0, (2, 1, 1, 1)), ((4, 5), -2, (4, 5))],
)
@pytest.mark.parametrize("kind", ["Add", "Div", "Pow"])
def test_operands_of_the_first_operator_sets_broadcast_along_an_axis(
    kind: str, shape: tuple[int, ...], axis: int | None, broadcast_to: tuple[int, ...]
) -> None:
    other = RANDOM.uniform(0.5, 2, shape).astype(np.float32)
    attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
    (output,) = run_armpy(NodeCase(kind, [abs(X), other], attributes, 6))
    function = {"Add": np.add, "Div": np.divide, "Pow": np.power}[kind]
    np.testing.assert_allclose(output, function(abs(X), other.reshape(broadcast_to)), rtol=1e-6)


def test_shapes_that_differ_do_not_broadcast_unless_the_first_operator_sets_say_so() -> None:
    with pytest.raises(ArmpyError, match="shapes differ"):
        run_armpy(NodeCase("Add", [X, X[0]], {}, 6, results=[(FLOAT, 4)]))


@pytest.mark.parametrize("to", ["FLOAT", "INT32", "BOOL"])
def test_the_first_operator_sets_cast_to_the_name_of_a_type(to: str) -> None:
    number = onnx.TensorProto.DataType.Value(to)
    (output,) = run_armpy(NodeCase("Cast", [X], {"to": to}, 5, results=[(number, 4)]))
    np.testing.assert_array_equal(
        output, X.astype({"FLOAT": np.float32, "INT32": np.int32}.get(to, np.bool_))
    )


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            of("BitShift", BYTES, BYTES, direction="UP"),
            "the attribute 'direction' has an unknown value",
        ),
        (of("Gelu", X, approximate="sine"), "the attribute 'approximate' has an unknown value"),
        (of("Celu", X, alpha=0.0), "alpha is 0"),
        (of("Dropout", X, opset=6, ratio=1.5), "the ratio is out of range"),
        (of("HannWindow", np.array(-1, np.int64)), "the size of the window"),
    ],
    ids=lambda case: case.kind if isinstance(case, NodeCase) else "",
)
def test_what_cannot_be_converted_names_the_node(case: NodeCase, message: str) -> None:
    with pytest.raises(ArmpyError, match=message):
        run_armpy(case)


def test_a_window_beyond_memory_is_refused_before_anything_is_allocated() -> None:
    with pytest.raises(ArmpyError, match=r"memory|large"):
        run_armpy(NodeCase("HannWindow", [np.array(2**40, np.int64)]))


@pytest.mark.parametrize("kind", ["RandomNormalLike", "RandomUniformLike", "Bernoulli"])
def test_equal_seeds_draw_equal_numbers_and_no_seed_draws_others(kind: str) -> None:
    value = np.full((1000,), 0.25, np.float32)
    first, again = (run_armpy(of(kind, value, seed=3.5))[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    others = run_armpy(of(kind, value, seed=3.75))[0], run_armpy(of(kind, value))[0]
    for other in (*others, run_armpy(of(kind, value))[0]):
        assert (other != first).any()


def test_random_numbers_have_the_distribution_that_the_node_says() -> None:
    (uniform,) = run_armpy(of("RandomUniformLike", np.zeros(20_000), low=-3.0, high=5.0, seed=1.0))
    assert uniform.dtype == np.float64
    assert -3 <= uniform.min() < -2.99
    assert 4.99 < uniform.max() < 5
    assert abs(uniform.mean() - 1) < 0.06
    case = of("RandomNormalLike", np.zeros(20_000, np.float32), mean=2.0, scale=3.0, seed=1.0)
    (normal,) = run_armpy(case)
    assert abs(normal.mean() - 2) < 0.08
    assert abs(normal.std() - 3) < 0.06
    assert abs((np.abs(normal - 2) < 3).mean() - 0.6827) < 0.012
    (hits,) = run_armpy(of("Bernoulli", np.full(20_000, 0.3, np.float32), seed=1.0, dtype=INT32))
    assert hits.dtype == np.int32
    assert abs(hits.mean() - 0.3) < 0.012
    logits = np.log(np.array([[0.1, 0.6, 0.3]], np.float32))
    (drawn,) = run_armpy(of("Multinomial", logits, sample_size=20_000, seed=1.0))
    shares = np.bincount(drawn[0], minlength=3) / drawn.size
    np.testing.assert_allclose(shares, [0.1, 0.6, 0.3], atol=0.012)


def test_dropout_leaves_everything_in_and_its_mask_says_so() -> None:
    output, mask = run_armpy(
        NodeCase("Dropout", [X], {}, 13, outputs=2, results=[(FLOAT, 4), (BOOL, 4)])
    )
    np.testing.assert_array_equal(output, X)
    assert mask.dtype == np.bool_
    assert mask.all()
    assert mask.shape == X.shape


@pytest.mark.parametrize("opset", [6, 13])
def test_dropout_in_training_mode_leaves_out_its_share_and_scales_the_rest(opset: int) -> None:
    ones, share = np.ones((200, 100), np.float32), np.array(0.25, np.float32)
    arrays = [ones, share, np.array(True)] if opset > 6 else [ones]
    attributes = {"seed": 3} if opset > 6 else {"ratio": 0.25}
    results = [(FLOAT, 2), (BOOL if opset > 6 else FLOAT, 2)]
    case = NodeCase("Dropout", arrays, attributes, opset, outputs=2, results=results)
    output, mask = run_armpy(case)
    np.testing.assert_allclose(output, mask.astype(np.float32) / np.float32(0.75), rtol=1e-6)
    assert abs(mask.astype(np.float32).mean() - 0.75) < 0.02


def test_arithmetic_and_functions_of_float64_keep_their_digits() -> None:
    x = np.array([1 + 2.0**-40, 3.0, -0.7])
    for kind in ("Add", "Mul", "Div", "Sub", "Max"):
        (output,) = run_armpy(of(kind, x, x[::-1].copy()))
        (wanted,) = run_reference(of(kind, x, x[::-1].copy()))
        np.testing.assert_array_equal(output, wanted)
    for kind, function in REAL_FUNCTIONS.items():
        (output,) = run_armpy(of(kind, x, opset=22))
        np.testing.assert_allclose(output, [function(number) for number in x], rtol=1e-14, atol=0)


REAL_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "Erf": math.erf,
    "Gelu": lambda x: x / 2 * math.erfc(-x / math.sqrt(2)),
    "Mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "Elu": lambda x: x if x > 0 else math.expm1(x),
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "Tanh": math.tanh,
    "Softplus": lambda x: math.log1p(math.exp(x)),
    "Atanh": lambda x: math.atanh(x) if abs(x) < 1 else math.nan,
    "HardSwish": lambda x: x * min(max(x + 3, 0), 6) / 6,
}
"""What functions of one number are, by C's mathematics library."""

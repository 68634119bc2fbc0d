"""LiteRT takes the files that tests write, and the oracle runs them as it says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from armpy_testing.models.tflite_writer import Subgraph, TfliteModel
from tests.differential.litert_oracle import litert_or_skip, run_litert

litert_or_skip()

KERNELS = pytest.mark.parametrize(
    "kernels", [{"reference": True}, {"reference": False}, {"xnnpack": True}], ids=str
)


def model_of(build: Callable[[Subgraph], None]) -> bytes:
    """A file with one subgraph."""
    model = TfliteModel()
    build(model.subgraph())
    return model.to_bytes()


def dense(graph: Subgraph) -> None:
    """A fully connected layer with open batch and no bias."""
    x = graph.tensor("x", (2, 3), shape_signature=(-1, 3))
    y = graph.tensor("y", (2, 2))
    weights = graph.tensor("w", (2, 3), data=[[1, 2, 3], [-1, 0, 1]])
    graph.operator("FULLY_CONNECTED", [x, weights, None], [y], {})
    graph.inputs(x)
    graph.outputs(y)


@KERNELS
@pytest.mark.parametrize("batches", [2, 5])
def test_inputs_are_resized_to_the_arrays_given(kernels: dict[str, bool], batches: int) -> None:
    x = np.arange(batches * 3, dtype=np.float32).reshape(batches, 3)
    (result,) = run_litert(model_of(dense), [x], **kernels)
    expected = np.stack([x @ [1, 2, 3], x @ [-1, 0, 1]], 1)
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=1e-6)


def test_the_number_of_inputs_is_checked() -> None:
    with pytest.raises(ValueError, match="Expected 1; got 0"):
        run_litert(model_of(dense), [])


@KERNELS
def test_quantised_addition_is_right_within_one_step(kernels: dict[str, bool]) -> None:
    def add(graph: Subgraph) -> None:
        a = graph.tensor("a", (2, 8), "INT8", scale=0.1, zero_point=3)
        b = graph.tensor("b", (2, 8), "INT8", scale=0.07, zero_point=-1)
        y = graph.tensor("y", (2, 8), "INT8", scale=0.15, zero_point=0)
        options = {"fused_activation_function": "NONE"}
        graph.operator("ADD", [a, b], [y], options, version=2)
        graph.inputs(a, b)
        graph.outputs(y)

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (2, 8)).astype(np.int8) for _ in range(2))
    expected = np.clip(np.rint(((a - 3.0) * 0.1 + (b + 1.0) * 0.07) / 0.15), -128, 127)
    (result,) = run_litert(model_of(add), [a, b], **kernels)
    assert np.abs(result - expected).max() <= 1


@pytest.mark.parametrize("external", [False, True])
def test_a_buffer_may_be_shared_and_lie_after_the_flatbuffer(external: bool) -> None:
    numbers: npt.NDArray[np.float32] = np.arange(4, dtype=np.float32)
    model = TfliteModel()
    graph = model.subgraph()
    buffer = model.buffer(numbers.tobytes(), external=external)
    x, t, y = (graph.tensor(name, (4,)) for name in "xty")
    first, second = (graph.tensor(name, (4,), buffer=buffer) for name in ("c1", "c2"))
    graph.operator("ADD", [x, first], [t], {})
    graph.operator("MUL", [t, second], [y], {})
    graph.inputs(x)
    graph.outputs(y)
    model.signature("serving_default", {"image": x}, {"scores": y})
    ones = np.ones(4, np.float32)
    expected = (1 + numbers) * numbers
    np.testing.assert_array_equal(run_litert(model.to_bytes(), [ones])[0], expected)
    interpreter = litert_or_skip().Interpreter(model_content=model.to_bytes())
    by_name = interpreter.get_signature_runner("serving_default")(image=ones)
    np.testing.assert_array_equal(by_name["scores"], expected)


def test_subgraphs_are_called() -> None:
    model = TfliteModel()
    graph, *branches = (model.subgraph(name) for name in ("main", "then", "else"))
    condition = graph.tensor("condition", (), "BOOL")
    x, y = graph.tensor("x", (2,)), graph.tensor("y", (2,))
    options = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    graph.operator("IF", [condition, x], [y], options)
    graph.inputs(condition, x)
    graph.outputs(y)
    for branch, code in zip(branches, ("NEG", "SQUARE"), strict=True):
        source, target = branch.tensor("i", (2,)), branch.tensor("o", (2,))
        branch.operator(code, [source], [target], {})
        branch.inputs(source)
        branch.outputs(target)
    values = np.array([1, 3], np.float32)
    for chosen, expected in ((True, [-1, -3]), (False, [1, 9])):
        (result,) = run_litert(model.to_bytes(), [np.array(chosen), values])
        np.testing.assert_array_equal(result, np.array(expected, np.float32))


def test_variables_keep_their_values_between_invocations() -> None:
    def svdf(graph: Subgraph) -> None:
        x, y = graph.tensor("x", (1, 1)), graph.tensor("y", (1, 1))
        feature = graph.tensor("feature", (1, 1), data=[[1]])
        time = graph.tensor("time", (1, 3), data=[[1, 1, 1]])
        state = graph.tensor("state", (1, 3), variable=True)
        graph.operator("SVDF", [x, feature, time, None, state], [y], {"rank": 1})
        graph.inputs(x)
        graph.outputs(y)

    ones = np.ones((1, 1), np.float32)
    sums = [run_litert(model_of(svdf), [ones], invocations=n)[0].item() for n in (1, 2, 3, 4)]
    assert sums == [1, 2, 3, 3]

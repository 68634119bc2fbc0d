"""Odd files that LiteRT loads and runs: armpy gives the same, and refuses others with a reason.

Each is small, and odd in one way; docs/reference/tflite_files.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flatbuffers")
pytest.importorskip("tflite")

import armpy
from armpy.errors import ParserError
from armpy.ops.operation import Array
from armpy_testing.litert_oracle import litert_or_skip
from armpy_testing.models.tflite_writer import (
    OptionValue,
    SparseDimension,
    Sparsity,
    TfliteModel,
    model_with_input,
)

Make = Callable[[], TfliteModel]
ODD: dict[str, Make] = {}
"""Models that both run, by what is odd."""
STRICT: dict[str, tuple[Make, str]] = {}
"""Models that LiteRT runs and armpy refuses, with its message."""

NUMBERS = np.array([3, 4, 0, 0], np.float32)
STEPS: dict[str, OptionValue] = {"stride_w": 1, "stride_h": 1}
WINDOW: dict[str, OptionValue] = {**STEPS, "filter_width": 1, "filter_height": 1}


def odd(make: Make) -> Make:
    ODD[make.__name__.replace("_", " ")] = make
    return make


def strict(message: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        STRICT[make.__name__.replace("_", " ")] = make, message
        return make

    return register


def unary(
    operator: str,
    shape: tuple[int, ...] = (2, 3),
    type: str = "FLOAT32",
    options: dict[str, OptionValue] | None = None,
    output_shape: tuple[int, ...] | None = None,
    options_table: str | None = None,
    **of_tensors: Any,
) -> TfliteModel:
    """A model of one operator with one input, of the type and quantisation of its output."""
    model, graph, x = model_with_input(shape, type, **of_tensors)
    of_tensors.pop("shape_signature", None)
    y = graph.tensor("y", output_shape or shape, type, **of_tensors)
    graph.operator(operator, [x], [y], options, options_table=options_table)
    graph.outputs(y)
    return model


def with_constant(
    type: str, data: bytes, operator: str = "ADD", shape: tuple[int, ...] = (2,), **more: Any
) -> TfliteModel:
    """A model of one operator on an input of two elements and a constant."""
    model, graph, x = model_with_input(type=type, **more)
    constant = graph.tensor("c", shape, type, data=data, **more)
    y = graph.tensor("y", (2,), type, **more)
    graph.operator(operator, [x, constant], [y], {})
    graph.outputs(y)
    return model


@odd
def padded_float32() -> TfliteModel:
    return with_constant("FLOAT32", NUMBERS.tobytes())


@odd
def padded_by_part_of_an_element() -> TfliteModel:
    return with_constant("FLOAT32", NUMBERS.tobytes()[:11])


@odd
def padded_bool() -> TfliteModel:
    return with_constant("BOOL", b"\1\0" + bytes(14), "LOGICAL_AND")


@odd
def padded_scalar() -> TfliteModel:
    return with_constant("FLOAT32", NUMBERS.tobytes(), shape=())


@odd
def padded_float16_weights() -> TfliteModel:
    model, graph, x = model_with_input()
    halves = np.arange(8, dtype=np.float16).tobytes()
    constant = graph.tensor("c", (2,), "FLOAT16", data=halves)
    weights, y = graph.tensor("w", (2,)), graph.tensor("y", (2,))
    graph.operator("DEQUANTIZE", [constant], [weights], {})
    graph.operator("ADD", [x, weights], [y], {})
    graph.outputs(y)
    return model


@odd
def padded_shape_of_a_reshape() -> TfliteModel:
    model, graph, x = model_with_input()
    shape = np.array([2, 1, 9, 9], np.int32).tobytes()
    y = graph.tensor("y", (2, 1))
    graph.operator("RESHAPE", [x, graph.tensor("s", (2,), "INT32", data=shape)], [y], None)
    graph.outputs(y)
    return model


@odd
def padded_constant_without_elements() -> TfliteModel:
    model, graph, x = model_with_input()
    empty = graph.tensor("c", (0,), data=NUMBERS.tobytes())
    y = graph.tensor("y", (2,))
    graph.operator("CONCATENATION", [x, empty], [y], {"axis": 0})
    graph.outputs(y)
    return model


@odd
def padded_external_buffer() -> TfliteModel:
    model, graph, x = model_with_input()
    buffer = model.buffer(NUMBERS.tobytes(), external=True)
    y = graph.tensor("y", (2,))
    graph.operator("ADD", [x, graph.tensor("c", (2,), buffer=buffer)], [y], {})
    graph.outputs(y)
    return model


@odd
def padded_sparse_constant() -> TfliteModel:
    compressed = SparseDimension(segments=(0, 2, 3), indices=(1, 3, 0))
    sparsity = Sparsity((0, 1), (SparseDimension(2), compressed))
    model = TfliteModel()
    graph = model.subgraph()
    data = np.array([1, 2, 3, 9], np.float32)
    constant = graph.tensor("c", (2, 4), data=data, sparsity=sparsity)
    x, dense, y = (graph.tensor(name, (2, 4)) for name in ("x", "d", "y"))
    graph.operator("DENSIFY", [constant], [dense], {})
    graph.operator("ADD", [x, dense], [y], {})
    graph.inputs(x)
    graph.outputs(y)
    return model


@odd
def truth_value_of_3() -> TfliteModel:
    model, graph, x = model_with_input()
    condition = graph.tensor("c", (2,), "BOOL", data=b"\0\3")
    other, y = graph.tensor("z", (2,)), graph.tensor("y", (2,))
    graph.operator("SELECT", [condition, x, other], [y], {})
    graph.inputs(x, other)
    graph.outputs(y)
    return model


for _type, _scale in (("INT32", 0.0), ("INT32", float("nan")), ("INT64", -1.0)):
    ODD[f"scale {_scale} of {_type}"] = lambda t=_type, s=_scale: unary(  # type: ignore[misc]
        "RESHAPE", (2, 3), t, {"new_shape": [6]}, (6,), scale=s
    )

for _signature in ((-1, 3, 1), (3, -1), (-2, 3), (4, 3)):
    ODD[f"shape signature {_signature} of (2, 3)"] = lambda s=_signature: unary(  # type: ignore[misc]
        "ABS", shape_signature=s
    )

for _operator in ("ADD", "SUB", "MUL", "DIV"):
    for _activation in ("TANH", "SIGN_BIT", 77):

        def _activated(
            operator: str = _operator, activation: str | int = _activation
        ) -> TfliteModel:
            model, graph, x = model_with_input()
            y = graph.tensor("y", (2,))
            graph.operator(operator, [x, x], [y], {"fused_activation_function": activation})
            graph.outputs(y)
            return model

        ODD[f"activation {_activation} of {_operator}"] = _activated


@odd
def activation_TANH_of_a_pooling() -> TfliteModel:
    options = {**WINDOW, "fused_activation_function": "TANH"}
    return unary("MAX_POOL_2D", (1, 4, 4, 1), options=options)


@odd
def options_of_another_operator() -> TfliteModel:
    model, graph, x = model_with_input()
    y = graph.tensor("y", (2,))
    graph.operator("ADD", [x, x], [y], {}, options_table="SubOptions")
    graph.outputs(y)
    return model


@odd
def softmax_without_options() -> TfliteModel:
    return unary("SOFTMAX")


@odd
def softmax_with_a_negative_beta() -> TfliteModel:
    return unary("SOFTMAX", options={"beta": -1.0})


@odd
def tensor_written_twice() -> TfliteModel:
    model, graph, x = model_with_input()
    again, y, z = (graph.tensor(name, (2,)) for name in ("a", "y", "z"))
    graph.operator("NEG", [x], [again], {})
    graph.operator("ABS", [again], [y], None)
    graph.operator("SQUARE", [x], [again], {})
    graph.operator("NEG", [again], [z], {})
    graph.outputs(y, z, again)
    return model


@odd
def tensor_written_twice_with_other_shapes() -> TfliteModel:
    model, graph, x = model_with_input()
    again, y, z = graph.tensor("a", (2,)), graph.tensor("y", (2,)), graph.tensor("z", (4,))
    graph.operator("NEG", [x], [again], {})
    graph.operator("ABS", [again], [y], None)
    graph.operator("CONCATENATION", [x, x], [again], {})
    graph.operator("NEG", [again], [z], {})
    graph.outputs(y, z)
    return model


@odd
def operator_that_writes_its_own_input() -> TfliteModel:
    model, graph, x = model_with_input()
    y = graph.tensor("y", (2,))
    graph.operator("NEG", [x], [y], {})
    graph.operator("ABS", [y], [y], None)
    graph.outputs(y)
    return model


@odd
def input_that_is_written() -> TfliteModel:
    model, graph, x = model_with_input()
    negative, y = graph.tensor("a", (2,)), graph.tensor("y", (2,))
    graph.operator("NEG", [x], [negative], {})
    graph.operator("SQUARE", [negative], [x], {})
    graph.operator("NEG", [x], [y], {})
    graph.outputs(y)
    return model


@odd
def variable_that_an_operator_writes() -> TfliteModel:
    model, graph, x = model_with_input()
    state, y = graph.tensor("v", (2,), variable=True), graph.tensor("y", (2,))
    graph.operator("ADD", [x, state], [y], {})
    graph.operator("NEG", [y], [state], {})
    graph.outputs(y)
    return model


@odd
def variable_that_is_written_before_it_is_read() -> TfliteModel:
    model, graph, x = model_with_input()
    state, y = graph.tensor("v", (2,), variable=True), graph.tensor("y", (2,))
    graph.operator("NEG", [x], [state], {})
    graph.operator("ADD", [x, state], [y], {})
    graph.outputs(y)
    return model


@odd
def reshape_by_a_matrix() -> TfliteModel:
    model, graph, x = model_with_input()
    shape = graph.tensor("s", (1, 2), "INT32", data=np.array([[2, 1]], np.int32))
    y = graph.tensor("y", (2, 1))
    graph.operator("RESHAPE", [x, shape], [y], {"new_shape": [2, 1]})
    graph.outputs(y)
    return model


@odd
def bias_of_two_dimensions_of_a_convolution() -> TfliteModel:
    model, graph, x = model_with_input((1, 4, 4, 1))
    y = graph.tensor("y", (1, 4, 4, 2))
    weights = graph.tensor("w", (2, 1, 1, 1), data=np.ones((2, 1, 1, 1), np.float32))
    bias = graph.tensor("b", (1, 2), data=np.array([[1, 2]], np.float32))
    graph.operator("CONV_2D", [x, weights, bias], [y], STEPS)
    graph.outputs(y)
    return model


@odd
def bias_of_two_dimensions_of_a_product() -> TfliteModel:
    model, graph, x = model_with_input((1, 4))
    y = graph.tensor("y", (1, 2))
    weights = graph.tensor("w", (2, 4), data=np.ones((2, 4), np.float32))
    bias = graph.tensor("b", (1, 2), data=np.array([[1, 2]], np.float32))
    graph.operator("FULLY_CONNECTED", [x, weights, bias], [y], {})
    graph.outputs(y)
    return model


@odd
def positions_of_another_type_than_the_output() -> TfliteModel:
    model, graph, x = model_with_input((2, 3))
    y = graph.tensor("y", (2,), "INT32")
    axis = graph.tensor("a", (), "INT32", data=np.array(1, np.int32))
    graph.operator("ARG_MAX", [x, axis], [y], {"output_type": "INT64"})
    graph.outputs(y)
    return model


def between_scales(
    operator: str,
    output: dict[str, Any],
    shape: tuple[int, ...] = (1, 4, 4, 1),
    operand: list[int] | None = None,
    options: dict[str, OptionValue] | None = None,
    **source: Any,
) -> TfliteModel:
    """A model of one operator on bytes, with a scale for its input and for its output."""
    model = TfliteModel()
    graph = model.subgraph()
    x, y = graph.tensor("x", shape, "INT8", **source), graph.tensor("y", shape, "INT8", **output)
    numbers = operand or []
    constant = graph.tensor("c", (len(numbers),), "INT32", data=numbers)
    graph.operator(operator, [x, constant][: 1 + bool(numbers)], [y], options or {})
    graph.inputs(x)
    graph.outputs(y)
    return model


FINE: dict[str, Any] = {"scale": 0.25, "zero_point": 3}
COARSE: dict[str, Any] = {"scale": 0.5, "zero_point": 1}


@odd
def moved_to_another_scale() -> TfliteModel:
    return between_scales("GATHER", FINE, operand=[0, 0], **COARSE)


@odd
def moved_from_no_scale_to_one() -> TfliteModel:
    return between_scales("SPACE_TO_DEPTH", FINE, options={"block_size": 2})


@odd
def moved_from_a_scale_to_none() -> TfliteModel:
    return between_scales("REVERSE_V2", {}, operand=[1], **COARSE)


@odd
def resized_without_a_scale() -> TfliteModel:
    return between_scales("RESIZE_BILINEAR", {}, operand=[3, 5])


@odd
def pooled_without_a_scale() -> TfliteModel:
    return between_scales("MAX_POOL_2D", {}, options={**WINDOW, "filter_width": 2})


def of_two(operator: str, *, last: bool = False) -> TfliteModel:
    """A model of an operator on two tensors of bytes and the condition of a choice."""
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor("x", (3, 3), "INT8", **COARSE)
    scales: dict[str, Any] = {"scale": 0.75, "zero_point": -2}
    shape = (3,) if last else (3, 3)
    other = graph.tensor("o", shape, "INT8", data=bytes(range(1, 4 if last else 10)), **scales)
    y = graph.tensor("y", (3, 3), "INT8", **FINE)
    mask = graph.tensor("m", (3, 3), "BOOL", data=bytes([1, 0, 0] * 3))
    graph.operator(operator, [mask, x, other] if "SELECT" in operator else [x, other], [y], {})
    graph.inputs(x)
    graph.outputs(y)
    return model


@odd
def diagonal_of_another_scale() -> TfliteModel:
    return of_two("MATRIX_SET_DIAG", last=True)


@odd
def choice_between_scales() -> TfliteModel:
    return of_two("SELECT_V2")


@odd
def whole_quotient_of_two_scales() -> TfliteModel:
    return of_two("FLOOR_DIV")


@odd
def negated_to_another_scale() -> TfliteModel:
    return between_scales("NEG", FINE, **COARSE)


@odd
def largest_of_two_scales() -> TfliteModel:
    return of_two("MAXIMUM")


@odd
def sum_of_bytes_that_is_declared_as_floats() -> TfliteModel:
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor("x", (2,), "INT8", scale=0.5)
    total = graph.tensor("t", (2,), "FLOAT32", scale=0.25)
    y = graph.tensor("y", (2,), "INT8", scale=0.5)
    graph.operator("ADD", [x, x], [total], {})
    graph.operator("ADD", [total, x], [y], {})
    graph.inputs(x)
    graph.outputs(y)
    return model


@odd
def parts_of_bytes_that_are_declared_as_floats() -> TfliteModel:
    model, graph, x = model_with_input((2, 2), "INT8")
    axis = graph.tensor("axis", (), "INT32", data=[0])
    parts = [graph.tensor(name, (1, 2)) for name in "yz"]
    graph.operator("SPLIT", [axis, x], parts, {"num_splits": 2})
    graph.outputs(*parts)
    return model


@odd
def open_size_beside_one_of_0() -> TfliteModel:
    model = TfliteModel()
    graph = model.subgraph()
    x, y = graph.tensor("x", (1, 4, 0)), graph.tensor("y", (2, 0, 1))
    shape = graph.tensor("s", (3,), "INT32", data=[2, 0, -1])
    graph.operator("RESHAPE", [x, shape], [y], {})
    graph.inputs(x)
    graph.outputs(y)
    return model


@odd
def lstm_of_bytes() -> TfliteModel:
    """As converters wrote before UNIDIRECTIONAL_SEQUENCE_LSTM."""
    model = TfliteModel()
    graph = model.subgraph()
    random = np.random.default_rng(3)
    state: dict[str, Any] = {"scale": 0.01, "zero_point": -5}
    x = graph.tensor("x", (2, 3), "INT8", scale=0.02, zero_point=4)
    weights = [
        graph.tensor(
            f"w{gate}",
            (4, size),
            "INT8",
            scale=0.005,
            data=random.integers(-127, 128, (4, size)).astype(np.int8),
        )
        for gate, size in enumerate((3,) * 4 + (4,) * 4)
    ]
    biases = [
        graph.tensor(f"b{i}", (4,), "INT32", data=random.integers(-9999, 9999, 4)) for i in range(4)
    ]
    hidden = graph.tensor("h", (2, 4), "INT8", variable=True, **state)
    cell = graph.tensor("c", (2, 4), "INT16", scale=2.0**-12, variable=True)
    y = graph.tensor("y", (2, 4), "INT8", **state)
    inner = [graph.tensor(f"i{i}", (0,), "INT16", scale=0.001) for i in range(4)]
    inner.append(graph.tensor("i4", (0,), "INT8", **state))
    none = [None] * 3
    graph.operator(
        "LSTM",
        [x, *weights, *none, *biases, None, None, hidden, cell],
        [y],
        {"fused_activation_function": "TANH", "cell_clip": 1.5},
        intermediates=inner,
    )
    graph.inputs(x)
    graph.outputs(y)
    return model


@strict("a scale is not positive and finite. Expected a positive finite number; got nan")
def scale_of_int8_that_is_no_number() -> TfliteModel:
    options: dict[str, OptionValue] = {"new_shape": [6]}
    return unary("RESHAPE", (2, 3), "INT8", options, (6,), scale=float("nan"))


@strict("the rank is too high. Expected at most 8; got 9")
def rank_of_9() -> TfliteModel:
    return unary("ABS", (1,) * 8 + (3,))


@strict("the tensor type is not supported. Got COMPLEX128")
def complex_numbers_of_two_doubles() -> TfliteModel:
    return unary("RESHAPE", (2, 3), "COMPLEX128", {"new_shape": [6]}, (6,))


@strict("Beta is not a finite number")
def softmax_without_a_number() -> TfliteModel:
    return unary("SOFTMAX", options={"beta": float("nan")})


@strict("Alpha is not a finite number")
def infinite_leak() -> TfliteModel:
    return unary("LEAKY_RELU", options={"alpha": float("inf")})


@strict("Padding is not supported. Expected SAME or VALID; got 77")
def padding_that_the_schema_does_not_have() -> TfliteModel:
    return unary("MAX_POOL_2D", (1, 4, 4, 1), options={**WINDOW, "padding": 77})


@strict("Name is too long. Expected at most 65536 bytes")
def very_long_name() -> TfliteModel:
    model, graph, x = model_with_input(name="x" * 70000)
    y = graph.tensor("y", (2,))
    graph.operator("ABS", [x], [y], None)
    graph.outputs(y)
    return model


@strict("nothing has written it")
def tensor_that_is_read_before_it_is_written() -> TfliteModel:
    model, graph, x = model_with_input()
    late, y = graph.tensor("a", (2,)), graph.tensor("y", (2,))
    graph.operator("ABS", [late], [y], None)
    graph.operator("NEG", [x], [late], {})
    graph.outputs(y)
    return model


@strict("too many inputs. Expected at most 1024; got 1100")
def more_than_1024_inputs() -> TfliteModel:
    model = TfliteModel()
    graph = model.subgraph()
    inputs = [graph.tensor(f"x{number}", (1,)) for number in range(1100)]
    y = graph.tensor("y", (1,))
    graph.operator("ABS", [inputs[0]], [y], None)
    graph.inputs(*inputs)
    graph.outputs(y)
    return model


@strict("INT4 is supported for constants only")
def tensor_of_4_bits() -> TfliteModel:
    model, graph, x = model_with_input()
    quantized, y = graph.tensor("q", (2,), "INT4", scale=0.5), graph.tensor("y", (2,))
    graph.operator("QUANTIZE", [x], [quantized], {})
    graph.operator("DEQUANTIZE", [quantized], [y], {})
    graph.outputs(y)
    return model


@strict("this combination of data types is not allowed")
def pooled_with_bounds_that_have_no_scale() -> TfliteModel:
    return between_scales(
        "MAX_POOL_2D", {}, options={**WINDOW, "fused_activation_function": "RELU"}
    )


@strict("another data type than the first input")
def reshape_to_another_type() -> TfliteModel:
    model, graph, x = model_with_input((2, 3), "INT32")
    y = graph.tensor("y", (6,))
    graph.operator("RESHAPE", [x], [y], {"new_shape": [6]})
    graph.outputs(y)
    return model


def numbers(shape: tuple[int, ...], dtype: np.dtype[np.generic], seed: int) -> Array:
    random = np.random.default_rng(seed)
    if dtype.kind == "f":
        return random.normal(size=shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 5, shape).astype(dtype)


def by_litert(content: bytes) -> list[list[Array]]:
    """Results of two runs, so that state shows."""
    interpreter = litert_or_skip().Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    results = []
    for _ in range(2):
        for seed, about in enumerate(interpreter.get_input_details()):
            data = numbers(tuple(about["shape"]), np.dtype(about["dtype"]), seed)
            interpreter.set_tensor(about["index"], data)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        results.append([np.array(interpreter.get_tensor(about["index"])) for about in outputs])
    return results


def by_armpy(content: bytes, backends: list[str]) -> list[list[Array]]:
    with armpy.load(content, backends=backends) as model:
        given = {
            spec.name: numbers(spec.info.known_shape, np.dtype(spec.data_type.dtype), seed)
            for seed, spec in enumerate(model.inputs)
        }
        return [list(model.run(given).values()) for _ in range(2)]


@pytest.mark.parametrize("name", ODD)
def test_what_litert_runs_gives_the_same(name: str) -> None:
    content = ODD[name]().to_bytes()
    expected = by_litert(content)
    for backends in (["CpuRef"], ["NumbaAcc", "CpuRef"]):
        for wanted, got in zip(expected, by_armpy(content, backends), strict=True):
            for one, other in zip(wanted, got, strict=True):
                assert (other.dtype, other.shape) == (one.dtype, one.shape)
                np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", STRICT)
def test_what_stays_refused_says_why(name: str) -> None:
    make, message = STRICT[name]
    content = make().to_bytes()
    assert by_litert(content)
    with pytest.raises(ParserError, match=message):
        armpy.load(content, backends=["CpuRef"])


def test_input_that_is_listed_twice_is_one() -> None:
    model, graph, x = model_with_input()
    y = graph.tensor("y", (2,))
    graph.operator("ABS", [x], [y], None)
    graph.inputs(x, x)
    graph.outputs(y)
    with armpy.load(model.to_bytes(), backends=["CpuRef"]) as loaded:
        assert [spec.name for spec in loaded.inputs] == ["x"]
        np.testing.assert_array_equal(loaded(np.array([-1, 2], np.float32)), [1, 2])

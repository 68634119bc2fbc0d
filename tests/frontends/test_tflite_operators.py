"""What each operator of a .tflite file becomes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armpy
from armpy.errors import ParserError
from armpy.ops import Prelu, Reshape, Select
from armpy_testing.models.tflite_writer import TfliteModel, model_with_input
from tests.differential.tflite_samples import sampled_operators
from tests.support.tflite_cases import Model, Spec, different_models, operator_models
from tests.support.tflite_files import known_operators, network_of, parsed

X = Spec((2, 3))
IMAGE = Spec((1, 4, 4, 2))
STRIDES = {"stride_w": 1, "stride_h": 2, "padding": "SAME"}


def zeros(*shape: int) -> Spec:
    """A constant of float32 zeros."""
    return Spec(shape, "FLOAT32", np.zeros(shape, np.float32))


@pytest.mark.parametrize("case", different_models(), ids=str)
def test_operator_becomes_the_operation_with_its_options_and_operands(case: Model) -> None:
    (layer,) = parsed(case.model()).layers
    assert layer.operation == case.expected
    names = [None if value is None else value.name for value in layer.inputs]
    order = case.order or tuple(None if spec is None else i for i, spec in enumerate(case.inputs))
    expected = [None if i is None else f"in{i}" for i in order]
    while expected[-1] is None:
        expected.pop()
    assert names == expected


def test_every_operator_has_a_case_or_a_sample() -> None:
    # Those that run subgraphs are in test_tflite_control_flow.py.
    cases = {case.operator for case in operator_models()}
    assert cases <= known_operators()
    assert known_operators() - cases - {"IF", "WHILE"} <= sampled_operators()


def test_batch_matmul_multiplies_16_bits_by_8() -> None:
    model, graph, x = model_with_input((1, 2), "INT16", scale=0.5)
    y = graph.tensor("y", (2, 1), "INT8", scale=0.25, data=[3, -99])
    z = graph.tensor("z", (1, 1), "INT16", scale=2.0)
    graph.operator("BATCH_MATMUL", [x, y], [z], {})
    graph.outputs(z)
    product = armpy.load(model.to_bytes(), backends=["CpuRef"])
    # (1000 * 3 - 300 * 99) * 0.5 * 0.25 / 2
    np.testing.assert_array_equal(product(np.array([[1000, 300]], np.int16)), [[-1669]])


@pytest.mark.parametrize(
    ("operator", "inputs", "options", "message"),
    [
        (
            "FULLY_CONNECTED",
            [X, zeros(4, 3)],
            {"fused_activation_function": "TANH"},
            r"operator 0 FULLY_CONNECTED 'out0': .* cannot have a fused activation.*got TANH",
        ),
        (
            "CONCATENATION",
            [X, X],
            {"axis": 0, "fused_activation_function": "RELU"},
            "cannot have a fused activation.*got RELU",
        ),
        (
            "L2_NORMALIZATION",
            [X],
            {"fused_activation_function": "RELU6"},
            "cannot have a fused activation",
        ),
        (
            "FULLY_CONNECTED",
            [X, zeros(4, 3)],
            {"weights_format": "SHUFFLED4x16INT8"},
            "WeightsFormat is not supported. Expected DEFAULT; got SHUFFLED4x16INT8",
        ),
        ("CONV_2D", [IMAGE, zeros(3, 2, 2, 2)], {**STRIDES, "padding": 7}, "Padding is not"),
        ("PACK", [X, X], {"axis": 0, "values_count": 3}, "number of inputs is wrong.*3; got 2"),
        ("UNPACK", [X], {"num": 2_000_000_000}, "number of outputs is wrong"),
        ("SPLIT", [X, X], {"num_splits": 2_000_000_000}, "number of outputs is wrong"),
        ("LEAKY_RELU", [X], {"alpha": float("nan")}, "Alpha is not a finite number. Got nan"),
        ("CONV_2D", [IMAGE, zeros(3, 2, 2, 2)], None, "stride is too small"),
        ("SVDF", [X, zeros(4, 3), zeros(4, 5)], {"rank": 2}, "input 4, the state, is missing"),
        (
            "SVDF",
            [X, zeros(4, 3), zeros(4, 5), None, Spec((2, 20))],
            {"rank": 2},
            "tensor 3 'in4' holds a state, but it is not a variable",
        ),
        (
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            [X],
            {"diagonal_recurrent_tensors": True},
            "diagonal recurrent weights",
        ),
        ("LSTM", [X], {"kernel_type": "BASIC"}, "KernelType is not supported. Expected FULL; got"),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    operator: str, inputs: list[Spec], options: dict[str, float], message: str
) -> None:
    case = Model(operator, inputs, Prelu(), options)
    with pytest.raises(ParserError, match=message):
        network_of(case.model())


def test_condition_of_rank_1_selects_rows() -> None:
    condition, x = Spec((4,), "BOOL"), Spec((4, 3, 2))
    case = Model("SELECT", [condition, x, x], Select(), outputs=[x])
    reshape, select = parsed(case.model()).layers
    assert reshape.operation == Reshape((-1, 1, 1))
    assert select.inputs[0] is reshape.outputs[0]
    assert select.outputs[0].info.shape == (4, 3, 2)


def test_variable_is_assigned_the_state_that_the_layer_leaves() -> None:
    case = next(case for case in operator_models() if case.operator == "SVDF")
    graph = parsed(case.model())
    (variable,) = graph.variables
    assert variable.value is graph.layers[0].inputs[4]
    assert variable.next_value is graph.layers[0].outputs[0]
    assert not variable.initial.any()


def test_second_reader_of_a_variable_sees_what_the_first_one_left() -> None:
    case = next(case for case in operator_models() if case.operator == "SVDF")
    model = case.model()
    graph = model.subgraph("twice")
    inputs = [
        None if spec is None else spec.write(graph, f"in{i}") for i, spec in enumerate(case.inputs)
    ]
    outputs = [Spec((2, 2)).write(graph, name) for name in ("first", "second")]
    for output in outputs:
        graph.operator("SVDF", inputs, [output], case.options)
    graph.inputs(inputs[0])  # type: ignore[arg-type]  # it is there
    graph.outputs(*outputs)
    model.signature("twice", {"x": inputs[0]}, {"y": outputs[1]})  # type: ignore[dict-item]
    built = parsed(model, signature="twice")
    (variable,) = built.variables
    first, second = built.layers
    assert second.inputs[4] is first.outputs[0]
    assert variable.next_value is second.outputs[0]


@pytest.mark.parametrize(
    ("operator", "kind", "least"),
    [
        ("ADD", "INT8", 3 / 2**20),
        ("ADD", "INT16", 3 / 2**15),
        ("SQUARED_DIFFERENCE", "INT8", 9 / 2**14),
    ],
)
def test_outputs_finer_than_what_is_computed_are_refused_by_name(
    operator: str, kind: str, least: float
) -> None:
    # Twice the inputs' scale, by 2**20 or 2**15, and its square by 2**14. LiteRT ends the process.
    def model_of(scale: float) -> bytes:
        model = TfliteModel()
        graph = model.subgraph()
        inputs = [graph.tensor(f"in{i}", (4,), kind, scale=1.5, zero_point=0) for i in range(2)]
        output = graph.tensor("small", (4,), kind, scale=scale, zero_point=0)
        graph.operator(operator, inputs, [output], {})
        graph.inputs(*inputs)
        graph.outputs(output)
        return model.to_bytes()

    assert len(parsed(model_of(least * 1.01)).layers) == 1
    with pytest.raises(ParserError, match=r"output 'small' is too small.*Expected more than"):
        network_of(model_of(least))


@pytest.mark.parametrize("operator", sorted({case.operator for case in operator_models()}))
def test_an_operator_without_tensors_is_the_files_fault(operator: str) -> None:
    case = next(case for case in operator_models() if case.operator == operator)
    for model in (replace(case, outputs=()), replace(case, inputs=())):
        with pytest.raises(ParserError, match=f"operator 0 {operator}|has no outputs"):
            parsed(model.model().to_bytes())

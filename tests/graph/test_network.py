from __future__ import annotations

import numpy as np
import pytest

from armpy import ops
from armpy.errors import GraphValidationError, InvalidArgumentError, LayerValidationError
from armpy.graph.network import Network
from armpy.tensor import Quantization, TensorInfo, check_shape_fits
from armpy.types import DataType
from armpy_testing.models.networks import ADD, RELU, f32, floats, i32


@pytest.fixture
def net() -> Network:
    return Network("net")


def test_two_inputs_of_one_name_are_rejected(net: Network) -> None:
    net.input("x", f32(1))
    with pytest.raises(InvalidArgumentError, match=r"net: two inputs have the same name.*'x'"):
        net.input("x", f32(1))


def test_two_outputs_of_one_name_are_rejected(net: Network) -> None:
    x = net.input("x", f32(1))
    net.output("y", x)
    with pytest.raises(InvalidArgumentError, match="net: there is an output 'y' already"):
        net.output("y", x)


def test_a_network_needs_an_output(net: Network) -> None:
    with pytest.raises(GraphValidationError, match=r"net: the network has no output.*output"):
        net.build()


def test_a_value_of_another_network_is_rejected_where_it_is_used(net: Network) -> None:
    foreign = Network().input("other", f32(2))
    x = net.input("x", f32(2))
    variable = net.variable("v", f32(2))
    with pytest.raises(GraphValidationError, match=r"ElementwiseBinary 'sum': .*'other'.*another"):
        net.add(ADD, x, foreign, name="sum")
    with pytest.raises(GraphValidationError, match=r"output 'y': .*'other'"):
        net.output("y", foreign)
    with pytest.raises(GraphValidationError, match=r"assign: .*'other'"):
        net.assign(variable, foreign)
    with pytest.raises(GraphValidationError, match=r"assign: .*'other'"):
        net.assign(foreign, x)


@pytest.mark.parametrize("wrong", [floats(1, 2), 3.0, "x", [1]])
def test_an_operand_that_is_no_value_is_rejected_with_the_way_to_make_one(
    net: Network, wrong: object
) -> None:
    x = net.input("x", f32(2))
    text = f"ElementwiseBinary 'sum': .*got {type(wrong).__name__}.*Network.constant"
    with pytest.raises(InvalidArgumentError, match=text):
        net.add(ADD, x, wrong, name="sum")  # type: ignore[arg-type]  # untyped callers do this


@pytest.mark.parametrize("wrong", ["Activation", ops.Activation, None])
def test_something_that_is_no_operation_is_rejected(net: Network, wrong: object) -> None:
    x = net.input("x", f32(2))
    with pytest.raises(InvalidArgumentError, match=r"layer 'a': .*Expected Operation; got"):
        net.add(wrong, x, name="a")  # type: ignore[arg-type]  # untyped callers do this


def test_something_that_is_no_info_is_rejected(net: Network) -> None:
    with pytest.raises(InvalidArgumentError, match=r"input 'x': .*TensorInfo; got \(1, 2\)"):
        net.input("x", (1, 2))  # type: ignore[arg-type]  # untyped callers do this
    with pytest.raises(InvalidArgumentError, match=r"variable 'v': .*TensorInfo; got \(1, 2\)"):
        net.variable("v", (1, 2))  # type: ignore[arg-type]  # untyped callers do this


def test_an_error_of_an_operation_names_the_layer(net: Network) -> None:
    a, b = net.input("a", f32(2)), net.input("b", f32(3))
    text = r"ElementwiseBinary 'sum': the shapes do not broadcast.*got \(2,\) and \(3,\)"
    with pytest.raises(LayerValidationError, match=text):
        net.add(ADD, a, b, name="sum")


def test_the_number_of_operands_is_checked(net: Network) -> None:
    x = net.input("x", f32(2))
    with pytest.raises(LayerValidationError, match=r"'sum'.*inputs \(lhs, rhs\); got 1 input\."):
        net.add(ADD, x, name="sum")
    with pytest.raises(LayerValidationError, match=r"'sum'.*got 3 inputs"):
        net.add(ADD, x, x, x, name="sum")
    with pytest.raises(LayerValidationError, match=r"'sum'.*input 'lhs' is missing"):
        net.add(ADD, None, x, name="sum")


def test_a_declared_shape_that_contradicts_is_rejected(net: Network) -> None:
    x = net.input("x", f32(2))
    with pytest.raises(LayerValidationError, match=r"'r'.*Expected \(2,\); got \(3,\)"):
        net.add(RELU, x, name="r", output=f32(3))


@pytest.mark.parametrize(
    "data",
    [
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.arange(6, dtype=np.float32).reshape(3, 2).T,
        np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2],
        np.float32(3),
        np.zeros((0, 2), np.float32),
        np.zeros((2, 3), np.float32),
    ],
    ids=["big-endian", "transposed", "strided", "scalar", "empty", "native"],
)
def test_any_memory_layout_becomes_a_read_only_native_contiguous_constant(
    net: Network, data: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> None:
    stored = net.constant(data).data
    assert stored is not None
    assert stored.shape == data.shape
    assert stored.dtype == np.dtype(np.float32)
    assert stored.flags.c_contiguous
    assert not stored.flags.writeable
    np.testing.assert_array_equal(stored, data)


@pytest.mark.parametrize(
    ("data", "data_type"),
    [
        (np.float64(1), DataType.FLOAT64),
        (np.int8(1), DataType.SIGNED8),
        (np.uint8(1), DataType.UNSIGNED8),
        (np.uint16(1), DataType.UNSIGNED16),
        (np.bool_(1), DataType.BOOLEAN),
        (np.int64(1), DataType.SIGNED64),
    ],
)
def test_the_data_type_of_a_constant_follows_from_its_dtype(
    net: Network, data: np.generic, data_type: DataType
) -> None:
    assert net.constant(data).info.data_type is data_type


def test_a_quantised_constant_keeps_its_quantisation(net: Network) -> None:
    quantization = Quantization.per_tensor(0.5, 3)
    value = net.constant(
        np.array([1, 2], np.uint8),
        data_type=DataType.QASYMM_U8,
        quantization=quantization,
    )
    assert value.info == TensorInfo((2,), DataType.QASYMM_U8, quantization, True)


@pytest.mark.parametrize(
    ("data", "data_type", "text"),
    [
        (floats(1), DataType.SIGNED32, "constant 'w'.*Expected int32; got float32"),
        (np.array(["2026"], "M8[Y]"), None, "constant 'w'.*a number dtype; got datetime64"),
        (np.array([1j]), None, "a number dtype; got complex128"),
        ([[1], [1, 2]], None, "constant 'w': the elements cannot be made an array"),
    ],
)
def test_elements_that_fit_no_data_type_are_rejected(
    net: Network,
    data: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    data_type: DataType | None,
    text: str,
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        net.constant(data, name="w", data_type=data_type)


def test_a_variable_begins_with_its_zero_point(net: Network) -> None:
    info = TensorInfo((2,), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 7))
    net.output("y", net.variable("v", info))
    (variable,) = net.build().variables
    np.testing.assert_array_equal(variable.initial, [7, 7])
    assert variable.next_value is variable.value


def test_a_variable_can_begin_with_given_elements_of_any_layout(net: Network) -> None:
    net.variable("v", f32(2), np.arange(4, dtype=">f4")[::2])
    net.output("y", net.input("x", f32(1)))
    initial = net.build().variables[0].initial
    assert initial.dtype == np.float32
    np.testing.assert_array_equal(initial, [0, 2])


@pytest.mark.parametrize(
    ("initial", "text"),
    [
        (floats(1, 2, 3), r"variable 'v'.*float32 \(2,\); got float32 \(3,\)"),
        (np.zeros(2), r"variable 'v'.*float32 \(2,\); got float64 \(2,\)"),
    ],
)
def test_initial_elements_that_do_not_fit_are_rejected(
    net: Network, initial: np.ndarray[tuple[int, ...], np.dtype[np.float64]], text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        net.variable("v", f32(2), initial)


def test_assigning_says_what_the_next_execution_reads(net: Network) -> None:
    x = net.input("x", f32(2))
    state = net.variable("v", f32(2))
    total = net.add(ADD, x, state)
    net.assign(state, total)
    net.output("y", total)
    graph = net.build()
    assert graph.variables[0].next_value is total
    assert graph.sources == (x, state)
    assert graph.results == (total, total)


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (f32(3), r"FLOAT32 \(2,\); got FLOAT32 \(3,\)"),
        (i32(2), r"FLOAT32 \(2,\); got SIGNED32 \(2,\)"),
        (
            TensorInfo((2,), DataType.FLOAT32, Quantization.per_tensor(2.0)),
            "got .*scale 2, zero point 0",
        ),
    ],
)
def test_a_variable_is_assigned_only_what_fits_it(
    net: Network, info: TensorInfo, text: str
) -> None:
    state = net.variable("v", f32(2))
    with pytest.raises(InvalidArgumentError, match="variable 'v'.*" + text):
        net.assign(state, net.input("x", info))


def test_a_variable_may_be_assigned_an_open_shape(net: Network) -> None:
    state = net.variable("v", f32(2))
    x = net.input("x", f32(None))
    net.assign(state, x)
    net.output("y", x)
    assert net.build().variables[0].next_value is x


def test_only_variables_are_assigned_to(net: Network) -> None:
    x = net.input("x", f32(2))
    with pytest.raises(GraphValidationError, match=r"not a variable.*'x'"):
        net.assign(x, x)


def test_open_dimensions_stay_open_through_layers(net: Network) -> None:
    x = net.input("x", f32(None, 3), default_shape=(2, 3))
    y = net.add(RELU, x)
    net.output("y", y)
    assert y.info.shape == (None, 3)
    assert net.build().default_shapes == ((2, 3),)
    assert not net.build().is_fully_shaped


def test_a_default_shape_has_to_fit(net: Network) -> None:
    text = r"input 'x': the shape does not match. Expected \(\?, 3\); got \(2, 4\)"
    with pytest.raises(InvalidArgumentError, match=text):
        net.input("x", f32(None, 3), default_shape=(2, 4))


def test_a_quantised_output_takes_the_inputs_quantisation_or_the_declared_one(
    net: Network,
) -> None:
    info = TensorInfo((2,), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 3))
    other = TensorInfo(None, DataType.QASYMM_U8, Quantization.per_tensor(1.0, 4))
    x = net.input("x", info)
    assert net.add(RELU, x).info == info
    assert net.add(RELU, x, output=other).info == other.with_shape((2,))


def test_a_quantised_output_whose_quantisation_is_unknown_is_rejected(net: Network) -> None:
    x = net.input("x", f32(2))
    with pytest.raises(LayerValidationError, match=r"'q'.*needs its scale and zero point"):
        net.add(ops.Quantize(), x, name="q")


def test_check_shape_fits_names_the_input_and_what_can_be_chosen() -> None:
    check_shape_fits("x", (None, 2), (5, 2))
    check_shape_fits("x", None, (5, 2))
    with pytest.raises(InvalidArgumentError, match=r"input 'x'.*\(\?, 2\); got \(5,\).*\?"):
        check_shape_fits("x", (None, 2), (5,))


def test_declared_shapes_may_differ_in_dimensions_of_one_where_that_is_allowed() -> None:
    net = Network(allow_expanded_dims=True)
    x = net.input("x", f32(2, 3))
    y = net.add(RELU, x, name="clamp", output=f32(1, 2, 1, 3))
    assert y.info.shape == (1, 2, 1, 3)
    net.output("y", y)
    first, second = net.build().layers
    assert (first.output.info.shape, second.operation) == ((2, 3), ops.Reshape((1, 2, 1, 3)))
    assert second.name == "Reshape_for:clamp-0"


@pytest.mark.parametrize("shape", [(3, 2), (2, 4), (6,)])
def test_other_differences_stay_errors(shape: tuple[int, ...]) -> None:
    net = Network(allow_expanded_dims=True)
    with pytest.raises(LayerValidationError, match="the declared output shape does not match"):
        net.add(RELU, net.input("x", f32(2, 3)), output=f32(*shape))


@pytest.mark.parametrize(
    ("data_type", "quantization", "message"),
    [
        (DataType.QASYMM_S8, (0.5, 128), "zero point is out of range.* -128 to 127; got 128 of"),
        (DataType.QASYMM_U8, (0.5, -1), "zero point is out of range.* 0 to 255; got -1 of"),
        (DataType.QSYMM_S16, (0.5, 1 << 15), "range.*-32768 to 32767; got 32768 of QSYMM_S16"),
        (DataType.SIGNED32, (0.5, 1 << 31), "range.*got 2147483648 of SIGNED32"),
        (DataType.QASYMM_S8, None, "the type QASYMM_S8 needs a scale"),
    ],
)
def test_quantisation_that_no_stored_integer_has_is_rejected_with_the_tensors_name(
    net: Network,
    data_type: DataType,
    quantization: tuple[float, int] | None,
    message: str,
) -> None:
    of_tensor = None if quantization is None else Quantization.per_tensor(*quantization)
    info = TensorInfo((2,), data_type, of_tensor)
    with pytest.raises(InvalidArgumentError, match=f"^tensor 'x': .*{message}"):
        net.input("x", info)
    with pytest.raises(InvalidArgumentError, match=f"^tensor 'w': .*{message}"):
        net.constant(
            np.zeros(2, data_type.dtype), name="w", data_type=data_type, quantization=of_tensor
        )
    with pytest.raises(InvalidArgumentError, match=f"^tensor 'v': .*{message}"):
        net.variable("v", info, np.zeros(2, data_type.dtype))


def test_symmetric_scales_along_an_axis_have_zero_points_of_zero(net: Network) -> None:
    info = TensorInfo((2,), DataType.QSYMM_S8, Quantization((0.5, 0.5), (0, 1), 0))
    with pytest.raises(InvalidArgumentError, match="Expected 0, as scales run along an axis"):
        net.input("x", info)

"""Layers of .armnn files compute what Arm NN says of them; expected values are worked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import armpy
from armpy import DataType
from armpy.errors import ParserError
from armpy.ops.operation import Array
from armpy_compat.armnn_format import read_bindings
from armpy_compat.armnn_format.reading import looks_like_armnn

from .armnn_networks import (
    NEW,
    OLD_FILES,
    OneLayer,
    stored,
    tensor,
)

OLD = {file.kind: file for file in OLD_FILES}


def run(file: OneLayer, *arrays: Array) -> list[Array]:
    """The outputs of a file on CpuRef."""
    with armpy.load(file.data(), front_end="armnn", backends=["CpuRef"]) as model:
        names = [value.name for value in model.inputs]
        return list(model.run(dict(zip(names, arrays, strict=True))).values())


def floats(*values: float, shape: Sequence[int] | None = None) -> Array:
    return np.array(values, np.float32).reshape(shape or (len(values),))


@pytest.mark.parametrize(
    ("kind", "inputs", "expected"),
    [
        ("Equal", (floats(1, 2), floats(1, 3)), np.array([True, False])),
        ("Greater", (floats(1, 4), floats(1, 3)), np.array([False, True])),
        ("Rsqrt", (floats(4, 16),), floats(0.5, 0.25)),
        (
            "Merger",
            (floats(1, 2, shape=(1, 2)), floats(3, 4, 5, 6, shape=(2, 2))),
            floats(1, 2, 3, 4, 5, 6, shape=(3, 2)),
        ),
        ("FullyConnected", (floats(1, 10, shape=(1, 2)),), floats(30, 41, 52, shape=(1, 3))),
        (
            "BatchNormalization",
            (floats(5, 6, shape=(1, 2, 1, 1)),),
            floats(4, 5, shape=(1, 2, 1, 1)),
        ),
    ],
)
def test_layers_of_old_files(kind: str, inputs: tuple[Array, ...], expected: Array) -> None:
    (result,) = run(OLD[kind], *inputs)
    np.testing.assert_array_equal(result, expected)


def test_convolution_weights_of_channels_first_are_o_i_h_w() -> None:
    image = np.arange(18, dtype=np.float32).reshape(1, 2, 3, 3)
    (result,) = run(OLD["Convolution2d"], image)
    # At (0, 0): 0*0 + 1*1 + 2*3 + 3*4 of the first channel, 4*9 + 5*10 + 6*12 + 7*13 of the second.
    assert result[0, 0, 0, 0] == 19 + 249 + 0.5


def test_depthwise_weights_of_old_files_are_m_i_h_w() -> None:
    image = np.zeros((1, 3, 3, 2), np.float32)
    image[0, 0, 0] = 1, 10
    (result,) = run(OLD["DepthwiseConvolution2d"], image)
    # Element (0, 0) of the filter of each (input, multiplier): weights[m, i, 0, 0] = 8 m + 4 i.
    np.testing.assert_array_equal(result[0, 0, 0], [0, 8, 40, 120])


def test_depthwise_weights_of_new_files_are_1_h_w_o() -> None:
    weights = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    file = OneLayer(
        "DepthwiseConvolution2d",
        [tensor([1, 2, 2, 2]), tensor([1, 2, 2, 2])],
        [tensor([1, 1, 1, 2])],
        {"strideX": 1, "strideY": 1, "dataLayout": "NHWC"},
        versions=NEW,
        constants={1: stored(weights)},
    )
    (result,) = run(file, np.ones((1, 2, 2, 2), np.float32))
    np.testing.assert_array_equal(result.reshape(-1), [0 + 2 + 4 + 6, 1 + 3 + 5 + 7])


@pytest.mark.parametrize("versions", [None, NEW])
def test_binding_ids_are_read_in_both_schemes(versions: Mapping[str, int] | None) -> None:
    file = OneLayer("Addition", [tensor([2]), tensor([2])], [tensor([2])], versions=versions)
    bindings = read_bindings(file.data())
    assert [(binding.name, binding.binding_id) for binding in bindings.inputs] == [
        ("in0", 70),
        ("in1", 71),
    ]
    assert [(binding.name, binding.binding_id) for binding in bindings.outputs] == [("out0", 90)]
    assert bindings.outputs[0].info == armpy.TensorInfo((2,), DataType.FLOAT32)


def pooling(method: str, kind: str = "Average", rounding: str = "Floor") -> OneLayer:
    size = 2 if rounding == "Floor" else 3
    return OneLayer(
        "Pooling2d",
        [tensor([1, 1, 4, 4])],
        [tensor([1, 1, size, size])],
        {
            **{"poolType": kind, "padLeft": 1, "padTop": 1, "poolWidth": 2, "poolHeight": 2},
            **{"strideX": 2, "strideY": 2, "outputShapeRounding": rounding},
            **{"paddingMethod": method, "dataLayout": "NCHW"},
        },
    )


IMAGE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)


@pytest.mark.parametrize(
    ("method", "kind", "corner", "edge"),
    [
        ("Exclude", "Average", 1, 2.5),
        ("IgnoreValue", "Average", 0.25, 1.25),
        ("IgnoreValue", "Max", 1, 3),
        ("Exclude", "L2", 1, np.sqrt(6.5)),
        ("IgnoreValue", "L2", 0.5, np.sqrt(3.25)),
    ],
)
def test_padding_counts_for_means_as_the_method_says(
    method: str, kind: str, corner: float, edge: float
) -> None:
    (result,) = run(pooling(method, kind), IMAGE)
    np.testing.assert_allclose(result[0, 0, 0], [corner, edge], rtol=1e-6)


@pytest.mark.parametrize(("method", "last"), [("Exclude", 16), ("IgnoreValue", 16)])
def test_windows_that_begin_inside_are_added_where_sizes_round_up(method: str, last: float) -> None:
    (result,) = run(pooling(method, rounding="Ceiling"), IMAGE)
    assert result.shape == (1, 1, 3, 3)
    assert result[0, 0, 2, 2] == last


def test_the_padding_of_quantised_tensors_is_a_stored_number() -> None:
    scaled = {"quantizationScale": 0.5, "quantizationOffset": 10}
    file = OneLayer(
        "Pad",
        [tensor([1], "QAsymmU8", **scaled)],
        [tensor([3], "QAsymmU8", **scaled)],
        {"padList": [1, 1], "padValue": 7.0},
    )
    (result,) = run(file, np.array([100], np.uint8))
    np.testing.assert_array_equal(result, [7, 100, 7])


def test_windows_of_a_splitter_need_not_follow_each_other() -> None:
    views = {
        "origins": {
            "numViews": 2,
            "numDimensions": 2,
            "viewOrigins": [{"data": [0, 1]}, {"data": [1, 0]}],
        },
        "viewSizes": [{"data": [2, 1]}, {"data": [1, 3]}],
    }
    file = OneLayer("Splitter", [tensor([2, 3])], [tensor([2, 1]), tensor([1, 3])], views)
    first, second = run(file, np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(first, [[1], [4]])
    np.testing.assert_array_equal(second, [[3, 4, 5]])


def test_inputs_of_concat_are_in_the_order_of_their_origins() -> None:
    origins = {
        "concatAxis": 0,
        "numViews": 2,
        "numDimensions": 1,
        "viewOrigins": [{"data": [1]}, {"data": [0]}],
    }
    file = OneLayer("Concat", [tensor([2]), tensor([1])], [tensor([3])], origins)
    (result,) = run(file, floats(2, 3), floats(1))
    np.testing.assert_array_equal(result, [1, 2, 3])


def test_an_input_slot_can_override_the_shape() -> None:
    overridden = {"isOverridden": True, "overriddenTensorInfo": tensor([3, 2])}
    file = OneLayer(
        "Transpose",
        [tensor([6])],
        [tensor([2, 3])],
        {"dimMappings": [1, 0]},
        slots={0: overridden},
    )
    (result,) = run(file, floats(0, 1, 2, 3, 4, 5))
    np.testing.assert_array_equal(result, [[0, 2, 4], [1, 3, 5]])


def test_data_movement_reads_stored_elements_with_the_declared_quantisation() -> None:
    file = OneLayer(
        "Reshape",
        [tensor([2], "QAsymmU8", quantizationScale=0.5)],
        [tensor([2, 1], "QAsymmU8", quantizationScale=2.0)],
        {"targetShape": [2, 1]},
    )
    with armpy.load(file.data(), front_end="armnn", backends=["CpuRef"]) as model:
        (result,) = model.run({"in0": np.array([4, 8], np.uint8)}).values()
        assert model.outputs[0].info.scale == 2.0
    np.testing.assert_array_equal(result, [[4], [8]])


def test_matrices_with_channels_last_are_multiplied_along_the_spatial_axes() -> None:
    layouts = {"dataLayoutX": "NHWC", "dataLayoutY": "NHWC"}
    file = OneLayer(
        "BatchMatMul", [tensor([1, 2, 3, 2]), tensor([1, 3, 2, 2])], [tensor([1, 2, 2, 2])], layouts
    )
    x = np.arange(12, dtype=np.float32).reshape(1, 2, 3, 2)
    y = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    (result,) = run(file, x, y)
    np.testing.assert_array_equal(result, np.einsum("nhkc,nkwc->nhwc", x, y))


def test_quantised_comparison_compares_real_numbers() -> None:
    file = OneLayer(
        "Comparison",
        [
            tensor([2], "QAsymmU8", quantizationScale=0.5),
            tensor([2], "QAsymmU8", quantizationScale=1.0),
        ],
        [tensor([2], "Boolean")],
        {"operation": "Equal"},
    )
    (result,) = run(file, np.array([4, 5], np.uint8), np.array([2, 2], np.uint8))
    np.testing.assert_array_equal(result, [True, False])


def test_a_file_without_the_identifier_is_recognised_by_its_structure() -> None:
    data = OLD["Rsqrt"].data(identifier=b"\0\0\0\0")
    assert looks_like_armnn(memoryview(data))
    with armpy.load(data, backends=["CpuRef"]) as model:
        (result,) = model.run({"in0": floats(1, 4)}).values()
    np.testing.assert_array_equal(result, [1, 0.5])


@pytest.mark.parametrize("data", [b"", b"ARMN", b"\x08\x00\x00\x00TFL3" + bytes(64), bytes(64)])
def test_other_bytes_are_not_recognised(data: bytes) -> None:
    assert not looks_like_armnn(memoryview(data))


def test_a_layer_that_reads_itself_is_refused() -> None:
    cycle = {"connection": {"sourceLayerIndex": 12, "outputSlotIndex": 0}}
    file = OneLayer("Addition", [tensor([2]), tensor([2])], [tensor([2])], slots={1: cycle})
    with pytest.raises(ParserError, match=r"layer 3 Addition 'main': the layers form a cycle"):
        run(file, floats(1, 2))


def test_a_shape_that_does_not_follow_is_refused() -> None:
    file = OneLayer("Abs", [tensor([2, 3])], [tensor([3, 2])])
    with pytest.raises(ParserError, match=r"'main': .*Expected \(2, 3\); got \(3, 2\)"):
        run(file, np.ones((2, 3), np.float32))


def test_elements_that_do_not_fit_their_description_are_refused() -> None:
    weights = {**stored(np.array([1, 2], np.float32)), "info": tensor([3])}
    file = OneLayer(
        "Addition", [tensor([3]), tensor([3])], [tensor([3])], versions=NEW, constants={1: weights}
    )
    with pytest.raises(ParserError, match=r"Constant 'in1'.*Expected 3 of 4 bytes; got 2 of 4"):
        run(file, floats(1, 2, 3))


def test_floats_have_no_scales_whatever_the_file_says() -> None:
    origins = {"numViews": 1, "numDimensions": 1, "viewOrigins": [{"data": [0]}]}
    file = OneLayer("Concat", [tensor([2], quantizationScales=[0.5, 0.25])], [tensor([2])], origins)
    (result,) = run(file, floats(1, 2))
    np.testing.assert_array_equal(result, [1, 2])


@pytest.mark.parametrize(
    ("number", "expected"), [(0, 4), (1, 0.5), (2, 2), (3, np.exp(4)), (4, -4), (6, np.log(4))]
)
def test_unary_functions_have_the_numbers_of_the_format(number: int, expected: float) -> None:
    descriptor = {"operation": number}
    (result,) = run(
        OneLayer("ElementwiseUnary", [tensor([1])], [tensor([1])], descriptor), floats(4)
    )
    np.testing.assert_allclose(result, [expected], rtol=1e-6)


def test_the_size_of_a_neighbourhood_is_that_of_both_sides() -> None:
    descriptor = {"normSize": 3, "alpha": 1.0, "beta": 1.0, "k": 0.0, "dataLayout": "NHWC"}
    file = OneLayer("Normalization", [tensor([1, 1, 1, 4])], [tensor([1, 1, 1, 4])], descriptor)
    (result,) = run(file, np.ones((1, 1, 1, 4), np.float32))
    np.testing.assert_allclose(result.reshape(-1), [1 / 2, 1 / 3, 1 / 3, 1 / 2], rtol=1e-6)

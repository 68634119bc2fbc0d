"""MediaPipe's custom operators of .tflite files: worked by hand, and beside LiteRT's XNNPACK."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flatbuffers import flexbuffers

import armpy
from armpy.errors import ArmpyError
from armpy.graph import Value
from armpy.plugins.hooks import CustomOperator, OperatorParts, hookimpl

from .custom_files import custom_file

Floats = npt.NDArray[np.float32]

SAME, VALID = 1, 2
RELU6 = 3


def run(file: bytes, *arrays: Floats, backend: str = "CpuRef") -> tuple[Floats, ...]:
    """All outputs of a file."""
    with armpy.load(file, backends=[backend, "CpuRef"]) as model:
        names = [spec.name for spec in model.inputs]
        return tuple(model.run(dict(zip(names, arrays, strict=True))).values())


def litert(file: bytes, *arrays: Floats) -> tuple[Floats, ...]:
    """All outputs as LiteRT gives them, whose XNNPACK has some of these operators."""
    package = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = package.Interpreter(model_content=file, num_threads=1)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    details = interpreter.get_output_details()
    return tuple(interpreter.get_tensor(detail["index"]) for detail in details)


def flexible(**options: object) -> bytes:
    """A map as FlexBuffers stores it; lists are typed vectors."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in sorted(options.items()):
            if isinstance(value, list):
                builder.TypedVectorFromElements(name, value)
            else:
                builder.Key(name)
                builder.Add(value)
    return bytes(builder.Finish())


def pool_options(padding: int, stride: int, window: int, activation: int = 0) -> bytes:
    """``TfLitePoolParams``."""
    return struct.pack("<6i", padding, stride, stride, window, window, activation) + bytes(16)


def _random(*shape: int) -> Floats:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def test_a_transposed_convolution_spreads_each_element_and_adds_the_bias() -> None:
    weights = np.arange(1, 5, dtype=np.float32).reshape(1, 2, 2, 1)
    file = custom_file(
        "Convolution2DTransposeBias",
        [(1, 1, 2, 1), weights, np.array([100], np.float32)],
        [(1, 2, 4, 1)],
        struct.pack("<3i", VALID, 2, 2),
    )
    (output,) = run(file, np.array([1, 10], np.float32).reshape(1, 1, 2, 1))
    assert output.reshape(2, 4).tolist() == [[101, 102, 110, 120], [103, 104, 130, 140]]


@pytest.mark.parametrize(
    ("padding", "stride", "window"), [*itertools.product((SAME, VALID), (1, 2, 3), (2, 3, 4))]
)
def test_a_transposed_convolution_has_the_size_of_the_documentation(
    padding: int, stride: int, window: int
) -> None:
    """MediaPipe's: stride * (size - 1) + window, less what SAME crops."""
    size, bias = 5, _random(3)
    less = max(0, window - (size - 1) % stride - 1) if padding == SAME else 0
    width = stride * (size - 1) + window - less
    x, weights = _random(1, size, size, 2), _random(3, window, window, 2)
    file = custom_file(
        "Convolution2DTransposeBias",
        [(1, size, size, 2), weights, bias],
        [(1, width, width, 3)],
        struct.pack("<3i", padding, stride, stride),
    )
    whole = np.zeros((stride * (size - 1) + window,) * 2 + (3,), np.float32)
    for row, column in itertools.product(range(size), repeat=2):
        spread = np.einsum("i,ohwi->hwo", x[0, row, column], weights)
        top, left = row * stride, column * stride
        whole[top : top + window, left : left + window] += spread
    begin = less // 2
    expected = whole[begin : begin + width, begin : begin + width] + bias
    for backend in ("CpuRef", "NumbaAcc"):
        (output,) = run(file, x, backend=backend)
        np.testing.assert_allclose(output[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("stride", "window"), [(1, 2), (2, 3), (3, 2), (3, 3)])
def test_places_of_overlapping_windows_count_from_the_windows_corner(
    stride: int, window: int
) -> None:
    """With SAME, also where a window begins in the padding."""
    size = 5
    outputs = math.ceil(size / stride)
    begin = max(0, (outputs - 1) * stride + window - size) // 2
    x = _random(2, size, size, 3)
    shape = (2, outputs, outputs, 3)
    file = custom_file(
        "MaxPoolingWithArgmax2D", [x.shape], [shape, shape], pool_options(SAME, stride, window)
    )
    values, places = run(file, x)
    for n, row, column, c in np.ndindex(shape):
        candidates = {
            (x[n, y, z, c], fy * window + fx)
            for fy, fx in itertools.product(range(window), repeat=2)
            if 0 <= (y := row * stride - begin + fy) < size
            and 0 <= (z := column * stride - begin + fx) < size
        }
        value, place = max(candidates)
        assert values[n, row, column, c] == value
        assert places[n, row, column, c] == np.float32(place + 0.1)


def test_unpooling_writes_each_element_at_its_place() -> None:
    x = np.array([5, 7], np.float32).reshape(1, 1, 2, 1)
    places = np.array([3.1, 0.1], np.float32).reshape(1, 1, 2, 1)
    file = custom_file(
        "MaxUnpooling2D", [x.shape, x.shape], [(1, 2, 4, 1)], pool_options(VALID, 2, 2)
    )
    (output,) = run(file, x, places)
    assert output.reshape(2, 4).tolist() == [[0, 0, 7, 0], [0, 5, 0, 0]]
    (none,) = run(file, x, np.array([4.1, -1.0], np.float32).reshape(1, 1, 2, 1))
    assert not none.any()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("window", [2, 3])
def test_pooling_and_unpooling_give_what_litert_gives(window: int) -> None:
    x = _random(1, 6, 6, 4)
    pooled = (1, 6 // window, 6 // window, 4)
    pooling = custom_file(
        "MaxPoolingWithArgmax2D", [x.shape], [pooled] * 2, pool_options(VALID, window, window)
    )
    unpooling = custom_file(
        "MaxUnpooling2D", [pooled, pooled], [x.shape], pool_options(VALID, window, window)
    )
    values, places = run(pooling, x, backend="NumbaAcc")
    np.testing.assert_array_equal(values, litert(pooling, x)[0])
    (output,) = run(unpooling, values, places, backend="NumbaAcc")
    np.testing.assert_array_equal(output.max(), values.max())
    assert np.count_nonzero(output) == np.count_nonzero(values)


IDENTITY = np.eye(4, dtype=np.float32)[None]


def matrix_of(rows: list[list[float]]) -> Floats:
    """A transformation matrix with these factors of x, y and 1."""
    matrix = IDENTITY.copy()
    for number, (x, y, shift) in enumerate(rows):
        matrix[0, number, [0, 1, 3]] = x, y, shift
    return matrix


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (IDENTITY, [[0, 1, 2], [10, 11, 12], [20, 21, 22]]),
        (matrix_of([[1, 0, 1], [0, 1, 0]]), [[1, 2, 0], [11, 12, 0], [21, 22, 0]]),
        (matrix_of([[1, 0, 0.5], [0, 1, 0]]), [[0.5, 1.5, 0], [10.5, 11.5, 0], [20.5, 21.5, 0]]),
        (matrix_of([[0, 1, 0], [1, 0, 0]]), [[0, 10, 20], [1, 11, 21], [2, 12, 22]]),
        # Half the size about the corner: centres at 0.25, 0.75, 1.25 are pixels -0.25, 0.25, 0.75.
        (matrix_of([[0.5, 0, 0], [0, 0.5, 0]]), [[0, 0, 0], [0, 2.75, 3.25], [0, 7.75, 8.25]]),
    ],
)
def test_an_image_is_sampled_where_the_matrix_leads_the_centres_of_pixels(
    matrix: Floats, expected: list[list[float]]
) -> None:
    x = np.array([[0, 1, 2], [10, 11, 12], [20, 21, 22]], np.float32).reshape(1, 3, 3, 1)
    file = custom_file(
        "TransformTensorBilinear",
        [x.shape, (1, 4, 4)],
        [(1, 3, 3, 1)],
        flexible(output_height=3, output_width=3),
    )
    for backend in ("CpuRef", "NumbaAcc"):
        (output,) = run(file, x, matrix, backend=backend)
        np.testing.assert_allclose(output.reshape(3, 3), expected, atol=1e-6)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_landmarks_are_transformed_in_the_plane_alone(dimensions: int) -> None:
    x = np.array([[1, 2, 9], [-1, 0, 8]], np.float32)[None, :, :dimensions]
    file = custom_file("TransformLandmarks", [x.shape, (1, 4, 4)], [x.shape], b"")
    (output,) = run(file, x, matrix_of([[2, 0, 10], [0, -1, 1]]))
    expected = np.array([[12, -1, 9], [8, 1, 8]], np.float32)[None, :, :dimensions]
    np.testing.assert_array_equal(output, expected)


def crop_file(count: int, **changes: Any) -> bytes:  # Any: an option's value
    """A file that crops to all landmarks upright, into 8 x 4 pixels."""
    options = {
        "left_rotation_idx": 0,
        "right_rotation_idx": 1,
        "output_width": 8,
        "output_height": 4,
        "scale_x": 1.0,
        "scale_y": 1.0,
        "subset_idxs": list(range(count)),
        **changes,
    }
    set_options = {name: value for name, value in options.items() if value is not None}
    shapes = [(1, count, 3)]
    return custom_file("Landmarks2TransformMatrix", shapes, [(1, 4, 4)], flexible(**set_options))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("angle", [0.0, 0.5, -2.0])
def test_the_crop_is_led_to_the_box_around_the_turned_landmarks(angle: float) -> None:
    """Corners of a box of 4 x 2 about (10, 20), turned: the crop's corners come to lie on them."""
    corners = np.array([[-2, -1], [2, -1], [-2, 1], [2, 1]], np.float64)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    landmarks = np.zeros((1, 4, 3), np.float32)
    landmarks[0, :, :2] = corners @ turn.T + [10, 20]
    for backend in ("CpuRef", "NumbaAcc"):
        (matrix,) = run(crop_file(4), landmarks, backend=backend)
        pixels = np.array([[0, 0, 0, 1], [8, 0, 0, 1], [0, 4, 0, 1], [8, 4, 0, 1]])
        np.testing.assert_allclose((pixels @ matrix[0].T)[:, :2], landmarks[0, :, :2], atol=1e-4)
        np.testing.assert_array_equal(matrix[0, 2:], np.eye(4)[2:])


def test_the_crop_is_scaled_about_its_centre_and_turned_to_the_wanted_angle() -> None:
    landmarks = np.array([[[8, 20, 5], [12, 20, 5], [8, 22, 5]]], np.float32)
    (plain,) = run(crop_file(3, scale_x=2.0, scale_y=0.5), landmarks)
    centre = np.array([4, 2, 0, 1])
    np.testing.assert_allclose((plain[0] @ centre)[:2], (10.0, 21.0), atol=1e-5)
    np.testing.assert_allclose(plain[0, :2, :2], [[1.0, 0.0], [0.0, 0.25]], atol=1e-6)
    (turned,) = run(crop_file(3, target_rotation_radians=math.pi / 2), landmarks)
    np.testing.assert_allclose((turned[0] @ centre)[:2], (10.0, 21.0), atol=1e-5)
    # The line lies along y in the crop: its y leads back to x.
    np.testing.assert_allclose(turned[0, :2, :2], [[0.0, 1.0], [-0.25, 0.0]], atol=1e-6)


ONE = (1, 1, 1, 1)

WRONG = {
    "no options": (custom_file("MaxUnpooling2D", [(1, 1, 1, 1)] * 2, [(1, 2, 2, 1)], b""), "short"),
    "padding": (
        custom_file("MaxUnpooling2D", [(1, 1, 1, 1)] * 2, [(1, 2, 2, 1)], pool_options(7, 2, 2)),
        "padding is not known",
    ),
    "overlap": (
        custom_file("MaxUnpooling2D", [(1, 1, 1, 1)] * 2, [(1, 2, 2, 1)], pool_options(2, 1, 2)),
        "overlap or leave gaps",
    ),
    "huge window": (
        custom_file(
            "MaxPoolingWithArgmax2D",
            [(1, 1, 1, 1)],
            [(1, 1, 1, 1)] * 2,
            pool_options(1, 1, 1 << 20),
        ),
        "window is too large",
    ),
    "stride": (
        custom_file("MaxPoolingWithArgmax2D", [ONE], [ONE] * 2, pool_options(1, 0, 1)),
        "too small",
    ),
    "landmark": (crop_file(3, left_rotation_idx=3), "left_rotation_idx.*0 to 2; got 3"),
    "subset": (crop_file(3, subset_idxs=[0, 7]), "subset_idxs.*0 to 2; got 7"),
    "no subset": (crop_file(3, subset_idxs=None), "subset_idxs' is missing"),
    "no scale": (crop_file(3, scale_x=None), "scale_x.*finite"),
    "size": (
        custom_file(
            "TransformTensorBilinear",
            [(1, 3, 3, 1), (1, 4, 4)],
            [(1, 3, 3, 1)],
            flexible(output_height=3),
        ),
        "output_width.*cannot be used",
    ),
    "matrix": (
        custom_file("TransformLandmarks", [(1, 2, 3), (1, 3, 3)], [(1, 2, 3)], b""),
        "matrix has the wrong shape",
    ),
    "version 1": (
        custom_file("TransformLandmarks", [(1, 1, 1, 6), (1, 4, 4)], [(1, 1, 1, 6)], b""),
        "landmarks have the wrong shape",
    ),
}


@pytest.mark.parametrize(("file", "text"), WRONG.values(), ids=WRONG)
def test_options_and_shapes_are_checked(file: bytes, text: str) -> None:
    with pytest.raises(ArmpyError, match=text):
        armpy.load(file, backends=["CpuRef"])


def _unchanged(parts: OperatorParts) -> Value:
    return parts.value(0)


class _Vendor:
    """A plugin with an operator of the same name."""

    @hookimpl
    def armpy_register_custom_operators(self) -> list[CustomOperator]:
        return [CustomOperator("TransformLandmarks", _unchanged)]


def test_a_plugin_takes_the_place_of_an_operator_that_armpy_brings() -> None:
    x = np.ones((1, 2, 3), np.float32)
    file = custom_file("TransformLandmarks", [x.shape, (1, 4, 4)], [x.shape], b"")
    with armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])) as runtime:
        runtime.registry.plugins.register("vendor", _Vendor())
        with armpy.load(file, runtime=runtime) as model:
            outputs = model.run({"x0": x, "x1": 3 * IDENTITY})
        assert runtime.registry.plugins.problems == ()
    np.testing.assert_array_equal(outputs["y0"], x)

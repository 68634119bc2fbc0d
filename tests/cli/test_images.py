"""Pictures and labels for models."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from armpy.cli.pictures.image_layout import ImageLayout, image_layout, sized_shapes
from armpy.cli.pictures.images import Array, Pixels, image_input, open_image, resized_pixels
from armpy.cli.pictures.labels import Labels, parse_labels, read_labels
from armpy.cli.pictures.normalization import Normalization, normalized
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataLayout, DataType
from armpy_testing.systems import NEEDS_NAMED_PIPES

Image = pytest.importorskip("PIL.Image")

NHWC, NCHW = DataLayout.NHWC, DataLayout.NCHW


def quantized(data_type: DataType, scale: float, zero_point: int) -> TensorInfo:
    return TensorInfo((1, 1, 3, 1), data_type, Quantization.per_tensor(scale, zero_point))


def pixels(*values: int) -> Pixels:
    return np.array(values, np.uint8).reshape(1, -1, 1)


def flat(array: Array) -> list[float]:
    return list(array.reshape(-1).tolist())


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 224, 320, 3), ImageLayout(224, 320, 3, NHWC)),
        ((None, 28, 28, 1), ImageLayout(28, 28, 1, NHWC)),
        ((1, 3, 224, 320), ImageLayout(224, 320, 3, NCHW)),
        ((1, 4, None, None), ImageLayout(None, None, 4, NCHW)),
        ((None, None, None, 3), ImageLayout(None, None, 3, NHWC)),
        ((1, 3, 224, 3), ImageLayout(3, 224, 3, NHWC)),
    ],
)
def test_the_layout_follows_from_the_place_of_the_channels(
    shape: Shape, expected: ImageLayout
) -> None:
    assert image_layout("x", TensorInfo(shape, DataType.FLOAT32)) == expected


@pytest.mark.parametrize(
    "info",
    [
        TensorInfo((1, 640), DataType.FLOAT32),
        TensorInfo((1, 8, 8, 16), DataType.FLOAT32),
        TensorInfo((2, 8, 8, 3), DataType.FLOAT32),
        TensorInfo((1, 8, 8, None), DataType.FLOAT32),
        TensorInfo((1, 8, 8, 3), DataType.BOOLEAN),
        TensorInfo((1, 8, 8, 3), DataType.BFLOAT16),
        TensorInfo(None, DataType.FLOAT32),
    ],
    ids=str,
)
def test_an_input_that_is_no_image_is_rejected(info: TensorInfo) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"input 'x': the input is not an image.*--input"
    ):
        image_layout("x", info)


def test_an_open_size_is_the_user_s_and_else_the_picture_s_own() -> None:
    layout = ImageLayout(None, 20, 3, NHWC)
    assert layout.with_size((10, 20), (1, 2)).shape == (1, 10, 20, 3)
    assert layout.with_size(None, (1, 2)).shape == (1, 1, 20, 3)


def test_a_size_that_the_model_does_not_take_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"--size: .*Expected anyx20; got 10x30"):
        ImageLayout(None, 20, 3, NHWC).with_size((10, 30), (1, 1))


def test_a_shape_needs_a_size() -> None:
    with pytest.raises(InvalidArgumentError, match="the size of the image is not known"):
        _ = ImageLayout(None, 20, 3, NHWC).shape


def test_every_input_of_open_size_gets_the_size() -> None:
    specs = [
        TensorSpec("a", TensorInfo((1, None, None, 3), DataType.FLOAT32)),
        TensorSpec("b", TensorInfo((1, 5), DataType.FLOAT32)),
        TensorSpec("c", TensorInfo((1, 1, None, 7), DataType.FLOAT32)),
    ]
    assert sized_shapes(specs, (6, 7)) == {"a": (1, 6, 7, 3), "c": (1, 1, 6, 7)}
    with pytest.raises(InvalidArgumentError, match="no image input of open size"):
        sized_shapes(specs[1:2], (6, 7))


@pytest.mark.parametrize("scale", [1 / 255, 1 / 128, 1.0])
def test_uint8_holds_the_pixel_itself(scale: float) -> None:
    zero_point = 128 if scale == 1 / 128 else 0
    array, hint = normalized(
        pixels(0, 100, 255), quantized(DataType.QASYMM_U8, scale, zero_point), None
    )
    assert array.dtype == np.uint8
    assert flat(array) == [0, 100, 255]
    assert not hint


@pytest.mark.parametrize(("scale", "zero_point"), [(1 / 255, -128), (2 / 255, -1), (1.0, -128)])
def test_int8_holds_the_pixel_less_128(scale: float, zero_point: int) -> None:
    array, hint = normalized(
        pixels(0, 100, 255), quantized(DataType.QASYMM_S8, scale, zero_point), None
    )
    assert array.dtype == np.int8
    assert flat(array) == [-128, -28, 127]
    assert not hint


def test_plain_integers_hold_the_pixel() -> None:
    for data_type, expected in [
        (DataType.UNSIGNED8, [0, 255]),
        (DataType.SIGNED8, [-128, 127]),
        (DataType.SIGNED32, [0, 255]),
    ]:
        array, hint = normalized(pixels(0, 255), TensorInfo((1, 1, 2, 1), data_type), None)
        assert (array.dtype, flat(array), hint) == (data_type.dtype, expected, "")


def test_floats_are_from_0_to_1_with_a_hint() -> None:
    info = TensorInfo((1, 1, 3, 1), DataType.FLOAT32)
    array, hint = normalized(pixels(0, 51, 255), info, None)
    assert array.dtype == np.float32
    np.testing.assert_allclose(flat(array), [0.0, 0.2, 1.0], rtol=1e-6)
    assert "numbers from 0 to 1" in hint


def test_16_bits_are_from_0_to_1() -> None:
    info = quantized(DataType.QSYMM_S16, 1 / 32767, 0)
    assert flat(normalized(pixels(0, 255), info, None)[0]) == [0, 32767]


def test_a_range_maps_black_and_white() -> None:
    info = TensorInfo((1, 1, 3, 1), DataType.FLOAT32)
    array, hint = normalized(pixels(0, 255), info, Normalization.from_range(-1, 1))
    np.testing.assert_allclose(flat(array), [-1.0, 1.0])
    assert not hint


def test_a_range_is_quantised_where_the_input_is() -> None:
    info = quantized(DataType.QASYMM_U8, 1 / 128, 128)
    array, _ = normalized(pixels(0, 255), info, Normalization.from_range(0, 0.5))
    assert flat(array) == [128, 192]


def test_a_range_is_rounded_and_saturated_for_plain_integers() -> None:
    info = TensorInfo((1, 1, 2, 1), DataType.UNSIGNED8)
    array, _ = normalized(pixels(0, 255), info, Normalization.from_range(-5, 400))
    assert flat(array) == [0, 255]


def test_mean_and_deviation_are_per_channel_in_pixels() -> None:
    normalization = Normalization.from_mean((10, 20, 30), (2, 4, 5))
    real = normalization.apply(np.array([[[12, 16, 30]]], np.uint8))
    np.testing.assert_allclose(real, [[[1.0, -1.0, 0.0]]])


def test_one_mean_goes_with_several_deviations() -> None:
    real = Normalization.from_mean((10,), (1, 2)).apply(np.array([[[12, 14]]], np.uint8))
    np.testing.assert_allclose(real, [[[2.0, 2.0]]])


def test_a_mean_of_another_number_of_channels_is_rejected() -> None:
    normalization = Normalization.from_mean((1, 2), (1,))
    with pytest.raises(InvalidArgumentError, match="Expected 1 or 3 numbers; got 2"):
        normalization.apply(np.zeros((1, 1, 3), np.uint8))
    with pytest.raises(InvalidArgumentError, match="Expected 1 number; got 2"):
        normalization.apply(np.zeros((1, 1, 1), np.uint8))
    with pytest.raises(InvalidArgumentError, match="Got 2 and 3 numbers"):
        Normalization.from_mean((1, 2), (1, 2, 3))


def test_a_deviation_of_0_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="--std: a standard deviation is 0"):
        Normalization.from_mean((1,), (1, 0))


def test_a_picture_becomes_nhwc_or_nchw() -> None:
    picture = Image.new("RGB", (5, 2), (10, 20, 30))
    nhwc, _ = image_input(picture, "x", TensorInfo((1, 2, 5, 3), DataType.UNSIGNED8))
    nchw, _ = image_input(picture, "x", TensorInfo((1, 3, 2, 5), DataType.UNSIGNED8))
    assert nhwc.shape == (1, 2, 5, 3)
    assert nhwc[0, 1, 3].tolist() == [10, 20, 30]
    assert nchw.shape == (1, 3, 2, 5)
    assert nchw[0, :, 1, 3].tolist() == [10, 20, 30]
    assert nchw.flags.c_contiguous


def test_a_colour_picture_becomes_grey_where_there_is_one_channel() -> None:
    picture = Image.new("RGB", (2, 2), (80, 80, 80))
    array, _ = image_input(picture, "x", TensorInfo((1, 2, 2, 1), DataType.UNSIGNED8))
    assert flat(array) == [80] * 4


def test_an_open_size_takes_the_picture_s_own() -> None:
    picture = Image.new("L", (5, 3))
    info = TensorInfo((None, None, None, 1), DataType.UNSIGNED8)
    assert image_input(picture, "x", info)[0].shape == (1, 3, 5, 1)
    assert image_input(picture, "x", info, size=(7, 8))[0].shape == (1, 7, 8, 1)


def half_white() -> object:
    """A picture of 8x4 pixels whose left half is white."""
    array = np.zeros((4, 8), np.uint8)
    array[:, :4] = 255
    return Image.fromarray(array)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("stretch", [[255, 255, 0, 0]] * 4),
        ("crop", [[255, 255, 0, 0]] * 4),
        ("pad", [[0] * 4, [255, 255, 0, 0], [255, 255, 0, 0], [0] * 4]),
    ],
)
def test_proportions_are_kept_by_crop_and_pad(method: str, expected: list[list[int]]) -> None:
    layout = ImageLayout(4, 4, 1, NHWC)
    resized = resized_pixels(half_white(), layout, method)[..., 0]  # type: ignore[arg-type]
    # The filter mixes pixels next to the edge between white and black.
    assert np.abs(resized.astype(int) - expected)[:, [0, 3]].max() <= 32


def test_a_reduction_averages() -> None:
    checks = np.indices((64, 64)).sum(axis=0) % 2 * 255
    picture = Image.fromarray(checks.astype(np.uint8))
    resized = resized_pixels(picture, ImageLayout(4, 4, 1, NHWC), "stretch")
    assert np.abs(resized.astype(int) - 127).max() <= 2


def test_16_bit_grey_keeps_its_high_bits(tmp_path: Path) -> None:
    path = tmp_path / "deep.png"
    Image.fromarray(np.array([[0x0000, 0x80FF, 0xFFFF]], np.uint16)).save(path)
    assert np.asarray(open_image(str(path)).convert("L")).tolist() == [[0, 128, 255]]


def test_a_photograph_is_turned_as_its_exif_data_say(tmp_path: Path) -> None:
    picture = Image.new("RGB", (4, 2))
    exif = picture.getexif()
    exif[0x0112] = 6  # orientation: a quarter turn
    picture.save(tmp_path / "turned.jpg", exif=exif)
    assert open_image(str(tmp_path / "turned.jpg")).size == (2, 4)


def test_a_file_that_is_no_picture_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "text.png"
    path.write_text("hello")
    with pytest.raises(InvalidArgumentError, match=r"text\.png: not a picture"):
        open_image(str(path))


def test_a_damaged_picture_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "cut.png"
    Image.effect_noise((64, 64), 50).save(path)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(InvalidArgumentError, match=r"cut\.png: the picture cannot be read"):
        open_image(str(path))


def test_a_picture_that_unpacks_to_far_too_much_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (30, 30)).save(tmp_path / "bomb.png")
    Image.new("L", (15, 10)).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(InvalidArgumentError, match=r"bomb\.png: the picture cannot be read"):
        open_image(str(tmp_path / "bomb.png"))
    assert open_image(str(tmp_path / "large.png")).size == (15, 10)


@NEEDS_NAMED_PIPES
def test_a_pipe_with_a_picture_s_name_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(InvalidArgumentError, match=r"^[^:]*pipe\.png: not a file with a picture"):
        open_image(str(tmp_path / "pipe.png"))


@pytest.mark.parametrize("high", [1.0, 65535.0])
def test_pixels_of_which_no_number_is_known_to_be_white_are_rejected(
    tmp_path: Path, high: float
) -> None:
    Image.fromarray(np.linspace(0, high, 16, dtype=np.float32).reshape(4, 4)).save(
        tmp_path / "x.tif"
    )
    with pytest.raises(InvalidArgumentError, match=f"which number is white.*0 to {high:g}"):
        open_image(str(tmp_path / "x.tif"))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_wide_pixels_from_0_to_255_are_taken_as_they_are(tmp_path: Path, dtype: str) -> None:
    pixels = np.arange(256).reshape(16, 16).astype(dtype)
    Image.fromarray(pixels).save(tmp_path / "x.tif")
    pixels_read = np.asarray(open_image(str(tmp_path / "x.tif")).convert("L"))
    np.testing.assert_array_equal(pixels_read, pixels)


def test_colours_without_rgb_are_rejected(tmp_path: Path) -> None:
    Image.new("LAB", (4, 4)).save(tmp_path / "x.tif")
    with pytest.raises(InvalidArgumentError, match=r"\(LAB\) cannot be turned into RGB"):
        open_image(str(tmp_path / "x.tif"))


def test_each_line_is_a_label() -> None:
    labels = parse_labels("background\ntench, Tinca tinca\r\ngoldfish\n", "x")
    assert labels.names == {0: "background", 1: "tench, Tinca tinca", 2: "goldfish"}


def test_an_empty_line_between_labels_counts_and_one_at_the_end_does_not() -> None:
    labels = parse_labels("a\n\nc\n\n\n", "x")
    assert labels.count == 3
    assert [labels.name(i) for i in range(3)] == ["a", "", "c"]


@pytest.mark.parametrize("text", ["1 cat\n0 dog", "0: dog\n1: cat\n", "0,dog\n\n1,cat"])
def test_an_index_before_each_label_is_taken(text: str) -> None:
    assert parse_labels(text, "x").names == {0: "dog", 1: "cat"}


def test_numbers_are_names_unless_every_line_has_an_index() -> None:
    assert parse_labels("7\n8", "x").names == {0: "7", 1: "8"}
    assert parse_labels("1 series\nother", "x").names == {0: "1 series", 1: "other"}


def test_an_index_that_comes_twice_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="x: two labels have the same index"):
        parse_labels("1 a\n1 b", "x")


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_rejected(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="x: the label file is empty"):
        parse_labels(text, "x")


def test_fewer_labels_than_classes_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected 3 labels; got 2"):
        Labels({0: "a", 1: "b"}).for_classes(3)


def test_an_additional_background_at_the_beginning_is_left_out() -> None:
    labels = Labels({0: "Background", 1: "tench", 2: "goldfish"})
    assert labels.for_classes(2).names == {0: "tench", 1: "goldfish"}
    assert labels.for_classes(3) is labels


def test_more_labels_than_classes_stay_as_they_are() -> None:
    labels = Labels({0: "a", 1: "b", 2: "c"})
    assert labels.for_classes(2) is labels


def test_a_file_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes(b"\xef\xbb\xbfVogel\nK\xc3\xa4fer\n")
    assert read_labels(str(path)).names == {0: "Vogel", 1: "Käfer"}


def test_a_file_that_is_no_text_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "labels.bin"
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InvalidArgumentError, match=r"labels\.bin: not a text file"):
        read_labels(str(path))


def test_a_file_that_is_too_large_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armpy.cli.pictures.labels._LARGEST_FILE_BYTES", 3)
    path = tmp_path / "labels.txt"
    path.write_text("abcd")
    with pytest.raises(InvalidArgumentError, match="too large for a label file"):
        read_labels(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="nothing: cannot be read: No such file"):
        read_labels(str(tmp_path / "nothing"))

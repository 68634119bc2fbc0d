"""From a picture file to the elements of an image input."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.execution.arrays.conversion import quantize_array
from armpy.tensor import TensorInfo, format_shape
from armpy.types import DataLayout

if TYPE_CHECKING:
    from PIL import Image

Pixels: TypeAlias = npt.NDArray[np.uint8]
Array: TypeAlias = npt.NDArray[np.generic]

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's name for pixels of so many channels."""

_MODES_WITH_RGB = frozenset(
    {"1", "CMYK", "HSV", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "RGBa", "YCbCr"}
)
"""Pillow's modes that it can convert to RGB without loss of range."""

_USUAL_RANGES = ((0.0, 255.0), (0.0, 1.0), (-1.0, 1.0))
RANGE_TOLERANCE = 0.05
"""How far two real ranges may be apart to count as one, relative to their length."""

_PIXEL_TYPES = frozenset({"i", "u", "f"})


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """Layout of an image in a tensor of rank 4, or of rank 3 for a grey one.

    Parameters
    ----------
    height, width : int or None
        None where any size will do.
    channels : {1, 3, 4}
    data_layout : DataLayout
    has_channels : bool
        Whether there is an axis of channels; a grey image may do without.
    """

    height: int | None
    width: int | None
    channels: int
    data_layout: DataLayout
    has_channels: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a tensor with one image.

        Raises
        ------
        InvalidArgumentError
            If the size is not known.
        """
        if self.height is None or self.width is None:
            raise InvalidArgumentError("the size of the image is not known", fix="Give --size HxW")
        if not self.has_channels:
            return (1, self.height, self.width)
        if self.data_layout is DataLayout.NCHW:
            return (1, self.channels, self.height, self.width)
        return (1, self.height, self.width, self.channels)

    def with_size(self, size: tuple[int, int] | None, own: tuple[int, int]) -> ImageLayout:
        """The same with height and width known.

        Parameters
        ----------
        size : tuple of int, optional
            Height and width that the user wants.
        own : tuple of int
            Height and width of the picture, taken where nothing else is said.

        Raises
        ------
        InvalidArgumentError
            If the model's size is another one.
        """
        height, width = size or (self.height or own[0], self.width or own[1])
        if (self.height or height, self.width or width) != (height, width):
            raise InvalidArgumentError(
                "the model does not take this size",
                where="--size",
                expected=f"{self.height or 'any'}x{self.width or 'any'}",
                actual=f"{height}x{width}",
            )
        return replace(self, height=height, width=width)


@dataclass(frozen=True, slots=True)
class Normalization:
    """Real numbers of pixels: ``pixel * factor + offset``, by channel or for all.

    Parameters
    ----------
    factors, offsets : tuple of float
    """

    factors: tuple[float, ...]
    offsets: tuple[float, ...]

    @classmethod
    def from_range(cls, low: float, high: float) -> Normalization:
        """Pixel 0 becomes `low`, pixel 255 becomes `high`."""
        return cls(((high - low) / 255,), (low,))

    @classmethod
    def from_mean(cls, mean: Sequence[float], std: Sequence[float]) -> Normalization:
        """``(pixel - mean) / std``, one number each for all channels or one per channel.

        Raises
        ------
        InvalidArgumentError
            If a standard deviation is 0 or the counts do not go together.
        """
        if 0 in std:
            raise InvalidArgumentError("a standard deviation is 0", where="--std")
        try:
            means, deviations = np.broadcast_arrays(np.array(mean), np.array(std))
        except ValueError as error:
            raise InvalidArgumentError(
                "the numbers of channels differ",
                where="--mean and --std",
                actual=f"{len(mean)} and {len(std)} numbers",
            ) from error
        return cls(tuple(1 / deviations), tuple(-means / deviations))

    @property
    def real_range(self) -> tuple[float, float]:
        """The lowest and highest real number that any pixel becomes."""
        ends = [
            f * pixel + o
            for f, o in zip(self.factors, self.offsets, strict=True)
            for pixel in (0, 255)
        ]
        return min(ends), max(ends)

    def apply(self, pixels: Pixels) -> npt.NDArray[np.float64]:
        """Real numbers of pixels of shape (H, W, C).

        Raises
        ------
        InvalidArgumentError
            If there is another number of channels.
        """
        channels = pixels.shape[-1]
        if len(self.factors) not in (1, channels):
            raise InvalidArgumentError(
                "the number of channels is wrong",
                where="--mean and --std",
                expected="1 number" if channels == 1 else f"1 or {channels} numbers",
                actual=str(len(self.factors)),
            )
        real: npt.NDArray[np.float64] = pixels * np.array(self.factors) + np.array(self.offsets)
        return real


def image_layout(name: str, info: TensorInfo) -> ImageLayout:
    """How an image lies in an input.

    Raises
    ------
    InvalidArgumentError
        If the input does not look like one image.
    """
    shape = info.shape
    is_pixels = info.data_type.dtype.kind in _PIXEL_TYPES and not info.data_type.is_bit_pattern
    if is_pixels and shape is not None and len(shape) == 4 and shape[0] in (None, 1):
        for data_layout in (DataLayout.NHWC, DataLayout.NCHW):
            channels = shape[data_layout.channel_axis]
            if channels in MODES:
                height, width = (shape[axis] for axis in data_layout.spatial_axes)
                return ImageLayout(height, width, channels, data_layout)
    if is_pixels and shape is not None and len(shape) == 3 and shape[0] in (None, 1):
        return ImageLayout(*shape[1:], 1, DataLayout.NHWC, has_channels=False)
    raise InvalidArgumentError(
        "the input is no image",
        where=f"input '{name}'",
        expected="the shape (1, height, width, channels) or (1, channels, height, width) "
        "with 1, 3 or 4 channels, or (1, height, width)",
        actual=f"{info.data_type.name}{format_shape(shape)}",
        fix="Give it with --input",
    )


def sized_shapes(inputs: Iterable[TensorSpec], size: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the image inputs whose size is open, with a size of the user's.

    Parameters
    ----------
    inputs : iterable of TensorSpec
    size : tuple of int
        Height and width.

    Raises
    ------
    InvalidArgumentError
        If the size of none is open.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for spec in inputs:
        shape = spec.shape or ()
        if len(shape) == 4 and None in shape[1:]:
            layout = image_layout(spec.name, spec.info).with_size(size, size)
            shapes[spec.name] = layout.shape
    if not shapes:
        raise InvalidArgumentError("the model has no image input of open size", where="--size")
    return shapes


def open_image(path: str) -> Image.Image:
    """Open and decode a picture file, turned the way its EXIF data say.

    Raises
    ------
    InvalidArgumentError
        If it is none, or damaged, or too large, or its colours have no RGB.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415  # slow to import

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            # A pipe would be waited for without end.
            raise InvalidArgumentError("not a file with a picture", where=path)
        with warnings.catch_warnings():
            # Half of the size that Pillow refuses is no reason to say anything.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as file:
                return ImageOps.exif_transpose(_usual_mode(file, path))
    except InvalidArgumentError:  # a ValueError too
        raise
    except UnidentifiedImageError as error:
        raise InvalidArgumentError("not a picture that can be read", where=path) from error
    except FileNotFoundError as error:
        raise InvalidArgumentError("there is no such file", where=path) from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        # Pillow raises SyntaxError for some damaged files.
        raise InvalidArgumentError(f"the picture cannot be read: {error}", where=path) from error


def _usual_mode(image: Image.Image, path: str) -> Image.Image:
    """A picture of 8 bits that has RGB, where Pillow would cut values off or could not tell."""
    from PIL import Image  # noqa: PLC0415

    is_sixteen = image.mode == "I" and image.format in ("PNG", "PPM")  # of older Pillows
    if image.mode.startswith("I;16") or is_sixteen:
        return Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        values = np.asarray(image)
        low, high = values.min(), values.max()
        is_plain = low >= 0 and high <= 255 and (image.mode == "I" or high > 1 or high == 0)
        if not is_plain:
            raise InvalidArgumentError(
                "its pixels have 32 bits, and which number is white is not known",
                where=path,
                expected="numbers from 0 to 255",
                actual=f"{low:g} to {high:g}",
            )
    elif image.mode not in _MODES_WITH_RGB:
        raise InvalidArgumentError(
            f"its colours ({image.mode}) cannot be turned into RGB", where=path
        )
    image.load()
    return image


def resized_pixels(image: Image.Image, layout: ImageLayout, method: str) -> Pixels:
    """Pixels of a picture in the size and number of channels of a layout.

    Parameters
    ----------
    image : Image
    layout : ImageLayout
        With its size known.
    method : {"stretch", "crop", "pad"}
        What to do where the proportions differ: change them, cut off what is too much at
        both sides, or fill up with black.

    Returns
    -------
    ndarray, uint8, shape (H, W, C)

    Notes
    -----
    Bilinear, with a filter as wide as the reduction asks for (antialiased).
    """
    from PIL import Image, ImageOps  # noqa: PLC0415

    axes = layout.data_layout.spatial_axes if layout.has_channels else (1, 2)
    height, width = (layout.shape[axis] for axis in axes)
    size = (width, height)
    picture = image.convert(MODES[layout.channels])
    if method == "crop":
        picture = ImageOps.fit(picture, size, Image.Resampling.BILINEAR)
    elif method == "pad":
        picture = ImageOps.pad(picture, size, Image.Resampling.BILINEAR)
    elif picture.size != size:
        picture = picture.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(picture, np.uint8).reshape(height, width, layout.channels)


def normalized(
    pixels: Pixels, info: TensorInfo, normalization: Normalization | None
) -> tuple[Array, str]:
    """Pixels as stored elements of an input.

    Parameters
    ----------
    pixels : ndarray, uint8, shape (H, W, C)
    info : TensorInfo
        Of the input.
    normalization : Normalization, optional
        What the user wants; otherwise what the type and quantisation suggest.

    Returns
    -------
    elements : ndarray, dtype of `info`, shape (H, W, C)
    hint : str
        What was assumed without knowing; empty if nothing was.

    Notes
    -----
    For 8-bit types the whole stored range is the whole range of pixels: uint8 holds the
    pixel itself, int8 the pixel less 128. That is right for every real range that an image
    input usually has. Other integers hold the pixel. Float inputs, and quantised ones of
    more bits, get numbers from 0 to 1 for lack of a better guess.
    """
    data_type = info.data_type
    if normalization is not None:
        return _stored(normalization.apply(pixels), info), ""
    if data_type.size_bytes == 1:
        shifted = pixels.astype(np.int16) + data_type.integer_range[0]
        return shifted.astype(data_type.dtype), _hint_of_range(info)
    if data_type.is_float or data_type.is_quantized:
        return _stored(Normalization.from_range(0, 1).apply(pixels), info), (
            "pixels are given as numbers from 0 to 1; if the model was trained with others, "
            "say so, for example --range -1,1 (Keras MobileNet) or --range 0,255 (EfficientNet)"
        )
    return pixels.astype(data_type.dtype), ""


def _stored(real: npt.NDArray[np.float64], info: TensorInfo) -> Array:
    """Real numbers as elements of a tensor."""
    data_type = info.data_type
    if data_type.is_float:
        return real.astype(data_type.dtype)
    if data_type.is_quantized:
        return quantize_array(real, info)
    return np.clip(np.rint(real), *data_type.integer_range).astype(data_type.dtype)


def _hint_of_range(info: TensorInfo) -> str:
    """What to say about a real range that is none of the usual ones."""
    if info.quantization is None:
        return ""
    low, high = (info.scale * (end - info.zero_point) for end in info.data_type.integer_range)
    tolerance = RANGE_TOLERANCE * (high - low)
    for usual_low, usual_high in _USUAL_RANGES:
        if abs(low - usual_low) <= tolerance and abs(high - usual_high) <= tolerance:
            return ""
    return (
        f"pixels are spread over the input's real range, {low:.3g} to {high:.3g}, which is an "
        "unusual one; --mean and --std (in units of pixels, 0 to 255) or --range say it exactly"
    )


def image_input(
    image: Image.Image,
    name: str,
    info: TensorInfo,
    *,
    size: tuple[int, int] | None = None,
    resize: str = "stretch",
    normalization: Normalization | None = None,
) -> tuple[Array, str]:
    """A picture as an input.

    Parameters
    ----------
    image : Image
    name, info : str, TensorInfo
        The input's.
    size : tuple of int, optional
        Height and width.
    resize : {"stretch", "crop", "pad"}
    normalization : Normalization, optional

    Returns
    -------
    elements : ndarray, dtype of `info`, shape (1, H, W, C) or (1, C, H, W)
    hint : str
        What was assumed without knowing; empty if nothing was.

    Raises
    ------
    InvalidArgumentError
        If the input is no image, or an option does not go with it.
    """
    layout = image_layout(name, info).with_size(size, (image.height, image.width))
    elements, hint = normalized(resized_pixels(image, layout, resize), info, normalization)
    if not layout.has_channels:
        elements = elements[:, :, 0]
    elif layout.data_layout is DataLayout.NCHW:
        elements = elements.transpose(2, 0, 1)
    return np.ascontiguousarray(elements)[np.newaxis], hint


def shown_size(elements: Array) -> tuple[int, int]:
    """Width and height of an image input's elements."""
    shape = elements.shape[1:]
    is_first = len(shape) == 3 and shape[-1] not in MODES
    height, width = shape[1:] if is_first else shape[:2]
    return width, height

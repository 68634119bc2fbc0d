"""Conversion of a picture file to the elements of an image input."""

from __future__ import annotations

import os
import stat
import threading
import warnings
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.cli.pictures.image_layout import MODES, ImageLayout, image_layout
from armpy.cli.pictures.normalization import Normalization, normalization_of, normalized
from armpy.cli.pictures.options import PictureOptions
from armpy.core.units import type_name
from armpy.errors import ArmpyError, InvalidArgumentError, suggest_path
from armpy.tensor import TensorInfo, format_shape
from armpy.types import DataLayout

try:
    from PIL import Image, ImageOps, UnidentifiedImageError
except ModuleNotFoundError as error:
    raise ArmpyError(
        "Pillow, which reads pictures, is not installed", where="PIL", fix="Run: pip install pillow"
    ) from error

if TYPE_CHECKING:
    from armpy.cli.pictures.file_metadata import FileMetadata
    from armpy.execution import TensorSpec

Pixels: TypeAlias = npt.NDArray[np.uint8]

Array: TypeAlias = npt.NDArray[np.generic]

_MODES_WITH_RGB = frozenset(
    {"1", "CMYK", "HSV", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "RGBa", "YCbCr"}
)
"""Pillow's modes that it can convert to RGB without loss of range."""

_OPENING = threading.Lock()
"""For what only one thread may do: hold warnings back, and let Pillow import its readers, of which
another thread would see some and take a picture for none. Decoding is beside it."""


def open_image(path: str) -> Image.Image:
    """Open and decode a picture file, turned the way its EXIF data say."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            # A pipe would be waited for without end.
            raise InvalidArgumentError("not a file with a picture", where=path)
        with _OPENING, warnings.catch_warnings():
            # Half of the size that Pillow refuses needs no warning.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            opened = Image.open(path)  # nothing is decoded yet
        with opened as file:
            image = _usual_mode(file, path)
            ImageOps.exif_transpose(image, in_place=True)  # without: a copy of every picture
            return image
    except InvalidArgumentError:  # a ValueError too
        raise
    except UnidentifiedImageError as error:
        raise InvalidArgumentError(
            "not a picture that can be read",
            where=path,
            expected="a PNG or JPEG file, or another picture that Pillow reads",
            actual="a file that Pillow does not recognize",
            fix="Pass a picture, or convert it to PNG; an array is given with --input",
        ) from error
    except FileNotFoundError as error:
        raise InvalidArgumentError(
            "there is no such file", where=path, expected="a picture", fix=suggest_path(path)
        ) from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        # Pillow raises SyntaxError for some damaged files.
        fix = "Copy or save the picture again"
        failed = f"the picture cannot be read: {error}"
        raise InvalidArgumentError(failed, where=path, fix=fix) from error


def _usual_mode(image: Image.Image, path: str) -> Image.Image:
    """Convert modes that Pillow would clip or misread to an 8-bit picture with RGB."""
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
    """Pixels of a picture in the size and number of channels of a layout, whose size is known.

    Where the proportions differ, the method stretches the picture, crops what is too much at both
    sides, or pads it with black. Bilinear, with a filter as wide as the reduction asks for
    (antialiased).

    Returns an array, uint8, shape (H, W, C).
    """
    axes = layout.data_layout.spatial_axes if layout.has_channels else (1, 2)
    height, width = (layout.shape[axis] for axis in axes)
    size = (width, height)
    mode = MODES[layout.channels]
    picture = image if image.mode == mode else image.convert(mode)
    if method == "crop":
        picture = ImageOps.fit(picture, size, Image.Resampling.BILINEAR)
    elif method == "pad":
        picture = ImageOps.pad(picture, size, Image.Resampling.BILINEAR)
    elif picture.size != size:
        picture = picture.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(picture, np.uint8).reshape(height, width, layout.channels)


def image_input(
    image: Image.Image,
    name: str,
    info: TensorInfo,
    *,
    size: tuple[int, int] | None = None,
    resize: str = "stretch",
    normalization: Normalization | None = None,
) -> tuple[Array, str]:
    """A picture as an input, whose name and info these are.

    Returns
    -------
    elements : ndarray, dtype of `info`, shape (1, H, W, C) or (1, C, H, W)
    hint : str
        The assumption; empty if there was none.
    """
    layout = image_layout(name, info).with_size(size, (image.height, image.width))
    elements, hint = normalized(resized_pixels(image, layout, resize), info, normalization)
    if not layout.has_channels:
        elements = elements[:, :, 0]
    elif layout.data_layout is DataLayout.NCHW:
        elements = elements.transpose(2, 0, 1)
    return np.ascontiguousarray(elements)[np.newaxis], hint


def picture_input(
    spec: TensorSpec,
    path: str,
    size: tuple[int, int] | None = None,
    options: PictureOptions | None = None,
    metadata: FileMetadata | None = None,
) -> tuple[Array, str, str]:
    """A picture file as an input of a model, where it is from, and a hint; empty if there is none.

    Pixels are normalised as the options say, or else as the metadata do.
    """
    image = open_image(path)
    options = options or PictureOptions()
    normalization = normalization_of(options)
    if normalization is None and metadata is not None:
        normalization = metadata.normalization(spec)
    array, hint = image_input(
        image,
        spec.name,
        spec.info,
        size=size,
        resize=options.resize,
        normalization=normalization,
    )
    origin = f"{path}, {image.width}x{image.height} pixels, as {type_name(spec.data_type.name)} "
    return array, origin + format_shape(array.shape), hint

"""Layout of an image in a model's input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.shell import shell_word
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.tensor import TensorInfo, format_shape
from armpy.types import DataLayout

Array: TypeAlias = npt.NDArray[np.generic]

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's name for pixels of so many channels."""

_PIXEL_TYPES = frozenset({"i", "u", "f"})


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """Layout of an image in a tensor of rank 4, or of rank 3 for a grey one."""

    # None where any size will do.
    height: int | None
    width: int | None
    channels: int  # {1, 3, 4}
    data_layout: DataLayout
    has_channels: bool = True  # whether there is an axis of channels; a grey image may do without

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a tensor with one image."""
        if self.height is None or self.width is None:
            raise InvalidArgumentError("the size of the image is not known", fix="Give --size HxW")
        if not self.has_channels:
            return (1, self.height, self.width)
        if self.data_layout is DataLayout.NCHW:
            return (1, self.channels, self.height, self.width)
        return (1, self.height, self.width, self.channels)

    def with_size(self, size: tuple[int, int] | None, own: tuple[int, int]) -> ImageLayout:
        """The same with the height and width that the user wants, or the picture's own."""
        height, width = size or (self.height or own[0], self.width or own[1])
        if (self.height or height, self.width or width) != (height, width):
            raise InvalidArgumentError(
                "the model does not take this size",
                where="--size",
                expected=f"{self.height or 'any'}x{self.width or 'any'}",
                actual=f"{height}x{width}",
            )
        return replace(self, height=height, width=width)


def image_layout(name: str, info: TensorInfo) -> ImageLayout:
    """Return how an image lies in an input."""
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
        "the input is not an image",
        where=f"input '{name}'",
        expected="the shape (1, height, width, channels) or (1, channels, height, width) "
        "with 1, 3 or 4 channels, or (1, height, width)",
        actual=f"{info.data_type.name} {format_shape(shape)}",
        fix="Run the model on an array: armpy run MODEL --input " + shell_word(f"{name}=FILE.npy"),
    )


def sized_shapes(inputs: Iterable[TensorSpec], size: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the image inputs whose size is open, with the user's height and width."""
    shapes: dict[str, tuple[int, ...]] = {}
    for spec in inputs:
        shape = spec.shape or ()
        if len(shape) == 4 and None in shape[1:]:
            layout = image_layout(spec.name, spec.info).with_size(size, size)
            shapes[spec.name] = layout.shape
    if not shapes:
        fix = "Leave --size out: armpy inspect shows the sizes"
        failed = "the model has no image input of open size"
        raise InvalidArgumentError(failed, where="--size", fix=fix)
    return shapes

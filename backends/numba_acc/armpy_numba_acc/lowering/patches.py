"""Which elements of its input a convolution multiplies for each pixel of its output."""

from __future__ import annotations

from armpy.graph import Layer
from armpy.ops import Convolution2d, DepthwiseConvolution2d, FullyConnected
from armpy.ops.shapes import resolve_padding
from armpy.records import dataclass
from armpy_numba_acc.lowering.padding import padded_images
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Patches:
    """Rows of elements in memory for each pixel of the output.

    Parameters
    ----------
    source : Buffer
        The input, padded if need be.
    images, height, width : int
        Of the output.
    image_pitch, row_pitch, pixel_pitch : int
        Bytes of the input from one image, row and pixel of the output to the next.
    taps : tuple of int
        Where the rows of elements begin, in bytes behind the pixel's address.
    depth : int
        Elements of each.
    """

    source: Buffer
    images: int
    height: int
    width: int
    image_pitch: int
    row_pitch: int
    pixel_pitch: int
    taps: tuple[int, ...]
    depth: int

    @property
    def num_pixels(self) -> int:
        """Pixels of all images."""
        return self.images * self.height * self.width

    @property
    def layout(self) -> tuple[int, ...]:
        """Number of pixels, height, width and the pitches, as kernels take them."""
        height, width = self.height, self.width
        row = width * self.pixel_pitch
        is_flat = self.row_pitch == row or height == 1
        if is_flat and (self.image_pitch == height * row or self.images == 1):
            height, width = 1, self.num_pixels  # one long row is found faster
        return (self.num_pixels, height, width, self.image_pitch, self.row_pitch, self.pixel_pitch)


def patches_of(
    emit: Emitter, layer: Layer, element_bytes: int, fill: int = 0, source: Buffer | None = None
) -> Patches:
    """What a convolution or a fully connected layer multiplies; as `patches_of_images`."""
    if isinstance(layer.operation, FullyConnected):
        return patches_of_vectors(emit, layer, element_bytes, source)
    return patches_of_images(emit, layer, element_bytes, fill, source)


def patches_of_vectors(
    emit: Emitter, layer: Layer, element_bytes: int, source: Buffer | None = None
) -> Patches:
    """What a fully connected layer multiplies: vectors one behind the other.

    Parameters
    ----------
    element_bytes, source
        As for `patches_of_images`.
    """
    value, depth = layer["input"], layer["weights"].info.known_shape[1]
    count = value.info.num_elements // depth
    source = source or emit.source(value)
    return Patches(source, 1, 1, count, 0, 0, depth * element_bytes, (0,), depth)


def patches_of_images(
    emit: Emitter,
    layer: Layer,
    element_bytes: int,
    fill: int,
    source: Buffer | None = None,
    channels: int = 0,
) -> Patches:
    """What a convolution multiplies, of an image with borders if there is padding.

    Parameters
    ----------
    element_bytes : int
        Size of an element of `source`.
    fill : int
        Byte of a padding element.
    source : Buffer, optional
        The layer's input, if it is not to be read as the graph has it.
    channels : int
        Its channels, if they are others than the graph's.
    """
    operation = layer.operation
    assert isinstance(operation, Convolution2d | DepthwiseConvolution2d)
    value, weights = layer["input"], layer["weights"]
    kernel = weights.info.known_shape[1:3]
    n, h, w, c = value.info.known_shape
    c = channels or c
    pixel = c * element_bytes
    source = source or emit.source(value)
    pads = [
        resolve_padding(
            operation.padding, size, kernel[a], operation.stride[a], operation.dilation[a], a
        )
        for a, size in enumerate((h, w))
    ]
    source, h, w = padded_images(emit, source, (n, h, w, pixel), pads, fill, layer.name)
    row = w * pixel
    taps = [
        y * operation.dilation[0] * row + x * operation.dilation[1] * pixel
        for y in range(kernel[0])
        for x in range(kernel[1])
    ]
    depth = c
    if operation.dilation[1] == 1:  # neighbours in a row are neighbours in memory
        taps, depth = taps[:: kernel[1]], c * kernel[1]
    _, out_h, out_w, _ = layer.outputs[0].info.known_shape
    pitches = (h * row, operation.stride[0] * row, operation.stride[1] * pixel)
    return Patches(source, n, out_h, out_w, *pitches, tuple(taps), depth)

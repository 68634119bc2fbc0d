"""Patches: elements of its input that a convolution multiplies for each pixel of its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import is_traced
from armpy.graph import Layer
from armpy.ops import Convolution2d, Convolution3d, DepthwiseConvolution2d, FullyConnected
from armpy.ops.shapes import resolve_padding
from armpy_numba_acc.lowering.padding import padded_volumes
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Patches:
    """Rows of elements in memory for each pixel of the output."""

    source: Buffer  # the input, padded if need be
    images: int  # of the output
    height: int
    width: int
    image_pitch: int  # bytes of the input from one image, row and pixel of the output to the next
    row_pitch: int
    pixel_pitch: int
    taps: tuple[int, ...]  # where the rows of elements begin, in bytes after the pixel's address
    depth: int  # elements of each

    @property
    def num_pixels(self) -> int:
        """Pixels of all images."""
        return self.images * self.height * self.width

    @property
    def layout(self) -> tuple[int, ...]:
        """Number of pixels, height, width and the pitches, as kernels take them."""
        height, width = self.height, self.width
        row = width * self.pixel_pitch
        is_flat = height == 1 or self.row_pitch == row
        if is_flat and (self.images == 1 or self.image_pitch == height * row):
            height, width = 1, self.num_pixels  # one long row is found faster
        return (self.num_pixels, height, width, self.image_pitch, self.row_pitch, self.pixel_pitch)


@dataclass(frozen=True, slots=True)
class SlicePatches:
    """Patches of neighbouring slices of the output whose windows see the same of their slices."""

    patches: Patches  # without the window's slices that lie beyond the input
    first_pixel: int  # of the output
    skipped_taps: int  # in front of the first one


def patches_of(
    emit: Emitter, layer: Layer, element_bytes: int, fill: int = 0, source: Buffer | None = None
) -> Patches:
    """Patches of a convolution or of a fully connected layer; see `patches_of_images`."""
    if isinstance(layer.operation, FullyConnected):
        return patches_of_vectors(emit, layer, element_bytes, source)
    return patches_of_images(emit, layer, element_bytes, fill, source)


def patches_of_vectors(
    emit: Emitter, layer: Layer, element_bytes: int, source: Buffer | None = None
) -> Patches:
    """Return the patches that a fully connected layer multiplies: consecutive vectors.

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
    *,
    pads_slices: bool = True,
) -> Patches:
    """Return a convolution's patches, of images or of one volume, with borders if there is padding.

    Images are the slices of a volume, of which every window sees one.

    Parameters
    ----------
    element_bytes
        Size of an element of `source`.
    fill
        Byte of a padding element.
    source
        The layer's input, if it is not to be read as the graph has it.
    channels
        Its channels, if they are others than the graph's.
    pads_slices
        Whether a volume has slices of padding in front and after.
    """
    operation = layer.operation
    assert isinstance(operation, Convolution2d | Convolution3d | DepthwiseConvolution2d)
    value, weights, output = layer["input"], layer["weights"].info, layer.output.info
    count, *sizes, c = value.info.known_shape
    kernel = weights.known_shape[1:-1]
    stride: tuple[int, ...] = operation.stride
    dilation: tuple[int, ...] = operation.dilation
    pads = [
        resolve_padding(operation.padding, size, kernel[a], stride[a], dilation[a], a)
        for a, size in enumerate(sizes)
    ]
    if not isinstance(operation, Convolution3d):
        kernel, stride, dilation = (1, *kernel), (1, *stride), (1, *dilation)
        sizes, pads = [count, *sizes], [(0, 0), *pads]
    if not pads_slices:
        pads[0] = (0, 0)
    pixel = (channels or c) * element_bytes
    source = source or emit.source(value)
    source, (_, h, w) = padded_volumes(emit, source, sizes, pixel, pads, fill, layer.name)
    pitches = h * w * pixel, w * pixel, pixel
    taps = [
        sum(at * step * pitch for at, step, pitch in zip(place, dilation, pitches, strict=True))
        for place in product(*map(range, kernel))
    ]
    depth = channels or c
    if dilation[2] == 1:  # neighbours in a row are neighbours in memory
        taps, depth = taps[:: kernel[2]], depth * kernel[2]
    *_, out_h, out_w, _ = output.known_shape
    slices = output.num_elements // (out_h * out_w * output.known_shape[-1])
    image, row, column = (step * pitch for step, pitch in zip(stride, pitches, strict=True))
    return Patches(source, slices, out_h, out_w, image, row, column, tuple(taps), depth)


def patches_by_slice(emit: Emitter, layer: Layer, element_bytes: int) -> list[SlicePatches]:
    """Patches of a volume that is padded in front or after, none of which is in them.

    Returns
    -------
    list of SlicePatches
        All of the output; empty where slices are not padded, where a window sees nothing else,
        or where there would be too many.
    """
    operation = layer.operation
    if not isinstance(operation, Convolution3d):
        return []
    count, size, *_ = layer["input"].info.known_shape
    _, slices, height, width, _ = layer.output.info.known_shape
    if is_traced(count, size, slices):
        return []
    kernel = layer["weights"].info.known_shape[1]
    stride, step = operation.stride[0], operation.dilation[0]
    pads = resolve_padding(operation.padding, size, kernel, stride, step, 0)
    # The first and the last slice of each window that lie inside.
    begins = [number * stride - pads[0] for number in range(slices)]
    seen = [(max(-(begin // step), 0), min(-((begin - size) // step), kernel)) for begin in begins]
    is_empty = any(first >= last for first, last in seen)
    if not any(pads) or is_empty or count * len(set(seen)) > _MOST_RUNS:
        return []
    whole = patches_of_images(emit, layer, element_bytes, 0, pads_slices=False)
    rows, pitch, result = len(whole.taps) // kernel, whole.image_pitch // stride, []
    for volume, ((first, last), run) in product(range(count), _runs(seen)):
        start = (volume * size + begins[run.start] + first * step) * pitch
        taps = whole.taps[first * rows : last * rows]
        patches = replace(
            whole,
            source=whole.source.part(start, whole.source.size_bytes - start),
            images=len(run),
            taps=tuple(tap - taps[0] for tap in taps),
        )
        pixel = (volume * slices + run.start) * height * width
        result.append(SlicePatches(patches, pixel, first * rows))
    return result


_MOST_RUNS = 64
"""Commands of a layer that is computed slice by slice."""


def _runs(values: Sequence[tuple[int, int]]) -> list[tuple[tuple[int, int], range]]:
    """Each value that differs from the one in front of it, with the places where it stands."""
    starts = [at for at, value in enumerate(values) if at == 0 or value != values[at - 1]]
    ends = [*starts[1:], len(values)]
    return [(values[at], range(at, end)) for at, end in zip(starts, ends, strict=True)]

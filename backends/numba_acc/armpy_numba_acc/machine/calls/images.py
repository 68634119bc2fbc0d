"""Calls of kernels that resize, sample and pad images."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Interpolation(Call):
    """Arguments of interpolation: elements to interpolate between, and their weights."""

    source: Pointer
    target: Pointer
    # A pair of int64 per row or column of the output: byte offsets of the rows, element offsets of
    # the columns.
    rows: Pointer
    row_weights: Pointer  # pairs of weights
    columns: Pointer
    column_weights: Pointer
    scratch: Pointer  # `scratch_pitch` bytes for every thread
    scratch_pitch: int
    images: int  # of the input, in bytes
    image_pitch: int
    row_elements: int  # of the input
    out_height: int
    out_width: int
    channels: int


@dataclass(frozen=True, slots=True)
class SampleAxis(Call):
    """Compute neighbours and weights of `Interpolation` along an axis, as `real_samples` does.

    Without weights, only positions of nearest neighbours, as `nearest_positions` does.
    """

    positions: Pointer
    weights: Pointer  # 0 for none
    size: int
    out_size: int
    pitch: int  # what positions are multiplied by
    scale: float  # input elements per output element
    centre: float  # of an element
    offset: float  # taken from what the scale gives


@dataclass(frozen=True, slots=True)
class ResizeBilinear(Call):
    """Resize images by bilinear interpolation."""

    parameters = ("kind",)

    kind: str  # "s8" is kept unsigned like all signed tensors, and interpolated with integers
    # Scratch memory holds an input row and an output row, and a vector after each.
    images: Interpolation


@dataclass(frozen=True, slots=True)
class ResizeBilinearI16(Call):
    """Resize images of 16-bit elements by bilinear interpolation."""

    images: Interpolation  # scratch memory holds 8 bytes for every element of a row of the input


@dataclass(frozen=True, slots=True)
class GridSample(Call):
    """Sample float32 images or volumes at coordinates of a grid."""

    parameters = ("mode", "padding", "num_axes")

    mode: str  # names of `armpy.ops.SampleMode` and `armpy.ops.GridPadding`, in lower case
    padding: str
    num_axes: int
    source: Pointer
    grid: Pointer  # float32, for each sample the coordinate along each axis, the last axis first
    target: Pointer
    sizes: Pointer  # the size of each axis, and bytes from one of its elements to the next
    images: int
    image_pitch: int
    samples: int  # of each image
    channels: int
    is_aligned: int  # whether -1 and 1 are centres of elements, rather than edges


@dataclass(frozen=True, slots=True)
class RoiAlign(Call):
    """Sample regions of float32 images on regular grids."""

    parameters = ("form",)

    form: str  # "mean" or "max" of samples; "inside": means, with positions in float32
    source: Pointer
    rois: Pointer  # float32, corners x1, y1, x2, y2
    batch_indices: Pointer  # int32
    target: Pointer
    images: int
    height: int
    width: int
    channels: int
    regions: int
    out_height: int
    out_width: int
    height_samples: int  # for each element of the output; 0 for as many as rows or columns
    width_samples: int
    height_scale: float  # rows and columns of the image in a region's units
    width_scale: float
    is_half_pixel: int  # as of `armpy.ops.RoiAlign`
    is_free: int
    scratch: Pointer  # `scratch_pitch` bytes for every thread: tables of rows, and of columns
    scratch_pitch: int
    row_bytes: int  # of the table of rows
    failure: Pointer


@dataclass(frozen=True, slots=True)
class PadImage(Call):
    """Copy images into larger ones and fill the borders."""

    source: Pointer
    target: Pointer
    images: int
    height: int
    row_bytes: int  # of a row of the input, and of the borders beside it
    top: int  # rows of the borders
    bottom: int
    left_bytes: int
    right_bytes: int
    fill: int  # the byte of the borders

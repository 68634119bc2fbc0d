"""Calls of kernels that resize and pad images."""

from __future__ import annotations

from dataclasses import dataclass

from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Interpolation(Call):
    """Arguments of interpolation: elements to interpolate between, and their weights.

    Parameters
    ----------
    rows, columns : Pointer
        A pair of int64 per row or column of the output: byte offsets of the rows, element offsets
        of the columns.
    row_weights, column_weights : Pointer
        Pairs of weights.
    scratch, scratch_pitch : Pointer, int
        `scratch_pitch` bytes for every thread.
    images, image_pitch : int
        Of the input, in bytes.
    row_elements : int
        Of the input.
    """

    source: Pointer
    target: Pointer
    rows: Pointer
    row_weights: Pointer
    columns: Pointer
    column_weights: Pointer
    scratch: Pointer
    scratch_pitch: int
    images: int
    image_pitch: int
    row_elements: int
    out_height: int
    out_width: int
    channels: int


@dataclass(frozen=True, slots=True)
class ResizeBilinear(Call):
    """Resize images by bilinear interpolation.

    Parameters
    ----------
    kind : {"f32", "u8", "s8"}
        "s8" is kept unsigned like all signed tensors, and interpolated with integers.
    images : Interpolation
        Scratch memory holds an input row and an output row, and a vector behind each.
    """

    parameters = ("kind",)

    kind: str
    images: Interpolation


@dataclass(frozen=True, slots=True)
class ResizeBilinearI16(Call):
    """Resize images of 16-bit elements by bilinear interpolation.

    Parameters
    ----------
    images : Interpolation
        Scratch memory holds 8 bytes for every element of a row of the input.
    """

    images: Interpolation


@dataclass(frozen=True, slots=True)
class PadImage(Call):
    """Copy images into larger ones and fill the borders.

    Parameters
    ----------
    row_bytes, left_bytes, right_bytes : int
        Of a row of the input, and of the borders beside it.
    top, bottom : int
        Rows of the borders.
    fill : int
        The byte of the borders.
    """

    source: Pointer
    target: Pointer
    images: int
    height: int
    row_bytes: int
    top: int
    bottom: int
    left_bytes: int
    right_bytes: int
    fill: int

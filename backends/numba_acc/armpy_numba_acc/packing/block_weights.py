"""Numbers of few bits in blocks, with the blocks' scales and zero points, in panels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from armpy_numba_acc.packing.origins import Origin, PackedArray
from armpy_numba_acc.packing.panels import Array, in_panels, side_by_side


def pack_blocks(lanes: int, *parts: tuple[Array, Array]) -> PackedArray:
    """Values of each block, panel by panel and block by block.

    Parameters
    ----------
    lanes
        Units of a panel; the last one is filled up with zeros.
    *parts
        Each a constant of shape (units, blocks) or (units, blocks, bytes), and the same bytes as
        words of shape (units, blocks, words): of every block, each word of all units lies together.
    """
    rows = [in_lanes(words, lanes) for _, words in parts]
    packed = side_by_side(*rows)
    begin, origins = 0, []
    for (constant, words), row in zip(parts, rows, strict=True):
        moved = partial(in_lanes, lanes=lanes, words=words.shape[2])
        size, together = constant.itemsize, words.itemsize // constant.itemsize
        origin = Origin.of(constant, moved, size, begin, packed.shape[1], together=together)
        origins.append(origin)
        begin += row[0].nbytes
    return PackedArray(packed, tuple(origins))


def in_lanes(values: Array, lanes: int, words: int = 0) -> Array:
    """Values (units, blocks, ...), which are some words in each block, as rows of blocks."""
    units, blocks = values.shape[:2]
    panels = in_panels(values.reshape(units, blocks, words or values.shape[2], -1), lanes)
    return panels.transpose(0, 2, 3, 1, 4).reshape(len(panels) * blocks, -1)


def panel_parts(values: Array, panels: Array) -> Iterator[tuple[Array, Array]]:
    """Parts of values (units, blocks, words) and of panels (panels, blocks, words, lanes)."""
    units, blocks, words = values.shape
    lanes = panels.shape[3]
    whole, rest = divmod(units, lanes)
    for first, count, width in ((0, whole, lanes), (whole, 1, rest)):
        if count * width:
            part = values[first * lanes : first * lanes + count * width]
            ordered = part.reshape(count, width, blocks, words).transpose(0, 2, 3, 1)
            yield ordered, panels[first : first + count, :, :, :width]

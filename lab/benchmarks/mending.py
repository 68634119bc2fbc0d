"""Mends what some engines refuse in model files, and what makes no difference to the others."""

from __future__ import annotations

import atexit
import struct
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_SUBGRAPHS, _TENSORS = 2, 0
_SHAPE, _QUANTIZATION = 0, 4
_DIMENSION = 6


@cache
def mended(path: Path) -> Path:
    """The file, or a copy in which no tensor is quantised along an axis that it does not have.

    Notes
    -----
    Old converters wrote the weights' axis at biases, too, which have one axis only. LiteRT and
    OpenVINO refuse that by now; armpy and the engines of that time do not look.
    """
    data = bytearray(path.read_bytes())
    places = list(_wrong_axes(data))
    if not places:
        return path
    for place in places:
        struct.pack_into("<i", data, place, 0)
    with tempfile.NamedTemporaryFile(prefix=path.stem, suffix=path.suffix, delete=False) as file:
        file.write(data)
    copy = Path(file.name)
    atexit.register(copy.unlink)
    return copy


def _wrong_axes(data: bytearray) -> Iterator[int]:
    """Where the axes are that tensors do not have."""
    for subgraph in _vector(data, _field(data, _target(data, 0), _SUBGRAPHS)):
        for tensor in _vector(data, _field(data, _target(data, subgraph), _TENSORS)):
            table = _target(data, tensor)
            quantization = _field(data, table, _QUANTIZATION)
            if not quantization:
                continue
            details = _target(data, quantization)
            axis = _field(data, details, _DIMENSION)
            num_axes = len(_vector(data, _field(data, table, _SHAPE)))
            if axis and _i32(data, axis) >= max(num_axes, 1):
                yield axis


def _i32(data: bytearray, place: int) -> int:
    """An integer."""
    (number,) = struct.unpack_from("<i", data, place)
    return int(number)


def _target(data: bytearray, place: int) -> int:
    """What an offset points to."""
    return place + _i32(data, place)


def _field(data: bytearray, table: int, number: int) -> int:
    """Where a field of a table is; 0 if it has its default."""
    layout = table - _i32(data, table)
    size, _ = struct.unpack_from("<HH", data, layout)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, layout + 4 + 2 * number)
    return table + offset if offset else 0


def _vector(data: bytearray, place: int) -> range:
    """Places of a vector's elements of four bytes; none if it is left out."""
    if not place:
        return range(0)
    start = _target(data, place)
    return range(start + 4, start + 4 + 4 * _i32(data, start), 4)

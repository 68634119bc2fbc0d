"""Constants of which a file holds only the elements, or blocks of them, that are not 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.flatbuffers.reader import TableReader
from armpy.errors import ParserError
from armpy.frontends.tflite.reader import enumerators
from armpy.ops.operation import Array
from armpy.tensor import MAX_RANK

_DENSE, _SPARSE = 0, 1
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _SparseDimension:
    """One dimension in the order in which elements are stored."""

    axis: int  # of the tensor
    size: int  # where the axis is split into blocks, the number or the size of these
    factor: int  # how far a step leads along the axis
    table: TableReader  # how it is stored


def densified(
    where: TableReader,  # the tensor, for messages
    sparsity: TableReader,
    shape: tuple[int, ...],
    stored: Array,  # shape (n,); the elements that are stored
) -> Array:
    """All elements of a sparse constant.

    Returns an array, dtype of `stored`, of the given shape.

    Raises
    ------
    ParserError
        If the file's description does not fit the shape or the elements.

    References
    ----------
    TFLite ``SparsityParameters``, ``FormatConverter::SparseToDense``; Chou, Kjolstad, Amarasinghe,
    "Format Abstraction for Sparse Tensor Algebra Compilers", 2018.
    """
    levels = _levels(where, sparsity, shape)
    places = np.zeros((1, len(shape)), np.int64)
    for level in levels:
        parents, steps = _children(where, level, len(places))
        places = places[parents]
        places[:, level.axis] += steps * level.factor
    if len(places) > len(stored):
        raise _damaged(where, f"{len(places)} elements", f"{len(stored)}")
    dense = np.zeros(shape, stored.dtype)
    dense[tuple(places.T)] = stored[: len(places)]  # padding follows
    return dense


def _levels(
    where: TableReader, sparsity: TableReader, shape: tuple[int, ...]
) -> list[_SparseDimension]:
    """The dimensions as they are stored, outermost first."""
    order: list[int] = sparsity.numbers("TraversalOrder")
    blocks: list[int] = sparsity.numbers("BlockMap")
    tables = sparsity.tables("DimMetadata", "dimension")
    rank, count = len(shape), len(shape) + len(blocks)
    fits = (
        count <= 2 * MAX_RANK
        and sorted(order) == list(range(count))
        and len(tables) == count
        and len(set(blocks)) == len(blocks)
        and all(0 <= axis < rank for axis in blocks)
    )
    if not fits:
        raise _damaged(where, f"an order of {rank} dimensions and their blocks", str(order))
    sizes = {
        axis: tables[order.index(rank + k)].integer("DenseSize") for k, axis in enumerate(blocks)
    }
    if any(size < 1 or shape[axis] % size for axis, size in sizes.items()):
        raise _damaged(where, "blocks that divide the dimensions", str(sizes))
    levels = []
    for table, dimension in zip(tables, order, strict=True):
        if dimension < rank:
            block = sizes.get(dimension, 1)
            levels.append(_SparseDimension(dimension, shape[dimension] // block, block, table))
        else:
            axis = blocks[dimension - rank]
            levels.append(_SparseDimension(axis, sizes[axis], 1, table))
    return levels


def _children(
    where: TableReader, level: _SparseDimension, count: int
) -> tuple[Positions, Positions]:
    """Return, for each element below a level, its place above it and the step along the level."""
    table = level.table
    form = table.integer("Format")
    if form == _DENSE:
        where.charge(count * level.size)  # as many rows or elements have to follow
        steps = np.arange(level.size)
        return np.repeat(np.arange(count), level.size), np.tile(steps, count)
    if form != _SPARSE:
        raise _damaged(where, "a dense or compressed dimension", str(form))
    segments, indices = _vector(table, "ArraySegments"), _vector(table, "ArrayIndices")
    lengths = np.diff(segments)
    fits = (
        len(segments) == count + 1
        and segments[0] == 0
        and segments[-1] == len(indices)
        and lengths.min(initial=0) >= 0
        and indices.min(initial=0) >= 0
        and indices.max(initial=0) < max(level.size, 1)
        and len(indices) <= math.prod((count, level.size))
    )
    if not fits:
        raise _damaged(where, f"rows of up to {level.size} indices", str(segments.tolist()[:8]))
    return np.repeat(np.arange(count), lengths), indices


def _vector(table: TableReader, field: str) -> Positions:
    """A vector of indices of 8, 16 or 32 bits."""
    names = enumerators("SparseIndexVector")
    number = table.integer(f"{field}Type")
    if number not in names or not number:
        raise table.error(f"{field} is missing")
    values: npt.NDArray[Any] = table.union(field, names[number]).vector("Values")  # Any: by field
    table.charge(values.nbytes)
    return values.astype(np.int64)


def _damaged(where: TableReader, expected: str, actual: str) -> ParserError:
    """An error about how a tensor is stored."""
    return where.error("the sparse constant is damaged", expected=expected, actual=actual)

"""Calls of kernels that read or write where indices say, or make indices."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class GatherCall(Call):
    """Arguments at the head of all kernels that gather runs of `run` bytes.

    Every batch has `count` places, and `outers` slices, `outer_pitch` bytes apart, that they are
    looked up in one after the other.
    """

    source: Pointer
    target: Pointer
    batches: int
    outers: int
    count: int
    run: int
    outer_pitch: int


@dataclass(frozen=True, slots=True)
class GatherRuns(GatherCall):
    """Gather by `offsets` in bytes, `count` of them per batch."""

    offsets: Pointer


@dataclass(frozen=True, slots=True)
class GatherByIndex(GatherCall):
    """Gather by indices that are known only when they are read."""

    parameters = ("index_bytes",)

    index_bytes: int
    indices: Pointer  # `depth` of them per place
    # Of each indexed axis its size, bytes from one of its elements to the next, and the least
    # index; those below 0 count from the end.
    axes: Pointer
    depth: int
    failure: Pointer  # where to say that an index is out of range


@dataclass(frozen=True, slots=True)
class ScatterByIndex(Call):
    """Write `count` runs of `run` bytes where indices say; `axes` and `failure` are a gather's."""

    parameters = ("format", "index_bytes", "reduction")

    format: str
    index_bytes: int
    reduction: str  # of the present and the written elements; see `armpy_numba_acc.tiles.updates`
    updates: Pointer
    target: Pointer
    indices: Pointer
    axes: Pointer
    depth: int
    count: int
    run: int
    failure: Pointer


@dataclass(frozen=True, slots=True)
class MoveElements(Call):
    """Move elements between where indices along an axis say, and their own order.

    `indexed` has `size` elements along the axis, `ordered` and `indices` have `count`; `outers`
    stand in front, `inner` after. With a reduction, as `ScatterByIndex` has it, elements go from
    `ordered` to `indexed`, else the other way. Indices are `least` or more; those below 0 count
    from the end.
    """

    parameters = ("format", "index_bytes", "reduction")

    format: str
    index_bytes: int
    reduction: str
    indexed: Pointer
    ordered: Pointer
    indices: Pointer
    outers: int
    size: int
    count: int
    inner: int
    least: int
    failure: Pointer


@dataclass(frozen=True, slots=True)
class PutRun(Call):
    """Write `run` bytes to one of `count` places; none where `index` names no place."""

    parameters = ("index_bytes",)

    index_bytes: int
    source: Pointer
    target: Pointer
    index: Pointer
    count: int
    run: int


@dataclass(frozen=True, slots=True)
class OneHot(Call):
    """Mark the positions along an axis that indices name; an index that names none marks none.

    The axis of `depth` positions stands after `outers` and in front of `inner` indices; `on` and
    `off` have one element each.
    """

    parameters = ("element_bytes", "index_bytes")

    element_bytes: int
    index_bytes: int
    indices: Pointer
    on: Pointer
    off: Pointer
    target: Pointer
    outers: int
    depth: int
    inner: int


@dataclass(frozen=True, slots=True)
class TopK(Call):
    """Find the `k` largest elements of `rows` of `size`, in falling order.

    `scratch` has room for `k` entries of 16 bytes per thread.
    """

    parameters = ("format", "index_bytes", "is_rising")

    format: str
    index_bytes: int
    is_rising: int  # whether to find the smallest elements, in rising order
    source: Pointer
    values: Pointer
    indices: Pointer
    rows: int
    size: int
    k: int
    larger_index_first: int
    scratch: Pointer

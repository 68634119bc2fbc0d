"""Operations that move elements without computing with them."""

from __future__ import annotations

import math

import numpy as np

from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs.call import ANY_RANK, RandomOperation, Recipe
from armpy_nnapi.conformance.random_graphs.recipes.activation import axis

_C = OperationCode


def concatenation(call: RandomOperation) -> None:
    """One to four tensors that differ along the axis."""
    shape = call.data("inputs")
    along = call.integer(0, len(shape) - 1)
    for _ in range(call.integer(0, 3)):
        size = shape[along] if call.chance() else call.integer(1, 5)
        call.data("inputs", (*shape[:along], size, *shape[along + 1 :]))
    call.scalar("axis", along)
    if call.chance():
        call.any_output_quant()


def factors(call: RandomOperation, size: int, count: int) -> list[int]:
    """Numbers whose product is a size, in any order."""
    parts = []
    for _ in range(count - 1):
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        parts.append(call.choose(*divisors))
        size //= parts[-1]
    return [int(n) for n in call.random.permutation([*parts, size])]


def reshape(call: RandomOperation) -> None:
    """Another shape of the same size, with one part of it left open at times."""
    shape = factors(call, math.prod(call.data("input")), call.integer(1, 4))
    if call.chance(0.3):
        shape[call.integer(0, len(shape) - 1)] = -1
    call.parameter("shape", shape)


def squeeze(call: RandomOperation) -> None:
    """Some of the axes that have the size 1, or all of them."""
    sizes = tuple(1 if call.chance() else dim for dim in call.shape(call.integer(1, 4)))
    shape = call.data("input", sizes) if call.chance() else call.data("input")
    ones = [i for i, dim in enumerate(shape) if dim == 1]
    if call.chance(0.4) or not ones:
        call.omit("axes")
        return
    chosen = call.random.permutation(ones)[: call.integer(1, len(ones))]
    call.parameter("axes", [int(i) - (len(shape) if call.chance(0.3) else 0) for i in chosen])


def transpose(call: RandomOperation) -> None:
    """Any order of axes; none for a matrix at times."""
    rank = len(call.data("input"))
    if rank == 2 and call.chance(0.4):
        call.omit("perm")
    else:
        call.parameter("perm", call.random.permutation(rank))


def expand_dims(call: RandomOperation) -> None:
    """A new axis anywhere."""
    rank = len(call.data("input"))
    call.scalar("axis", call.integer(-rank - 1, rank))


def tile(call: RandomOperation) -> None:
    """Each axis repeated up to three times."""
    rank = len(call.data("input", ranks=ANY_RANK))
    call.parameter("multiples", [call.integer(1, 3) for _ in range(rank)])


def fill(call: RandomOperation) -> None:
    """A shape, and the value of all elements."""
    call.parameter("dimensions", call.shape(call.integer(1, 4)))
    is_float = OPERAND_TRAITS[call.code("value")].dtype.kind == "f"
    call.scalar("value", call.real(-2, 2) if is_float else call.integer(-100, 100))


def rank(call: RandomOperation) -> None:
    """Any tensor."""
    if call.code("input") == OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL:
        call.per_channel("input", call.shape(call.integer(1, 4)))
    else:
        call.data("input", ranks=ANY_RANK)


def pad(call: RandomOperation) -> None:
    """Up to three elements on each side; their values if the operation has them."""
    count = len(call.data("input"))
    call.parameter("paddings", [[call.integer(0, 3), call.integer(0, 3)] for _ in range(count)])
    if call.has("value"):
        call.scalar("value", call.real(-2, 2) if call.is_float("input") else call.integer(0, 127))


def slice_(call: RandomOperation) -> None:
    """A part of each axis, or the rest of it."""
    shape = call.data("input", ranks=ANY_RANK)
    begin = [call.integer(0, dim - 1) for dim in shape]
    size = [
        -1 if call.chance(0.2) else call.integer(1, dim - first)
        for dim, first in zip(shape, begin, strict=True)
    ]
    call.parameter("begin", begin)
    call.parameter("size", size)


def strided_slice(call: RandomOperation) -> None:
    """A part of each axis forwards or backwards; some axes shrunk to one element."""
    shape = call.data("input")
    parts = [_part(call, dim) for dim in shape]
    shrunk = [call.chance(0.2) for _ in shape]
    for i, dim in enumerate(shape):
        if shrunk[i]:
            first = call.integer(0, dim - 1)
            parts[i] = (first, first + 1, 1, False, False)
    for position, name in enumerate(("begin", "end", "strides")):
        call.parameter(name, [part[position] for part in parts])
    call.scalar("begin_mask", _mask([part[3] for part in parts]))
    call.scalar("end_mask", _mask([part[4] for part in parts]))
    call.scalar("shrink_axis_mask", _mask(shrunk))


def _part(call: RandomOperation, dim: int) -> tuple[int, int, int, bool, bool]:
    """Begin, end, stride and whether begin and end do not count, for a part of an axis."""
    first, last = sorted((call.integer(0, dim - 1), call.integer(0, dim - 1)))
    stride = call.integer(1, 3)
    ignores_begin, ignores_end = call.chance(0.2), call.chance(0.2)
    if call.chance(0.3):
        # An end of -1 would count from the end, one before the first element does not.
        return last, first - 1 if first else -dim - 1, -stride, ignores_begin, ignores_end
    begin = first - dim if call.chance(0.3) else first
    return begin, last + 1, stride, ignores_begin, ignores_end


def _mask(bits: list[bool]) -> int:
    """Bits as a number, the first one lowest."""
    return sum(bit << i for i, bit in enumerate(bits))


def split(call: RandomOperation) -> None:
    """Equal parts along an axis."""
    shape = call.data("input", ranks=ANY_RANK)
    size = shape[axis(call, len(shape))]
    parts = call.choose(*(d for d in range(1, size + 1) if size % d == 0))
    call.scalar("num_splits", parts)
    call.num_outputs = parts


def depth_to_space(call: RandomOperation) -> None:
    """Channels that a block's area divides."""
    block = call.integer(1, 3)
    nchw = layout(call)
    n, h, w, c = call.shape(4, high=3)
    c *= block**2
    call.data("input", (n, c, h, w) if nchw else (n, h, w, c))
    call.scalar("block_size", block)


def space_to_depth(call: RandomOperation) -> None:
    """Height and width that a block's side divides."""
    block = call.integer(1, 3)
    nchw = layout(call)
    n, h, w, c = call.shape(4, high=3)
    h, w = h * block, w * block
    call.data("input", (n, c, h, w) if nchw else (n, h, w, c))
    call.scalar("block_size", block)


def batch_to_space(call: RandomOperation) -> None:
    """A batch that a block's area divides."""
    block = [call.integer(1, 3), call.integer(1, 3)]
    layout(call)
    batch = call.integer(1, 2) * block[0] * block[1]
    call.data("input", (batch, *call.shape(3, high=4)))
    call.parameter("block_shape", block)


def space_to_batch(call: RandomOperation) -> None:
    """Height and width that a block's sides divide once they are padded."""
    block = [call.integer(1, 3), call.integer(1, 3)]
    nchw = layout(call)
    shape = call.data("input", ranks=(4,))
    sizes = shape[2:] if nchw else shape[1:3]
    paddings = []
    for size, step in zip(sizes, block, strict=True):
        before = call.integer(0, 2)
        paddings.append([before, -(size + before) % step])
    call.parameter("block_shape", block)
    call.parameter("paddings", paddings)


def layout(call: RandomOperation) -> bool:
    """Choose the layout of images, if there is a choice; whether it is NCHW."""
    nchw = call.has("nchw") and call.chance()
    call.scalar("nchw", nchw)
    return nchw


def channel_shuffle(call: RandomOperation) -> None:
    """Groups that an axis splits into."""
    shape = call.data("input")
    size = shape[axis(call, len(shape))]
    call.scalar("num_groups", call.choose(*(d for d in range(1, size + 1) if size % d == 0)))


def gather(call: RandomOperation) -> None:
    """Indices along an axis."""
    shape = call.data("input")
    size = shape[axis(call, len(shape))]
    indices = call.random.integers(0, size, call.shape(call.integer(1, 2)))
    call.elements("indices", indices)


def embedding_lookup(call: RandomOperation) -> None:
    """Indices along the first axis."""
    size = call.data("values", ranks=(2, 3, 4))[0]
    call.elements("lookups", call.random.integers(0, size, call.shape(1)))


def hashtable_lookup(call: RandomOperation) -> None:
    """Ascending keys, and lookups of which some are not among them."""
    size = call.data("values", ranks=ANY_RANK)[0]
    call.elements("keys", np.sort(call.random.choice(3 * size, size, replace=False)))
    call.elements("lookups", call.random.integers(0, 3 * size, call.shape(1)))
    call.output("hits", 1.0)


RECIPES: dict[OperationCode, Recipe] = {
    _C.CONCATENATION: concatenation,
    _C.RESHAPE: reshape,
    _C.SQUEEZE: squeeze,
    _C.TRANSPOSE: transpose,
    _C.EXPAND_DIMS: expand_dims,
    _C.TILE: tile,
    _C.FILL: fill,
    _C.RANK: rank,
    **dict.fromkeys((_C.PAD, _C.PAD_V2), pad),
    _C.SLICE: slice_,
    _C.STRIDED_SLICE: strided_slice,
    _C.SPLIT: split,
    _C.DEPTH_TO_SPACE: depth_to_space,
    _C.SPACE_TO_DEPTH: space_to_depth,
    _C.BATCH_TO_SPACE_ND: batch_to_space,
    _C.SPACE_TO_BATCH_ND: space_to_batch,
    _C.CHANNEL_SHUFFLE: channel_shuffle,
    _C.GATHER: gather,
    _C.EMBEDDING_LOOKUP: embedding_lookup,
    _C.HASHTABLE_LOOKUP: hashtable_lookup,
}

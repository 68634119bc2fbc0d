"""Data movement against LiteRT's reference kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armpy.ops import (
    BatchToSpaceNd,
    BroadcastTo,
    Concat,
    DepthToSpace,
    ExpandDims,
    Fill,
    Gather,
    GatherNd,
    OneHot,
    Pad,
    PaddingMode,
    Range,
    Rank,
    Reshape,
    ReverseV2,
    Shape,
    Slice,
    SpaceToBatchNd,
    SpaceToDepth,
    Splitter,
    Squeeze,
    Stack,
    StridedSlice,
    Tile,
    Transpose,
    Unstack,
)
from armpy.tensor import TensorInfo
from armpy.types import DataType
from tests.differential.litert_oracle import litert_or_skip
from tests.differential.single_operator import (
    QUANTIZED_TYPES,
    check_operator,
    integers,
    random_info,
    random_operand,
    random_shape,
    random_values,
)

litert_or_skip()

NUM_CASES = 200
_TYPES = (DataType.FLOAT32, DataType.SIGNED32, DataType.QASYMM_S8, DataType.QASYMM_U8)
_SIGNED = (DataType.SIGNED32, DataType.SIGNED64)


@pytest.fixture(name="rng")
def make_rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(7)


def any_of(rng: np.random.Generator, *choices: DataType) -> DataType:
    """One of some data types."""
    return choices[int(rng.integers(len(choices)))]


def random_pads(rng: np.random.Generator, count: int, most: int = 3) -> list[list[int]]:
    """(before, after) for some axes."""
    return [[int(n) for n in rng.integers(0, most + 1, 2)] for _ in range(count)]


def test_pad(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        pads = integers(random_pads(rng, operand[1].ndim))
        check_operator(Pad(), "PAD", [operand, pads], order=(0, None, 1))


def test_pad_with_a_stored_value(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        info, values = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        pads = integers(random_pads(rng, values.ndim))
        value_info = replace(info, shape=(1,))
        value = (value_info, random_values(rng, value_info))
        check_operator(Pad(), "PADV2", [(info, values), pads, value], order=(0, 2, 1))


@pytest.mark.parametrize("mode", [PaddingMode.REFLECT, PaddingMode.SYMMETRIC])
def test_mirrored_pad(rng: np.random.Generator, mode: PaddingMode) -> None:
    for _ in range(NUM_CASES // 2):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng, lowest=3, highest=6))
        pads = integers(random_pads(rng, operand[1].ndim, most=2))
        check_operator(
            Pad(padding_mode=mode),
            "MIRROR_PAD",
            [operand, pads],
            options={"mode": mode.name},
            order=(0, None, 1),
        )


def test_transpose(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES, DataType.QSYMM_S16), random_shape(rng))
        check_operator(
            Transpose(), "TRANSPOSE", [operand, integers(rng.permutation(operand[1].ndim))]
        )


def test_reshape(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        target = list(rng.permutation(operand[1].shape))
        target[int(rng.integers(len(target)))] = -1
        check_operator(Reshape(), "RESHAPE", [operand, integers(target)], options={})


def test_expand_dims(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        axis = int(rng.integers(-operand[1].ndim - 1, operand[1].ndim + 1))
        check_operator(ExpandDims(), "EXPAND_DIMS", [operand, integers(axis)], options={})


def test_squeeze(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng, highest=2))
        ones = [axis for axis, size in enumerate(operand[1].shape) if size == 1]
        axes = tuple(axis for axis in ones if rng.integers(2))
        check_operator(
            Squeeze(axes), "SQUEEZE", [operand], options={"squeeze_dims": np.array(axes, np.int32)}
        )


def test_tile(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        times = integers(rng.integers(1, 4, operand[1].ndim), any_of(rng, *_SIGNED))
        check_operator(Tile(), "TILE", [operand, times], options={})


def test_broadcast_to(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        target = random_shape(rng)
        shape = [size if rng.integers(2) else 1 for size in target]
        operand = random_operand(rng, any_of(rng, *_TYPES), shape[int(rng.integers(len(shape))) :])
        check_operator(
            BroadcastTo(), "BROADCAST_TO", [operand, integers(target, any_of(rng, *_SIGNED))]
        )


def test_reverse(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(
            rng, any_of(rng, *_TYPES[:1], DataType.QASYMM_U8), random_shape(rng)
        )
        axis = int(rng.integers(operand[1].ndim))
        check_operator(ReverseV2(), "REVERSE_V2", [operand, integers([axis])], options={})


@pytest.mark.parametrize("data_type", [*_TYPES, DataType.QSYMM_S16], ids=lambda t: t.name)
def test_concatenation(rng: np.random.Generator, data_type: DataType) -> None:
    for _ in range(NUM_CASES // 4):
        shape = list(random_shape(rng))
        axis = int(rng.integers(len(shape)))
        info = random_info(rng, data_type, shape)
        operands = []
        for _ in range(int(rng.integers(1, 4))):
            shape[axis] = int(rng.integers(1, 6))
            if data_type is DataType.QASYMM_U8 and rng.integers(4):
                info = random_info(rng, data_type, shape)
            info = replace(info, shape=tuple(shape))
            operands.append((info, random_values(rng, info)))
        axis -= len(shape) * int(rng.integers(2))
        check_operator(
            Concat(axis),
            "CONCATENATION",
            operands,
            options={"axis": axis},
            outputs=[replace(info, shape=None)],
            inputs=range(len(operands)),
        )


def test_stack(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        info = random_info(rng, any_of(rng, *_TYPES), random_shape(rng, int(rng.integers(0, 4))))
        operands = [(info, random_values(rng, info)) for _ in range(int(rng.integers(1, 4)))]
        rank = len(info.known_shape) + 1
        axis = int(rng.integers(-rank, rank))
        check_operator(
            Stack(axis),
            "PACK",
            operands,
            options={"axis": axis, "values_count": len(operands)},
            inputs=range(len(operands)),
        )


def test_unstack(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        axis = int(rng.integers(-operand[1].ndim, operand[1].ndim))
        num = operand[1].shape[axis]
        check_operator(Unstack(num, axis), "UNPACK", [operand], options={"axis": axis, "num": num})


def test_split(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        shape = list(random_shape(rng))
        axis, count = int(rng.integers(len(shape))), int(rng.integers(1, 4))
        shape[axis] *= count
        operand = random_operand(rng, any_of(rng, *_TYPES), shape)
        check_operator(
            Splitter(count),
            "SPLIT",
            [integers(axis - len(shape) * int(rng.integers(2))), operand],
            options={"num_splits": count},
            outputs=[replace(operand[0], shape=None)] * count,
            order=(1, None, 0),
            inputs=(1,),
        )


def test_split_into_given_sizes(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        shape = list(random_shape(rng))
        axis = int(rng.integers(len(shape)))
        sizes = list(random_shape(rng))
        shape[axis] = sum(sizes)
        operand = random_operand(rng, any_of(rng, *_TYPES), shape)
        if rng.integers(2):
            sizes[int(rng.integers(len(sizes)))] = -1
        check_operator(
            Splitter(len(sizes)),
            "SPLIT_V",
            [operand, integers(sizes), integers(axis)],
            options={"num_splits": len(sizes)},
        )


def test_slice(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        begin = [int(rng.integers(size)) for size in operand[1].shape]
        size = [
            int(rng.integers(1, dim - first + 1)) if rng.integers(3) else -1
            for first, dim in zip(begin, operand[1].shape, strict=True)
        ]
        positions = any_of(rng, *_SIGNED)
        check_operator(
            Slice(), "SLICE", [operand, integers(begin, positions), integers(size, positions)]
        )


def test_strided_slice(rng: np.random.Generator) -> None:
    for _ in range(3 * NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng, highest=7))
        rank = operand[1].ndim
        count = int(rng.integers(1, rank + 1))
        begin = rng.integers(-8, 9, count)
        stride = rng.choice([-2, -1, 1, 1, 2, 3], count)
        shrink = int(rng.integers(1 << count)) if rng.integers(3) == 0 else 0
        for entry in range(count):
            if shrink >> entry & 1:
                begin[entry] = rng.integers(operand[1].shape[entry])
                stride[entry] = 1
        masks = {
            "begin_mask": int(rng.integers(1 << count)),
            "end_mask": int(rng.integers(1 << count)),
            "shrink_axis_mask": shrink,
        }
        check_operator(
            StridedSlice().with_attributes(**masks),
            "STRIDED_SLICE",
            [
                operand,
                integers(begin),
                integers(rng.integers(-8, 9, count)),
                integers(stride),
            ],
            options=masks,
        )


def test_strided_slice_with_ellipsis_and_new_axes(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng, 3))
        count = int(rng.integers(1, 4))
        masks = {
            "ellipsis_mask": 1 << int(rng.integers(count)) if rng.integers(3) else 0,
            "new_axis_mask": int(rng.integers(1 << count)),
        }
        check_operator(
            StridedSlice().with_attributes(**masks),
            "STRIDED_SLICE",
            [
                operand,
                integers(rng.integers(0, 2, count)),
                integers(rng.integers(2, 5, count)),
                integers([1] * count),
            ],
            options=masks,
        )


def test_strided_slice_with_an_end_that_counts_from_the_begin(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng, 2, 6, 9))
        check_operator(
            StridedSlice(end_is_offset=True),
            "STRIDED_SLICE",
            [
                operand,
                integers(rng.integers(0, 3, 2)),
                integers(rng.integers(1, 4, 2)),
                integers(rng.integers(1, 3, 2)),
            ],
            options={"offset": True},
        )


def test_gather(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        shape = operand[1].shape
        axis = int(rng.integers(len(shape)))
        batch = int(rng.integers(axis + 1))
        indices_shape = (*shape[:batch], *random_shape(rng, int(rng.integers(0, 3))))
        indices = integers(
            rng.integers(0, shape[axis], indices_shape), any_of(rng, *_SIGNED, DataType.SIGNED16)
        )
        check_operator(
            Gather(axis, batch),
            "GATHER",
            [operand, indices],
            options={"axis": axis, "batch_dims": batch},
            inputs=(0, 1),
        )


def test_gather_nd(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES), random_shape(rng))
        shape = operand[1].shape
        depth = int(rng.integers(1, len(shape) + 1))
        count = random_shape(rng, int(rng.integers(1, 3)))
        indices = np.stack([rng.integers(0, size, count) for size in shape[:depth]], -1)
        check_operator(
            GatherNd(),
            "GATHER_ND",
            [operand, integers(indices, any_of(rng, *_SIGNED))],
            options={},
            inputs=(0, 1),
        )


def test_depth_to_space_and_back(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        block = int(rng.integers(1, 4))
        n, h, w, c = random_shape(rng, 4, 1, 3)
        operand = random_operand(rng, any_of(rng, *_TYPES), (n, h, w, c * block * block))
        options = {"block_size": block}
        check_operator(DepthToSpace(block), "DEPTH_TO_SPACE", [operand], options=options)
        operand = random_operand(rng, any_of(rng, *_TYPES), (n, h * block, w * block, c))
        check_operator(SpaceToDepth(block), "SPACE_TO_DEPTH", [operand], options=options)


def test_space_to_batch(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        rank = int(rng.integers(3, 5))
        block = rng.integers(1, 4, rank - 2)
        shape = list(random_shape(rng, rank))
        pads = random_pads(rng, rank - 2)
        for axis, size in enumerate(block):
            pads[axis][1] += -(shape[axis + 1] + sum(pads[axis])) % size
        operand = random_operand(rng, any_of(rng, *_TYPES), shape)
        check_operator(
            SpaceToBatchNd(),
            "SPACE_TO_BATCH_ND",
            [operand, integers(block), integers(pads)],
        )


def test_batch_to_space(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        rank = int(rng.integers(3, 5))
        block = rng.integers(1, 4, rank - 2)
        n, *rest = random_shape(rng, rank, 2, 4)
        crops = random_pads(rng, rank - 2, most=0)
        for axis, size in enumerate(block):
            crops[axis] = [int(c) for c in rng.integers(0, size, 2)]
        operand = random_operand(rng, any_of(rng, *_TYPES), (n * int(np.prod(block)), *rest))
        check_operator(
            BatchToSpaceNd(),
            "BATCH_TO_SPACE_ND",
            [operand, integers(block), integers(crops)],
        )


def test_fill(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        value = random_operand(rng, any_of(rng, *_TYPES[:3]), ())
        dims = integers(random_shape(rng, int(rng.integers(0, 5))), any_of(rng, *_SIGNED))
        check_operator(
            Fill(),
            "FILL",
            [dims, value],
            outputs=[replace(value[0], shape=None)],
            order=(1, 0),
            inputs=(1,),
        )


def test_shape_and_rank(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        operand = random_operand(rng, any_of(rng, *_TYPES, *QUANTIZED_TYPES), random_shape(rng))
        out_type = any_of(rng, *_SIGNED)
        check_operator(
            Shape(out_type),
            "SHAPE",
            [operand],
            options={"out_type": "INT32" if out_type is DataType.SIGNED32 else "INT64"},
            outputs=[TensorInfo(None, out_type)],
        )
        check_operator(Rank(), "RANK", [operand], outputs=[TensorInfo(None, DataType.SIGNED32)])


def test_range(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        data_type = any_of(rng, DataType.FLOAT32, DataType.SIGNED32, DataType.SIGNED64)
        numbers = rng.uniform(-20, 20, 3) if data_type.is_float else rng.integers(-20, 21, 3)
        start, limit, delta = numbers
        if start == limit:  # LiteRT cannot hand out an output that turns out to be empty
            continue
        delta = np.copysign(abs(delta) / 4 + 1, limit - start)
        check_operator(
            Range(output_type=data_type),
            "RANGE",
            [integers(start, data_type), integers(limit, data_type), integers(delta, data_type)],
            outputs=[TensorInfo(None, data_type)],
            inputs=(0, 1, 2),
        )


def test_one_hot(rng: np.random.Generator) -> None:
    for _ in range(NUM_CASES):
        indices = rng.integers(-1, 5, random_shape(rng, int(rng.integers(1, 4))))
        data_type = any_of(rng, DataType.FLOAT32, DataType.SIGNED32, DataType.BOOLEAN)
        axis = int(rng.integers(-1, indices.ndim + 1))
        values = [random_operand(rng, data_type, ()) for _ in range(2)]
        check_operator(
            OneHot(axis=axis),
            "ONE_HOT",
            [integers(indices, any_of(rng, *_SIGNED)), integers(4), *values],
            options={"axis": axis},
            outputs=[TensorInfo(None, data_type)],
            order=(0, 2, 3, 1),
        )

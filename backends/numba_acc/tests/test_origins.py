"""What packed weights say of where a layer's constants lie: read there, they are the constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.processors.targets import PROCESSORS, named_target
from armpy_numba_acc.packing.depthwise import pack_f32, pack_u8
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.origins import Origin, PackedArray, Part, views_of
from armpy_numba_acc.packing.panels import with_depth
from armpy_numba_acc.packing.vector_matrix import Word, pack_columns, pack_rows
from armpy_numba_acc.packing.weights_dynamic import pack_weights_dynamic
from armpy_numba_acc.packing.weights_i16 import Pieces, pack_channels, pack_pairs
from armpy_numba_acc.packing.weights_real import (
    pack_panels_bf16,
    pack_panels_bf16_paired,
    pack_panels_f32,
)
from armpy_numba_acc.packing.weights_u8 import pack_weights_sums, pack_weights_u8

from armpy.ops.operation import Array
from armpy.store.archive.packed_views import read_view

OFFSET = 192
ISAS = [pytest.param(named_target(name).isa, id=name) for name in PROCESSORS]
by_isa = pytest.mark.parametrize("isa", ISAS)


def floats(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def integers(dtype: str, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    high = min(int(limits.max), 1000)
    return np.random.default_rng(7).integers(max(limits.min, -high), high, shape).astype(dtype)


def read(*all_packed: PackedArray) -> list[Array]:
    """The constants that are read out of packed arrays which lie one after the other."""
    blob, origins = np.full(OFFSET, 77, np.uint8), []
    for packed in all_packed:
        origins += [(blob.size, origin) for origin in packed.origins]
        plain = np.ascontiguousarray(packed.array).reshape(-1).view(np.uint8)
        blob = np.concatenate([blob, plain, np.full(OFFSET, 77, np.uint8)])
    return [read_view(view, blob) for view in views_of(origins)]


def check(found: Sequence[Array], *constants: Array) -> None:
    """Hold what was read to the constants."""
    assert len(found) == len(constants)
    for array, constant in zip(found, constants, strict=True):
        assert array.dtype == constant.dtype
        np.testing.assert_array_equal(array, constant)


def test_float_panels() -> None:
    weights, bias = floats(70, 9, 20), floats(70)
    check(read(pack_panels_f32(weights, bias, 32)), weights, bias)
    check(read(pack_panels_f32(weights, None, 32)), weights)


def test_a_constant_with_its_axes_swapped_is_read_as_it_is() -> None:
    matrix = floats(50, 70)
    (array,) = read(pack_panels_f32(matrix.T[:, None], None, 32))
    np.testing.assert_array_equal(array.reshape(50, 70), matrix)


def test_of_bfloat16_the_bias_is_read_alone() -> None:
    weights, bias = floats(70, 9, 21), floats(70)
    for pack in (pack_panels_bf16, pack_panels_bf16_paired):
        check(read(pack(weights, bias, 32)), bias)
        check(read(pack(weights, None, 32)))


@by_isa
@pytest.mark.parametrize(("dtype", "zero_point"), [("uint8", 131), ("int8", 0), ("uint8", 3)])
def test_panels_of_bytes(isa: Isa, dtype: str, zero_point: int) -> None:
    weights, bias = integers(dtype, 70, 9, 7), integers("int32", 70)
    factors = Factors.of(np.full(70, 0.01), rounds_twice=True)
    width = 2 * isa.lanes
    packed = pack_weights_u8(isa, weights, zero_point, bias, factors, 3, width)
    check(read(packed.packed)[:1], weights)
    sums = pack_weights_sums(isa, weights, zero_point, bias, 3, width)
    check(read(sums.packed)[:1], weights)
    # For matrix units, blocks are filled up.
    arranged = partial(with_depth, depth=24)
    packed = pack_weights_u8(
        isa,
        weights,
        zero_point,
        bias,
        factors,
        3,
        width,
        arranged=arranged,
        group=8 if isa.dot else 4,
    )
    check(read(packed.packed)[:1], weights)


@by_isa
def test_a_bias_that_nothing_joins(isa: Isa) -> None:
    weights, bias = integers("int8", 70, 1, 8), integers("int32", 70)
    weights[..., 4:] = -weights[..., :4]
    packed = pack_weights_sums(isa, weights, 0, bias, 0, isa.lanes)
    check(read(packed.packed), weights, bias)


@by_isa
def test_panels_for_floats_that_are_quantised(isa: Isa) -> None:
    weights, bias = integers("int8", 70, 2, 30), floats(70)
    check(read(pack_weights_dynamic(isa, weights, floats(70), bias, isa.lanes)), weights, bias)


@by_isa
@pytest.mark.parametrize("shape", [(40, 9, 7), (3, 1, 4000), (4, 25, 511)])
def test_pairs_for_16_bits(isa: Isa, shape: tuple[int, ...]) -> None:
    weights = integers("int8", *shape)
    pieces = Pieces.of(weights)
    packed = pack_pairs(isa, pieces.values, isa.lanes).after(Part(weights, pieces.cut))
    check(read(packed), weights)
    channels = weights[:, 0, :7]
    check(read(pack_channels(channels, isa.lanes)), np.ascontiguousarray(channels))


def test_channels_of_floats_whose_last_block_overlaps() -> None:
    weights, bias = floats(9, 20), floats(20)
    check(read(pack_f32(weights, bias, 16)), weights, bias)


@pytest.mark.parametrize(("channels", "width"), [(72, 32), (20, 16), (12, 12)])
@pytest.mark.parametrize("has_words", [False, True])
def test_channels_of_bytes(channels: int, width: int, has_words: bool) -> None:
    weights, bias = integers("int8", 8, channels), integers("int32", channels)
    factors = Factors.of(np.full(channels, 0.01), rounds_twice=True)
    lines = (weights.astype(np.int32) - 5).reshape(2, 4, channels)
    packed = pack_u8(lines, bias, factors, width, has_words)
    part = Part(weights, lambda values: values.reshape(2, 4, channels))
    # Weights that are multiplied in words may be any, less their zero point; bytes wrap around.
    check(read(packed.after(part, 5)), weights, bias)


@by_isa
@pytest.mark.parametrize("columns", [1000, 8, 3])
@pytest.mark.parametrize("word", [np.dtype(np.int8), np.dtype(np.int16)])
def test_matrices_that_vectors_are_multiplied_with(word: Word, columns: int, isa: Isa) -> None:
    weights, bias = floats(columns, 37), floats(columns)
    check(read(pack_columns(isa, weights, bias, weights.dtype)), weights, bias)
    numbers, added = integers("int8", columns, 37), integers("int32", columns)
    part = Part(numbers, lambda values: values)
    values = numbers.astype(np.int64) - 3  # bytes wrap around
    check(read(pack_columns(isa, values, added, word).after(part, 3)), numbers, added)
    check(read(pack_rows(isa, values, word).after(part, 3)), numbers)


def test_parts_of_a_constant_are_read_as_one() -> None:
    weights = floats(40, 2, 6)

    def tap_of(tap: int, values: Array) -> Array:
        return values[:, tap : tap + 1]

    packed = [
        pack_panels_f32(tap_of(tap, weights), None, 16).after(
            Part(weights, partial(tap_of, tap), "layer")
        )
        for tap in range(2)
    ]
    check(read(*packed), weights)
    assert read(packed[0]) == []


def test_elements_as_they_are() -> None:
    elements = integers("int8", 5, 30)
    flipped = elements.view(np.uint8) ^ np.uint8(0x80)
    check(read(PackedArray(flipped, (Origin.plain(elements, -128),))), elements)

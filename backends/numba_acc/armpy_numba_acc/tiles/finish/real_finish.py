"""Conversion of a tile's sums to floats in memory."""

from __future__ import annotations

from armpy_numba_acc.llvm.values import (
    F32,
    I32,
    I64,
    CodeValue,
    at_least,
    at_most,
    smaller,
)
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.tiles.elementwise.elements import load_elements, store_elements
from armpy_numba_acc.tiles.products.engine import ROOM_BYTES, Finish, Shape, Tile


class RealFinish(Finish):
    """``clamp(bias + sum + residual, low, high)``; a panel's head is its bias.

    Parameters
    ----------
    residual, output : {"f32", "bf16", ""}
        How elements are stored; empty where there is no residual.
    """

    num_heads = 1

    def __init__(self, residual: str = "", output: str = "f32") -> None:
        self._residual, self._output = residual, output

    @property
    def begins_with_bias(self) -> bool:
        return True

    def head_bytes(self, shape: Shape) -> int:
        return 4 * self.num_heads * shape.width

    def first(self, tile: Tile) -> list[CodeValue]:
        return tile.line(tile.weights, F32) * tile.rows

    def reals(self, tile: Tile, totals: list[CodeValue]) -> list[CodeValue]:
        """The sums as floats."""
        return totals

    def write(self, tile: Tile, totals: list[CodeValue]) -> None:
        call, kind = tile.call, self._output
        rows = tile.by_row(self.reals(tile, totals))
        targets = tile.places(call.target, call.out_pitch, FORMAT_BYTES[kind])
        others: list[CodeValue] = []
        if self._residual:
            others = tile.places(call.residual, call.residual_pitch, FORMAT_BYTES[self._residual])
        low, high = call.low, call.high

        def write(masks: list[CodeValue | None]) -> None:
            for row, values in enumerate(rows):
                for total, column, mask in zip(values, tile.shape.starts, masks, strict=True):
                    lanes, value = total.count, total
                    if others:
                        value += load_elements(others[row], self._residual, column, lanes, mask)
                    value = at_least(low.splat(lanes), value)  # NaN stays
                    value = at_most(high.splat(lanes), value)
                    store_elements(value, targets[row], kind, column, mask)

        tile.write(write)


class DynamicFinish(RealFinish):
    """``clamp(sum * scale * weight_scale + bias, low, high)`` of sums that are exact in int32.

    A panel's head is its sums of weights, its scales and its bias. Each row has a range: a scale,
    and the factors of the sums of weights, which make up for the zero point.
    """

    num_heads = 3

    @property
    def begins_with_bias(self) -> bool:
        return False

    def begin_rows(self, tile: Tile) -> None:
        """Find the ranges of rows."""
        last = tile.count - 1
        for row in range(tile.rows):
            number = tile.pixel + smaller(last.like(row), last)
            place = tile.call.ranges + number / tile.call.pixels_per_range * ROOM_BYTES
            tile.room.store(place, row)

    def first(self, tile: Tile) -> list[CodeValue]:
        sums = tile.line(tile.weights, I32)
        result = []
        for row in range(tile.rows):
            factor = tile.room.load(I64, row).load(I32, 1)
            result += [total * factor.splat(total.count) for total in sums]
        return result

    def reals(self, tile: Tile, totals: list[CodeValue]) -> list[CodeValue]:
        size = 4 * tile.shape.width
        scales, bias = (tile.line(tile.weights + line * size, F32) for line in (1, 2))
        result = []
        for row, sums in enumerate(tile.by_row(totals)):
            scale = tile.room.load(I64, row).load(F32)
            for total, row_scale, start in zip(sums, scales, bias, strict=True):
                factor = scale.splat(total.count) * row_scale
                result.append(total.to_float().times_plus(factor, start))
        return result

"""Samples images and volumes at positions of a grid."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import stack_memory
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.images import GridSample
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.grid_sampling import make_taps, make_weighted_sum, num_taps


def make(isa: Isa, mode: str, padding: str, num_axes: int) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the samples."""
    read, count = reader(GridSample), num_taps(mode, num_axes)
    taps, add_up = make_taps(mode, padding, num_axes), make_weighted_sum(count)
    memory, coordinate_bytes = stack_memory(16 * count), num_axes * 4

    def grid_sample(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        offsets = memory()
        weights = offsets + 8 * count
        first, last = share_items(call.images * call.samples, shares, num_shares)
        for number in range(first, last):
            source = call.source + number // call.samples * call.image_pitch
            taps(
                offsets, weights, call.grid + number * coordinate_bytes, call.sizes, call.is_aligned
            )
            add_up(
                call.target + number * call.channels * 4, source, offsets, weights, call.channels
            )

    return grid_sample

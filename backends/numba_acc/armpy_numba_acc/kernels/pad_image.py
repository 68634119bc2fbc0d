"""Padding of images: copies them into larger ones and fills the borders."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.images import PadImage
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run, make_fill_run


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the rows."""
    fill_run, copy_run = make_fill_run(isa), make_copy_run(isa)
    read = reader(PadImage)
    narrow = 2 * isa.vector_bytes

    def pad_image(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        height, row_bytes, target = call.height, call.row_bytes, call.target
        top, bottom, left, right = call.top, call.bottom, call.left_bytes, call.right_bytes
        rows = top + height + bottom
        pitch = left + row_bytes + right
        first, last = share_items(call.images * rows, shares, num_shares)
        image = first // rows
        y = first - image * rows - top
        origin = call.source + (image * height + min(max(y, 0), height)) * row_bytes
        is_narrow = pitch <= narrow
        if is_narrow:  # to find out where the borders are takes longer than to fill all
            fill_run(target + first * pitch, (last - first) * pitch, call.fill)
        for number in range(first, last):
            place = target + number * pitch
            before, after = pitch, 0
            if 0 <= y < height:
                copy_run(place + left, origin, row_bytes)
                origin += row_bytes
                before, after = left, right
            if not is_narrow:
                for size in (before, after):
                    fill_run(place, size, call.fill)
                    place += left + row_bytes
            y += 1
            if y == height + bottom:
                y = -top

    return pad_image

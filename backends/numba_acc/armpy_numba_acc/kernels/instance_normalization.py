"""Instance normalisation: one mean and variance for each channel of each image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import float64

from armpy_numba_acc.llvm.arithmetic.reals import square_root_f64
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_f32, load_f64, store_f32, store_f64
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.rows import InstanceNormalization
from armpy_numba_acc.machine.isa import Isa


@inlined
def _join(sums: Pointer, channels: int, last: int) -> None:
    """Add the sums of further pixels to those of the first one."""
    for c in range(channels, last):
        store_f64(sums, c % channels, load_f64(sums, c % channels) + load_f64(sums, c))


@inlined
def _repeat(numbers: Pointer, channels: int, last: int) -> None:
    """Copy the numbers of the first pixel to further ones."""
    for c in range(channels, last):
        store_f64(numbers, c, load_f64(numbers, c % channels))


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the channels.

    Sums are of float64: there may be very many pixels.
    """
    read = reader(InstanceNormalization)

    def instance_normalization(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        pixels, channels, width, means = call.pixels, call.channels, call.width, call.sums
        factors = means + 8 * channels * width
        epsilon = float64(call.epsilon)
        first, last = share(channels, shares, num_shares)
        # Several pixels side by side only where one thread has all of the channels.
        last = first + (last - first) * width
        for image in range(call.images):
            source = call.source + 4 * image * pixels * channels
            target = call.target + 4 * image * pixels * channels
            for c in range(first, last):
                store_f64(means, c, 0.0)
                store_f64(factors, c, 0.0)
            for pixel in range(0, pixels, width):
                row, end = source + 4 * pixel * channels, min(last, (pixels - pixel) * channels)
                for c in range(first, end):
                    store_f64(means, c, load_f64(means, c) + load_f32(row, c))
            _join(means, channels, last)
            for c in range(first, min(last, channels)):
                store_f64(means, c, load_f64(means, c) / pixels)
            _repeat(means, channels, last)
            for pixel in range(0, pixels, width):
                row, end = source + 4 * pixel * channels, min(last, (pixels - pixel) * channels)
                for c in range(first, end):
                    difference = load_f32(row, c) - load_f64(means, c)
                    store_f64(factors, c, load_f64(factors, c) + difference * difference)
            _join(factors, channels, last)
            for c in range(first, min(last, channels)):
                variance = load_f64(factors, c) / pixels
                store_f64(factors, c, call.gamma / square_root_f64(variance + epsilon))
            _repeat(factors, channels, last)
            for pixel in range(0, pixels, width):
                row, end = source + 4 * pixel * channels, min(last, (pixels - pixel) * channels)
                result = target + 4 * pixel * channels
                for c in range(first, end):
                    scaled = (load_f32(row, c) - load_f64(means, c)) * load_f64(factors, c)
                    store_f32(result, c, np.float32(scaled + call.beta))

    return instance_normalization

"""Instance normalisation: one mean and variance for each channel of each image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import float64

from armpy_numba_acc.llvm.arithmetic.reals import square_root_f64
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_f32, load_f64, store_f32, store_f64
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.rows import InstanceNormalization
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the channels.

    Sums are of float64: there may be very many pixels.
    """
    read = reader(InstanceNormalization)

    def instance_normalization(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        pixels, channels, means = call.pixels, call.channels, call.sums
        factors = means + 8 * channels
        epsilon = float64(call.epsilon)
        first, last = share(channels, shares, num_shares)
        for image in range(call.images):
            source = call.source + 4 * image * pixels * channels
            target = call.target + 4 * image * pixels * channels
            for c in range(first, last):
                store_f64(means, c, 0.0)
                store_f64(factors, c, 0.0)
            for pixel in range(pixels):
                row = source + 4 * pixel * channels
                for c in range(first, last):
                    store_f64(means, c, load_f64(means, c) + load_f32(row, c))
            for c in range(first, last):
                store_f64(means, c, load_f64(means, c) / pixels)
            for pixel in range(pixels):
                row = source + 4 * pixel * channels
                for c in range(first, last):
                    difference = load_f32(row, c) - load_f64(means, c)
                    store_f64(factors, c, load_f64(factors, c) + difference * difference)
            for c in range(first, last):
                variance = load_f64(factors, c) / pixels
                store_f64(factors, c, call.gamma / square_root_f64(variance + epsilon))
            for pixel in range(pixels):
                row, result = source + 4 * pixel * channels, target + 4 * pixel * channels
                for c in range(first, last):
                    scaled = (load_f32(row, c) - load_f64(means, c)) * load_f64(factors, c)
                    store_f32(result, c, np.float32(scaled + call.beta))

    return instance_normalization

"""Brings each channel of each image to one mean and variance."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import numpy as np
from numba import float64

from armpy_numba_acc.llvm.pointers import (
    bits_to_f32,
    load_f32,
    load_f64,
    load_i64,
    store_f32,
    store_f64,
)
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = (
    "input",
    "output",
    "sums",
    "images",
    "pixels",
    "channels",
    "gamma",
    "beta",
    "epsilon",
)
"""`sums` has room for two float64 per channel."""


def make(isa: Isa):
    """Make the kernel; threads share the channels.

    Notes
    -----
    Sums are of float64: there may be very many pixels.
    """

    def instance_normalization(args, thread, num_threads):
        images, pixels, channels = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        gamma, beta = bits_to_f32(load_i64(args, 6)), bits_to_f32(load_i64(args, 7))
        epsilon = float64(bits_to_f32(load_i64(args, 8)))
        means = load_i64(args, 2)
        factors = means + 8 * channels
        first, last = share(channels, thread, num_threads)
        for image in range(images):
            source = load_i64(args, 0) + 4 * image * pixels * channels
            target = load_i64(args, 1) + 4 * image * pixels * channels
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
                store_f64(factors, c, gamma / np.sqrt(variance + epsilon))
            for pixel in range(pixels):
                row, result = source + 4 * pixel * channels, target + 4 * pixel * channels
                for c in range(first, last):
                    scaled = (load_f32(row, c) - load_f64(means, c)) * load_f64(factors, c)
                    store_f32(result, c, np.float32(scaled + beta))

    return instance_normalization

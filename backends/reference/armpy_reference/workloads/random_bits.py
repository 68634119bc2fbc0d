"""CpuRef's RandomBits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import RandomBits, RandomGenerator
from armpy.ops.operation import Array
from armpy_reference.philox import philox_words, threefry_words
from armpy_reference.workload import ReferenceWorkload

_COUNTER_BITS = 64


class RandomBitsWorkload(ReferenceWorkload[RandomBits]):
    """Words of as many blocks as the output takes, counted from the state on."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the words, then join them."""
        state, out = inputs[0], outputs[1]
        is_philox = self.operation.generator is RandomGenerator.PHILOX
        size = 4 if is_philox else 2
        count = out.size * (out.dtype.itemsize // 4)
        blocks = -(-count // size)
        counters = np.empty((blocks, size), np.uint64)
        # Numbers of 64 bits wrap around, as the counter does.
        counters[:, :2] = _words(state[1] + np.arange(blocks, dtype=np.uint64))
        if is_philox:
            counters[:, 2:] = _words(state[2] if len(state) > 2 else state[0])
        make = philox_words if is_philox else threefry_words
        words = make(_words(state[0]), counters).reshape(-1)[:count].astype("<u4")
        out[...] = np.frombuffer(words.tobytes(), out.dtype.newbyteorder("<")).reshape(out.shape)
        outputs[0][...] = state
        outputs[0][1] = (int(state[1]) + blocks) % 2**_COUNTER_BITS


def _words(numbers: Array) -> Array:
    """Lower and upper word of numbers of 64 bits, along a last axis."""
    return np.stack([numbers & np.uint64(0xFFFFFFFF), numbers >> np.uint64(32)], axis=-1)

"""CpuRef's BlockwiseFullyConnected."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.ops import BlockwiseFullyConnected
from armpy.ops.operation import Array
from armpy_reference.quantized.dynamic_range import DynamicRange
from armpy_reference.workload import ReferenceWorkload

_RANGE = DynamicRange(np.ones(1, np.float32), is_asymmetric=False)


class BlockwiseFullyConnectedWorkload(ReferenceWorkload[BlockwiseFullyConnected]):
    """Multiply by weights that become floats first, once if they are constant."""

    def prepare(self) -> None:
        """Convert constant weights."""
        operands = (*self.info.constants, None)[1:4]
        is_given = (*self.info.inputs, None)[3] is not None
        is_known = all(operand is not None for operand in operands[: 2 + is_given])
        self._weights = self._converted(operands) if is_known else None

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """One matrix product over all vectors, accumulated in float32."""
        weights = self._weights
        if weights is None:
            weights = self._converted((*inputs, None)[1:4])
        source = self._rounded(inputs[0]) if self.operation.quantizes_input else inputs[0]
        outputs[0][...] = np.matmul(source, weights.T)
        if len(inputs) > 4 and inputs[4] is not None:
            outputs[0][...] += inputs[4]

    def _rounded(self, source: Array) -> Array:
        """The numbers that the input's quantised blocks stand for."""
        _, blocks, size = self.input_infos[1].known_shape
        block, depth = size * 8 // self.operation.bits, source.shape[-1]
        rows = source.reshape(math.prod(source.shape[:-1]), depth)
        rows = np.pad(rows, ((0, 0), (0, blocks * block - depth)))
        integers, scales = _RANGE.quantized(rows.reshape(len(rows) * blocks, block))
        return (integers * scales).reshape(rows.shape)[:, :depth].reshape(source.shape)

    def _converted(self, operands: Sequence[Array | None]) -> Array:
        """Weights as float32, shape (units, depth)."""
        packed, scales, points = operands
        assert packed is not None
        assert scales is not None
        bits, depth = self.operation.bits, self.input_infos[0].known_shape[-1]
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        numbers = (packed[..., None] >> shifts) & ((1 << bits) - 1)
        units, blocks, size = packed.shape
        numbers = numbers.reshape(units, blocks, size * 8 // bits).astype(np.float32)
        numbers -= 1 << (bits - 1) if points is None else points[..., None]
        numbers *= scales[..., None]
        return numbers.reshape(units, blocks * size * 8 // bits)[:, :depth]

"""CpuRef's FullyConnected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import FullyConnected
from armpy.ops.operation import Array
from armpy_reference.quantized.accumulate import product_into
from armpy_reference.quantized.requantize import FloatStage
from armpy_reference.weighted import PreparedWeights, WeightedWorkload, pack_weights


class FullyConnectedWorkload(WeightedWorkload[FullyConnected]):
    """Multiply the input's vectors by the weights.

    Floats accumulate in float32. Quantised sums are exact integers that are multiplied by the
    real factor between the scales in float64 and rounded once, half away from zero: unlike
    convolutions, for which there is fixed-point arithmetic. Float inputs of quantised weights are
    quantised vector by vector.
    """

    def pack(self, weights: Array, bias: Array | None) -> PreparedWeights:
        """Arrange the weights as a matrix of shape (depth, units)."""
        operation = self.operation
        packed = pack_weights(
            self.info,
            operation.activation,
            weights,
            bias,
            channel_axis=0,
            rounds_once=True,
            has_asymmetric_range=operation.asymmetric_quantize_inputs,
        )
        return replace(packed, values=packed.values.T)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """One matrix product over all vectors."""
        packed = self.packed_weights(inputs)
        depth, units = packed.values.shape
        count = outputs[0].size // units
        rows, out = inputs[0].reshape(count, depth), outputs[0].reshape(count, units)
        if packed.dynamic_range is None or not isinstance(packed.stage, FloatStage):
            product_into(rows, packed.values, packed.stage, out)
            return
        integers, factors = packed.dynamic_range.quantized(rows)
        sums = np.matmul(integers, packed.values)
        replace(packed.stage, factors=factors).finish(sums, out)

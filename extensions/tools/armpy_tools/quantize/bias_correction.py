"""Corrects biases for what rounding weights moves the mean of each output channel by.

References
----------
Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019,
section 4.2, with means that were measured.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from armpy.graph import Layer, Value
from armpy.types import DataLayout, DataType
from armpy_tools.quantize.planning import QuantizationPlan, Scales
from armpy_tools.quantize.rules import FILTER_AXIS, Rule
from armpy_tools.quantize.scales import stored, weight_scales

_Numbers = npt.NDArray[np.float64]


def corrected_biases(
    plan: QuantizationPlan, scales: Scales, means: Mapping[Value, _Numbers], *, per_channel: bool
) -> dict[Layer, npt.NDArray[np.float32]]:
    """Biases of the weighted layers, with the mean of the error of their weights taken off.

    Parameters
    ----------
    means : mapping of Value to ndarray, float64, shape (channels)
        Mean of each channel of the layers' inputs.
    per_channel : bool
        Whether each channel's weights have a scale of their own.

    Notes
    -----
    Borders are taken for what lies inside: where a window reaches into the padding, fewer weights
    count. Layers whose images have their channels first are left alone.
    """
    biases = {}
    for layer, rule in plan.rules.items():
        source = layer.inputs[0]
        if rule is not Rule.WEIGHTED or source is None or source not in means:
            continue
        moved = _moved(layer, means[source], scales.of[source].scale, per_channel=per_channel)
        if moved is None:
            continue
        own = layer.constant("bias")
        bias = np.zeros(len(moved)) if own is None else own.astype(np.float64)
        biases[layer] = (bias + moved).astype(np.float32)
    return biases


def _moved(
    layer: Layer, means: _Numbers, input_scale: float, *, per_channel: bool
) -> _Numbers | None:
    """Return the loss of each output channel's mean by rounding the weights."""
    if layer.operation.attributes().get("data_layout", DataLayout.NHWC) is not DataLayout.NHWC:
        return None
    weights = layer.constant("weights")
    assert weights is not None
    kind = layer.operation.name
    axis = FILTER_AXIS[kind] if per_channel else None
    chosen = weight_scales(weights, axis, layer.constant("bias"), input_scale)
    rounded = chosen.dequantize(stored(weights, chosen, DataType.QSYMM_S8))
    lost = weights.astype(np.float64) - rounded
    if kind == "DepthwiseConvolution2d":
        per_filter = lost.sum(axis=(0, 1, 2))
        repeats = len(per_filter) // len(means)
        return np.asarray(per_filter * np.repeat(means, repeats))
    if kind == "TransposeConvolution2d":
        return None  # which weights meet an output element depends on its place
    per_input = lost.reshape(len(lost), -1, lost.shape[-1]).sum(axis=1)
    if kind == "Convolution2d" and per_input.shape[1] != len(means):  # in groups
        groups = len(means) // per_input.shape[1]
        rows = len(per_input) // groups
        parts = means.reshape(groups, -1)
        return np.concatenate(
            [per_input[g * rows : (g + 1) * rows] @ parts[g] for g in range(groups)]
        )
    if per_input.shape[1] != len(means):  # vectors of another length than the last axis
        return None
    return np.asarray(per_input @ means)

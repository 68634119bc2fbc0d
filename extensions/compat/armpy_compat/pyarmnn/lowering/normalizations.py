"""Layers that normalise, and layers that reduce axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy import ops
from armpy.graph import Value
from armpy.types import DataLayout
from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.lowering.lowered_layer import LoweredLayer, Lowering


def _batch_normalization(lowered: LoweredLayer) -> Sequence[Value]:
    """One factor and one addend for each channel, in float32 as Arm NN computes them."""
    d = lowered.descriptor
    axis = DataLayout(d.m_DataLayout).channel_axis
    tensors = {
        name: tensor.get_memory_area().ravel().astype(np.float32)
        for name, tensor in lowered.layer.tensors.items()
    }
    factor = tensors["gamma"] / np.sqrt(tensors["variance"] + np.float32(d.m_Eps))
    addend = tensors["beta"] - factor * tensors["mean"]
    shape = [1] * lowered.rank
    shape[axis] = factor.size
    source = lowered.inputs[0]
    dtype = source.info.data_type.dtype
    scaled = lowered.add(
        ops.ElementwiseBinary(ops.BinaryOperation.MUL),
        source,
        lowered.network.constant(factor.reshape(shape).astype(dtype)),
    )
    shift = lowered.network.constant(addend.reshape(shape).astype(dtype))
    return lowered.result(ops.ElementwiseBinary(ops.BinaryOperation.ADD), scaled, shift)


def _instance_normalization(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.InstanceNormalization(d.m_Gamma, d.m_Beta, d.m_Eps, DataLayout(d.m_DataLayout))
    return lowered.result(operation, *lowered.inputs)


def _l2_normalization(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    # Shapes of fewer than four dimensions lack the first ones.
    axis = DataLayout(d.m_DataLayout).channel_axis - 4
    return lowered.result(ops.L2Normalization(axis, d.m_Eps), *lowered.inputs)


def _normalization(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    if d.m_NormMethodType != constants.NormalizationAlgorithmMethod_LocalBrightness:
        raise RuntimeError(
            f"{lowered.layer.where}: local contrast normalisation has no implementation, in Arm NN"
            " neither. Use NormalizationAlgorithmMethod_LocalBrightness."
        )
    layout = DataLayout(d.m_DataLayout)
    is_across = d.m_NormChannelType == constants.NormalizationAlgorithmChannel_Across
    axes = (layout.channel_axis,) if is_across else layout.spatial_axes
    operation = ops.Normalization(d.m_NormSize // 2, d.m_Alpha, d.m_Beta, d.m_K, axes)
    return lowered.result(operation, *lowered.inputs)


def _softmax(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    return lowered.result(ops.Softmax(d.m_Beta, d.m_Axis), *lowered.inputs)


def _log_softmax(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    return lowered.result(ops.LogSoftmax(d.m_Beta, d.m_Axis), *lowered.inputs)


def _arg_min_max(lowered: LoweredLayer) -> Sequence[Value]:
    d, output = lowered.descriptor, lowered.outputs[0]
    operation = ops.ArgMinMax(ops.ArgMinMaxFunction(d.m_Function), d.m_Axis)
    if output is not None:
        operation = ops.ArgMinMax(operation.function, d.m_Axis, output.data_type)
    return lowered.result(operation, *lowered.inputs)


def _mean(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    return _reduced(lowered, ops.ReduceOperation.MEAN, d.m_Axis, d.m_KeepDims)


def _reduce(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.ReduceOperation[_REDUCTIONS[d.m_ReduceOperation]]
    return _reduced(lowered, operation, d.m_vAxis, d.m_KeepDims)


_REDUCTIONS: Mapping[int, str] = {
    constants.ReduceOperation_Sum: "SUM",
    constants.ReduceOperation_Max: "MAX",
    constants.ReduceOperation_Mean: "MEAN",
    constants.ReduceOperation_Min: "MIN",
    constants.ReduceOperation_Prod: "PROD",
}


def _reduced(
    lowered: LoweredLayer, operation: ops.ReduceOperation, axes: Sequence[int], keeps: bool
) -> Sequence[Value]:
    """A reduction along axes, along all of them if none are given."""
    chosen = tuple(axes) or tuple(range(lowered.rank))
    return lowered.result(ops.Reduce(operation, chosen, keeps), *lowered.inputs)


NORMALIZATIONS: Mapping[str, Lowering] = {
    "ArgMinMax": _arg_min_max,
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": _instance_normalization,
    "L2Normalization": _l2_normalization,
    "LogSoftmax": _log_softmax,
    "Mean": _mean,
    "Normalization": _normalization,
    "Reduce": _reduce,
    "Softmax": _softmax,
}
"""How layers that normalise or reduce are made, by kind."""

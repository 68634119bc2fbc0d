"""Support of layers, lowered as they are or written otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.backend import ReasonCode, Support
from armpy.graph import Layer
from armpy.ops import (
    BinaryOperation,
    ElementwiseBinary,
    FusedActivation,
    Gather,
    Select,
    Softmax,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo, format_shape
from armpy.types import DataType
from armpy_numba_acc import passes
from armpy_numba_acc.passes.zero_sized import (
    adds_nothing,
    gives_nothing,
    has_empty,
    needed_inputs,
    refusal_of_empty,
)
from armpy_numba_acc.program.registry import lowering_of, refusal_of

_EXACT_OPERATIONS = (BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL)
_LARGEST_SCALE = 2.0**40
_SMALLEST_CHANNEL = 2.0**-126
_SMALLEST_DIVISOR = 2.0**-124
"""A subnormal number divided by this is less than a quarter, and rounds to 0."""


def support(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> Support:
    """Return whether a layer can be lowered, with the reason if not."""
    lowering = lowering_of(operation)
    if lowering is None:
        return Support.no(ReasonCode.OPERATION, f"NumbaAcc has no {operation.name}")
    infos = [info for info in (*inputs, *outputs) if info is not None]
    for info in infos:
        if not info.is_fully_shaped:
            return Support.no(ReasonCode.SHAPE, f"the shape of {info} is not known")
        text = "" if _takes_any_scale(operation) else _refusal_of_scale(info)
        if text:
            return Support.no(ReasonCode.QUANTIZATION, text)
    if has_empty(infos):
        if gives_nothing(operation, inputs, outputs) or adds_nothing(operation, inputs):
            return Support.yes()
        if reason := refusal_of_empty(operation, inputs, outputs):
            return Support.no(ReasonCode.SHAPE, reason)
        inputs = needed_inputs(operation, inputs)
    reason = lowering.check(operation, inputs, outputs)
    if reason and not _is_rewritten(operation, inputs, outputs):
        return Support.no(ReasonCode.OTHER, reason)
    return Support.yes()


def support_of_constants(layer: Layer) -> Support:
    """Return whether a layer's constants keep their effect.

    A lookup without results is left out, and checks no constant indices. Subnormal numbers count as
    zero: a divisor near the smallest normal number makes large numbers of subnormal ones, and a
    factor that is subnormal itself makes such: quantised models have them as scales.
    """
    operation = layer.operation
    if isinstance(operation, Gather) and has_empty(layer.output_infos):
        shape, indices = layer["input"].info.known_shape, layer["indices"]
        axis, _ = operation.resolved_axes(len(shape), len(indices.info.known_shape))
        least = -shape[axis] if operation.wraps_negative else 0
        if indices.data is not None and indices.data.size:
            first, last = int(indices.data.min()), int(indices.data.max())
            if first < least or last >= shape[axis]:
                return Support.no(ReasonCode.OTHER, "a constant index is out of range")
    if not isinstance(operation, ElementwiseBinary) or len(layer.inputs) != 2:
        return Support.yes()
    for place, value in enumerate(layer.inputs):
        if value is None or value.data is None or value.info.data_type is not DataType.FLOAT32:
            continue
        sizes = np.abs(value.data)
        if operation.operation is BinaryOperation.DIV:
            is_lost = place == 1 and bool((sizes < _SMALLEST_DIVISOR).any())
        else:
            is_factor = operation.operation is BinaryOperation.MUL and sizes.size == 1
            is_lost = is_factor and bool((sizes < _SMALLEST_CHANNEL).all() and sizes.any())
        if is_lost:
            text = f"a constant of {sizes.min():g} needs arithmetic on subnormal numbers"
            return Support.no(ReasonCode.OTHER, text)
    return Support.yes()


def _refusal_of_scale(info: TensorInfo) -> str:
    """Name a tensor's first scale whose products float32 cannot hold; empty if there is none.

    Channels without a weight that matters may have a tiny scale, but none that is subnormal.
    """
    if info.quantization is None or not info.data_type.is_quantized:
        return ""
    least = _SMALLEST_CHANNEL if info.has_per_axis_quantization else 1 / _LARGEST_SCALE
    for scale in info.quantization.scales:
        if scale != 0 and not least <= scale <= _LARGEST_SCALE:
            return (
                f"the scale {scale:g} of {info.data_type.name} {format_shape(info.shape)} is out "
                f"of the range of kernels, {least:.3g} to {_LARGEST_SCALE:.3g}: keep this layer "
                "float when you quantise ('armpy quantize --keep-float')"
            )
    return ""


def _takes_any_scale(operation: Operation) -> bool:
    """Return whether a layer only moves elements, saturates, or is computed in fixed point.

    Masks of large negative numbers give attention scores such scales.
    """
    if isinstance(operation, ElementwiseBinary):
        is_exact = operation.operation in _EXACT_OPERATIONS
        return is_exact and operation.activation in (FusedActivation.NONE, FusedActivation.RELU)
    return isinstance(operation, Select | Softmax)


def _is_rewritten(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> bool:
    """Return whether a layer can be lowered written otherwise."""
    rewrite = passes.rewrite_of(operation, inputs, outputs)
    if rewrite is None:
        return False
    changed = [rewrite.input_info(info, index) for index, info in enumerate(inputs)]
    results = [rewrite.output_info(info) for info in outputs]
    return not refusal_of(rewrite.operation, changed, results)

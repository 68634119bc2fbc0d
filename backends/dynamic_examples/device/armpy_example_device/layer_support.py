"""Which layers the device runs, and the reasons for not running the others."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import ILayerSupport, ReasonCode, Support
from armpy.ops import (
    Activation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    Pooling2d,
    PoolingAlgorithm,
    Reshape,
    Softmax,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_example_device.kernels import ACTIVATIONS, BINARY_FUNCTIONS

OPERATIONS = (
    Activation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    Pooling2d,
    Reshape,
    Softmax,
)
TYPES = (DataType.FLOAT32, DataType.QASYMM_S8, DataType.QASYMM_U8)
SYMMETRIC = (DataType.QASYMM_S8, DataType.QSYMM_S8)
"""Types of weights by type of image."""


class DeviceLayerSupport(ILayerSupport):
    """Takes layers that have a kernel, in three data types."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether one layer can run: the operation, then its attributes, then its tensors."""
        if not isinstance(operation, OPERATIONS):
            return Support.no(ReasonCode.OPERATION, f"{operation.name} is not supported")
        problem = _attribute_problem(operation, inputs)
        if problem:
            return Support.no(ReasonCode.ATTRIBUTE, problem)
        data_type = outputs[0].data_type
        if data_type not in TYPES:
            names = ", ".join(kind.name for kind in TYPES)
            text = f"{data_type.name} is not supported, only {names}"
            return Support.no(ReasonCode.DATA_TYPE, text)
        has_weights = isinstance(operation, Convolution2d | FullyConnected)
        for index, info in enumerate(inputs[:2]):
            is_alike = info is None or info.data_type is data_type
            if has_weights and index == 1 and data_type is DataType.QASYMM_S8:
                is_alike = info is None or info.data_type in SYMMETRIC
            if not is_alike and info is not None:
                text = f"{info.data_type.name} beside {data_type.name} is not supported"
                return Support.no(ReasonCode.DATA_TYPE, text)
        return Support.yes()


def _attribute_problem(operation: Operation, inputs: OperandInfos) -> str:
    """Feature that the device lacks for an operation; empty if none."""
    layout = getattr(operation, "data_layout", DataLayout.NHWC)
    if layout is not DataLayout.NHWC:
        return f"{layout.name} is not supported, only NHWC"
    match operation:
        case ElementwiseBinary() if operation.operation not in BINARY_FUNCTIONS:
            return _only(operation.operation.name, [f.name for f in BINARY_FUNCTIONS])
        case Activation() if operation.function not in ACTIVATIONS:
            return _only(operation.function.name, [f.name for f in ACTIVATIONS])
        case Pooling2d() if operation.algorithm is PoolingAlgorithm.L2:
            return _only("L2", ["MAX", "AVERAGE"])
        case Softmax() if inputs[0] is None or operation.axis not in (-1, _last(inputs[0])):
            return f"the axis {operation.axis} is not supported, only the last one"
        case Convolution2d() if _channels(inputs[0]) != _channels(inputs[1]):
            return "convolutions in groups are not supported"
    return ""


def _only(name: str, allowed: Sequence[str]) -> str:
    """The refusal of a function."""
    return f"{name} is not supported, only {', '.join(allowed)}"


def _last(info: TensorInfo) -> int | None:
    """The number of a tensor's last axis."""
    return None if info.rank is None else info.rank - 1


def _channels(info: TensorInfo | None) -> int | None:
    """The last dimension, if it is known."""
    return info.shape[-1] if info is not None and info.shape else None

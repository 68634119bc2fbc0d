"""Which layers the backend takes, and the reasons for not taking the others."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import ILayerSupport, ReasonCode, Support
from armpy.ops import Activation, ActivationFunction, Convolution2d, FullyConnected
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType

FUNCTIONS = (ActivationFunction.RELU, ActivationFunction.BOUNDED_RELU)


class ExampleLayerSupport(ILayerSupport):
    """Takes weighted layers with constant weights, and the activations that fuse with them."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether one layer can be compiled; the first rule that it breaks is the reason."""
        for info in (*inputs, *outputs):
            if info is not None and info.data_type is not DataType.FLOAT32:
                text = f"{info.data_type.name} is not supported, only FLOAT32"
                return Support.no(ReasonCode.DATA_TYPE, text)
            if info is not None and not info.is_fully_shaped:
                return Support.no(ReasonCode.SHAPE, f"the shape of {info} is not known")
        match operation:
            case Activation() if operation.function not in FUNCTIONS:
                text = f"{operation.function.name} is not supported, only RELU and BOUNDED_RELU"
                return Support.no(ReasonCode.ATTRIBUTE, text)
            case Activation():
                return Support.yes()
            case Convolution2d():
                return _check_convolution(operation, inputs) and _check_constant(inputs)
            case FullyConnected():
                return _check_constant(inputs)
        return Support.no(ReasonCode.OPERATION, f"{operation.name} is not supported")


def _check_convolution(operation: Convolution2d, inputs: OperandInfos) -> Support:
    """NHWC without groups."""
    image, weights = inputs[0], inputs[1]
    if operation.data_layout is not DataLayout.NHWC:
        text = f"the layout {operation.data_layout.name} is not supported, only NHWC"
        return Support.no(ReasonCode.ATTRIBUTE, text)
    if image and weights and image.known_shape[3] != weights.known_shape[3]:
        return Support.no(ReasonCode.SHAPE, "grouped convolutions are not supported")
    return Support.yes()


def _check_constant(inputs: OperandInfos) -> Support:
    """Weights and bias are packed when a network is compiled, so they have to be there."""
    for info, name in zip(inputs[1:], ("weights", "bias"), strict=False):
        if info is not None and not info.is_constant:
            return Support.no(ReasonCode.CONSTANT, f"the {name} are not constant")
    return Support.yes()

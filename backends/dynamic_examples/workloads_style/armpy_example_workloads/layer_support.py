"""Which layers the backend runs, and the reasons for not running the others."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import ILayerSupport, ReasonCode, Support
from armpy.ops import Activation, ElementwiseBinary, Reshape, Softmax
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_example_workloads.kernels import ACTIVATIONS, BINARY_FUNCTIONS

OPERATIONS = (Activation, ElementwiseBinary, Reshape, Softmax)


class ExampleLayerSupport(ILayerSupport):
    """Takes layers that have a kernel; a refusal names the actual and the supported form.

    Parameters
    ----------
    max_elements : int
        Of a tensor; 0 is any.
    """

    def __init__(self, max_elements: int = 0) -> None:
        self._max_elements = max_elements

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether one layer can run: the operation, then its attributes, then its tensors."""
        match operation:
            case ElementwiseBinary() if operation.operation not in BINARY_FUNCTIONS:
                return _refused(operation.operation.name, [f.name for f in BINARY_FUNCTIONS])
            case Activation() if operation.function not in ACTIVATIONS:
                return _refused(operation.function.name, [f.name for f in ACTIVATIONS])
            case _ if not isinstance(operation, OPERATIONS):
                return Support.no(ReasonCode.OPERATION, f"{operation.name} is not supported")
        tensors = [info for info in (*inputs, *outputs) if info is not None]
        if not isinstance(operation, Reshape):  # which moves elements of any type
            for info in tensors:
                if info.data_type is not DataType.FLOAT32:
                    text = f"{info.data_type.name} is not supported, only FLOAT32"
                    return Support.no(ReasonCode.DATA_TYPE, text)
        return self._check_size(tensors)

    def _check_size(self, tensors: Sequence[TensorInfo]) -> Support:
        """Whether all tensors are small enough; where a shape is unknown, it may be too large."""
        for info in tensors:
            if self._max_elements and not info.is_fully_shaped:
                return Support.no(ReasonCode.SHAPE, f"the size of {info} is not known")
            if self._max_elements and info.num_elements > self._max_elements:
                text = f"{info} has more than {self._max_elements} elements"
                return Support.no(ReasonCode.SHAPE, text)
        return Support.yes()


def _refused(name: str, allowed: Sequence[str]) -> Support:
    text = f"{name} is not supported, only {', '.join(allowed)}"
    return Support.no(ReasonCode.ATTRIBUTE, text)

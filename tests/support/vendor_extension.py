"""A backend with a vendor extension, to which tests can do everything that a model may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armpy.backend import (
    DeviceInfo,
    Extension,
    ExtensionOperand,
    ExtensionOperandType,
    ExtensionOperation,
    IBackendInternal,
    ILayerSupport,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    PreparationRequest,
    ReasonCode,
    Support,
    WorkloadInfo,
)
from armpy.errors import LayerValidationError
from armpy.ops import Operand
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import Shape, TensorInfo
from armpy.types import BackendId, DataType, DeviceType

NAME = "com.example.records"
WIDE, TENSOR_RECORD, TENSOR_WIDE = 0, 1, 2
COUNT, REVERSE = 0, 1

RECORD_BYTES = 3


@dataclass(frozen=True, slots=True)
class Count(Operation):
    """Numbers from 0 on, as many as a WIDE says."""

    count: int | None = None

    extension: ClassVar[str] = NAME
    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("count", becomes="count", types=(DataType.UNSIGNED64,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        if self.count is not None and self.count > 100:
            raise LayerValidationError("that is too many", expected="up to 100")
        return ((self.count,),)


@dataclass(frozen=True, slots=True)
class Reverse(Operation):
    """Records in reverse order, a number added to each byte if there is one."""

    tag: bytes

    extension: ClassVar[str] = NAME
    inputs: ClassVar[tuple[Operand, ...]] = (Operand("records"), Operand("add", optional=True))

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        return (inputs[0].shape,)


def create_count(
    inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]
) -> Operation:
    if [(operand.extension, operand.type_id) for operand in inputs] != [(NAME, WIDE)]:
        raise LayerValidationError("COUNT takes a number", expected="WIDE")
    return Count()


def create_reverse(
    inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]
) -> Operation:
    return Reverse(inputs[0].data or b"")


EXTENSION = Extension(
    NAME,
    (
        ExtensionOperandType(WIDE, "WIDE", False, 8),
        ExtensionOperandType(TENSOR_RECORD, "TENSOR_RECORD", True, RECORD_BYTES),
        ExtensionOperandType(TENSOR_WIDE, "TENSOR_WIDE", True, 8),
    ),
    (
        ExtensionOperation(COUNT, "COUNT", create_count),
        ExtensionOperation(REVERSE, "REVERSE", create_reverse),
    ),
)


class RecordsBackend(IBackendInternal):
    """Runs the extension's operations and nothing else."""

    def __init__(
        self, backend_id: BackendId = "Records", extensions: Sequence[Extension] = (EXTENSION,)
    ) -> None:
        self._backend_id = backend_id
        self._extensions = extensions

    def get_id(self) -> BackendId:
        return self._backend_id

    def get_api_version(self) -> str:
        return "2.2"

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    @property
    def extensions(self) -> Sequence[Extension]:
        return self._extensions

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _Support()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory()


class _Support(ILayerSupport):
    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, (Count, Reverse)):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "only records")


class _Workload(IWorkload):
    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        out = outputs[0].map()
        arrays = [None if handle is None else handle.map() for handle in inputs]
        if isinstance(self._operation, Count):
            out[...] = np.arange(len(out))
        else:
            records, add = [*arrays, None][:2]
            assert records is not None
            out[...] = records[::-1]
            if add is not None:
                out += np.uint8(add)


class _Factory(IWorkloadFactory):
    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return _Workload(operation)

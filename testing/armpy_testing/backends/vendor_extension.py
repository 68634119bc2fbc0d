"""A backend with a vendor extension, to which tests can do everything that a model may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armpy.backend import (
    Extension,
    ExtensionOperand,
    ExtensionOperandType,
    ExtensionOperation,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    ReasonCode,
    Support,
    WorkloadInfo,
)
from armpy.errors import LayerValidationError
from armpy.ops import Operand
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import Shape, TensorInfo
from armpy.types import BackendId, DataType
from armpy_testing.backends.fake_backends import FakeBackend, FunctionWorkload, Handles, Outputs

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


class RecordsBackend(FakeBackend):
    """Runs the extension's operations and nothing else."""

    def __init__(
        self, backend_id: BackendId = "Records", extensions: Sequence[Extension] = (EXTENSION,)
    ) -> None:
        super().__init__(backend_id)
        self._extensions = extensions

    @property
    def extensions(self) -> Sequence[Extension]:
        return self._extensions

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, (Count, Reverse)):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "only records")

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory()


class _Factory(IWorkloadFactory):
    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return FunctionWorkload(_count if isinstance(operation, Count) else _reverse)


def _count(inputs: Handles, outputs: Outputs) -> None:
    array = outputs[0].map()
    array[...] = np.arange(len(array))


def _reverse(inputs: Handles, outputs: Outputs) -> None:
    records, add = [*(None if handle is None else handle.map() for handle in inputs), None][:2]
    assert records is not None
    array = outputs[0].map()
    array[...] = records[::-1]
    if add is not None:
        array += np.uint8(add)

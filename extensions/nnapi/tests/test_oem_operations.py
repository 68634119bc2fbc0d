"""NNAPI's OEM operation on a backend that opts in to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    OEM_EXTENSION,
    OEM_OPERATION_ID,
    Extension,
    ExtensionOperand,
    ExtensionOperation,
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
from armpy.execution import RuntimeOptions
from armpy.ops import Operand
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import Shape, TensorInfo
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Execution,
    Model,
    NnapiError,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
)
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.backends.vendor_extension import RecordsBackend

from .nnapi_models import add_operands


@dataclass(frozen=True, slots=True)
class AddKey(Operation):
    """Bytes with those of a key added, which is as long."""

    extension: ClassVar[str] = OEM_EXTENSION
    inputs: ClassVar[tuple[Operand, ...]] = (Operand("bytes"), Operand("key"))

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        return (inputs[0].shape,)


def create(inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]) -> Operation:
    return AddKey()


class OemBackend(RecordsBackend):
    """Opts in to the OEM operation."""

    def __init__(self) -> None:
        operation = ExtensionOperation(OEM_OPERATION_ID, "OEM_OPERATION", create)
        super().__init__("Oem", (Extension(OEM_EXTENSION, (), (operation,)),))

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _Support()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory()


class _Support(ILayerSupport):
    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, AddKey):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "only the OEM operation")


class _Workload(IWorkload):
    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        data, key = (handle.map() for handle in inputs if handle is not None)
        np.add(data, key, out=outputs[0].map())


class _Factory(IWorkloadFactory):
    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return _Workload()


def manager_of(*backends: RecordsBackend | ReferenceBackend, **options: str) -> DeviceManager:
    ids = [backend.get_id() for backend in backends]
    chosen = RuntimeOptions(backends=ids, registry=registry_of(*backends))
    return DeviceManager(chosen, **options)


def oem_model(manager: DeviceManager) -> Model:
    """One OEM operation of a tensor of four bytes and a scalar of four bytes."""
    model = Model(manager)
    four = OperandType(OperandCode.TENSOR_OEM_BYTE, (4,))
    data, result, key = add_operands(model, four, four, OperandType(OperandCode.OEM_SCALAR))
    model.set_operand_value(key, bytes([1, 2, 3, 4]))
    model.add_operation(OperationCode.OEM_OPERATION, [data, key], [result])
    model.identify_inputs_and_outputs([data], [result])
    model.finish()
    return model


def test_a_backend_that_opts_in_runs_oem_operations() -> None:
    manager = manager_of(OemBackend(), ReferenceBackend())
    model = oem_model(manager)
    device, reference = manager.devices
    assert device.get_supported_operations(model) == [True]
    assert reference.get_supported_operations(model) == [False]
    compilation = Compilation(model)
    compilation.finish()
    execution = Execution(compilation)
    data, result = np.array([10, 20, 30, 40], np.uint8), np.zeros(4, np.uint8)
    execution.set_input(0, data)
    execution.set_output(0, result)
    execution.compute()
    np.testing.assert_array_equal(result, [11, 22, 33, 44])


def test_an_application_that_is_not_on_the_list_cannot_use_oem_operations(tmp_path: Path) -> None:
    path = tmp_path / "allowed"
    path.write_text("com.foo.bar\n")
    options = {"application": "com.bar.foo", "extensions_allow_list": str(path)}
    manager = manager_of(OemBackend(), ReferenceBackend(), **options)
    model = oem_model(manager)
    assert [device.get_supported_operations(model) for device in manager.devices] == [[False]] * 2
    with pytest.raises(
        NnapiError, match=r"may not use vendor extensions.*'com\.bar\.foo'"
    ) as caught:
        Compilation(model).finish()
    assert caught.value.code is ResultCode.BAD_DATA
    allowed = manager_of(
        OemBackend(), ReferenceBackend(), **(options | {"application": "com.foo.bar"})
    )
    Compilation(oem_model(allowed)).finish()

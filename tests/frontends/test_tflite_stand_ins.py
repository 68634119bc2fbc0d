"""Operators that armpy does not have are carried for a backend that does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy import DataType, Network, TensorInfo, ops
from armpy.backend import (
    ILayerSupport,
    IWorkload,
    IWorkloadFactory,
    PreparationRequest,
    ReasonCode,
    Support,
    WorkloadInfo,
)
from armpy.errors import LayerValidationError, UnsupportedOperatorError
from armpy.ops.operation import OperandInfos, Operation
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, runtime_of
from armpy_testing.models.networks import RELU, f32, floats
from armpy_testing.models.tflite_writer import TfliteModel

STANDS_IN = {"stand_in_for_unsupported": True}


class VendorBackend(FakeBackend):
    """Has an operation of a vendor's: the sum of its inputs times the one byte of its options."""

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return VendorSupport()

    def create_workload_factory(self, network: object) -> IWorkloadFactory:
        return VendorFactory()


class VendorSupport(ILayerSupport):
    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, ops.StandIn) and operation.operator == "VendorSum":
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "VendorSum only")


class VendorFactory(IWorkloadFactory):
    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        assert isinstance(operation, ops.StandIn)
        return VendorSum(operation.options[0])


class VendorSum(IWorkload):
    def __init__(self, factor: int) -> None:
        self._factor = factor

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        total = sum(np.asarray(handle.map()) for handle in inputs if handle is not None)
        outputs[0].map()[...] = total * self._factor


def model_file(tmp_path: Path) -> Path:
    """``y = relu(VendorSum(x, w))``."""
    model = TfliteModel()
    graph = model.subgraph()
    x, w, total, y = (graph.tensor(name, (2, 3)) for name in ("x", "w", "total", "y"))
    graph.operator("CUSTOM", [x, w], [total], custom_code="VendorSum", custom_options=bytes([3]))
    graph.operator("RELU", [total], [y])
    graph.inputs(x, w)
    graph.outputs(y)
    path = tmp_path / "custom.tflite"
    path.write_bytes(model.to_bytes())
    return path


def test_a_vendors_backend_runs_the_custom_operator_of_a_file(tmp_path: Path) -> None:
    with runtime_of(VendorBackend("Vendor")) as runtime:
        model = armpy.load(model_file(tmp_path), runtime=runtime, front_end_options=STANDS_IN)
        x, w = np.full((2, 3), 2, np.float32), floats(1, 0, -1, -2, -3, -4).reshape(2, 3)
        (y,) = model.run({"x": x, "w": w}).values()
        # 3 (x + w), clamped at 0.
        np.testing.assert_array_equal(y, [[9, 6, 3], [0, 0, 0]])
        assert model.placement is not None
        assert [layer.backend for layer in model.placement.layers] == ["Vendor", "CpuRef"]


def test_without_the_option_unknown_operators_are_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match="custom 'VendorSum' x1"):
        armpy.load(model_file(tmp_path))


def network(output: TensorInfo | None) -> Network:
    net = Network()
    x = net.input("x", f32(2, 3))
    total = net.add(ops.StandIn("VendorSum", b"\2"), x, x, output=output)
    net.output("y", net.add(RELU, total))
    return net


def test_outputs_of_stand_ins_have_to_be_declared() -> None:
    with pytest.raises(LayerValidationError, match="'VendorSum' are not declared"):
        network(None)


def test_stand_ins_are_neither_folded_nor_reduced() -> None:
    net = Network()
    constant = net.constant(floats(1, 2))
    total = net.add(ops.StandIn("VendorSum", b"\5"), constant, output=f32(2))
    net.output("y", net.add(RELU, total))
    options = armpy.OptimizerOptions(reduce_fp32_to_fp16=True)
    with runtime_of(VendorBackend("Vendor")) as runtime:
        network_id = runtime.load_network(net, armpy.NetworkProperties(optimizer=options))
        got = runtime.enqueue_workload(network_id, {})
    np.testing.assert_array_equal(got["y"], floats(5, 10))


def test_cpuref_does_not_take_them() -> None:
    support = ReferenceBackend().get_layer_support(PreparationRequest())
    info = TensorInfo((2,), DataType.FLOAT32)
    assert not support.is_layer_supported(ops.StandIn("VendorSum"), [info], [info])

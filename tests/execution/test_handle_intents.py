"""Tensors go to a device and back once for each copy, whichever way its handles offer."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    WorkloadInfo,
)
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.device_memory import (
    CopyingDeviceHandle,
    DeviceBackend,
    DeviceHandle,
    Memory,
)
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.networks import diamond, floats, placement_of

X = floats(-1, 0, 2, 5)
KINDS = [DeviceHandle, CopyingDeviceHandle]


@pytest.mark.parametrize("reader", KINDS)
@pytest.mark.parametrize("writer", KINDS)
def test_a_copy_between_two_devices_is_one_download_and_one_upload(
    writer: type[DeviceHandle], reader: type[DeviceHandle]
) -> None:
    npu = DeviceBackend("Npu", {Activation}, kind=writer)
    dsp = DeviceBackend("Dsp", {ElementwiseBinary}, kind=reader)
    model = Model(diamond(), runtime_of(npu, dsp))
    assert [p.layer for p in placement_of(model).layers if p.operation == "MemCopy"] == [
        "[ x host -> Npu ]",
        "[ top Npu -> Dsp ]",
        "[ bottom Dsp -> host ]",
    ]
    for _ in range(4):
        np.testing.assert_array_equal(model(X), [1, 1, 9, 21])
    assert (npu.memory.uploads, npu.memory.downloads) == (4, 4)
    assert (dsp.memory.uploads, dsp.memory.downloads) == (4, 4)


class Intents(DeviceHandle):
    """Notes what it is mapped for."""

    def __init__(self, memory: Memory, info: TensorInfo, region: Array) -> None:
        super().__init__(memory, info, region)
        self.wanted: list[tuple[bool, bool]] = []

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        self.wanted.append((read, write))
        return super().map(read=read, write=write)


READ, WRITTEN = (True, False), (False, True)


@pytest.mark.slow
def test_every_workload_of_cpu_ref_says_what_it_maps_tensors_for() -> None:
    cases = pytest.importorskip(
        "armpy_conformance.cases", reason="armpy-conformance is not installed"
    )
    factory, compared = ReferenceWorkloadFactory(), 0
    for case in cases.operation_cases():
        items = case.inputs
        constants = tuple(i.data if i and i.is_constant else None for i in items)
        infos = tuple(None if i is None else i.info for i in items)
        if case.operation.has_data_dependent_outputs:
            continue
        workload = factory.create_workload(
            case.operation, WorkloadInfo("layer", infos, case.outputs, constants)
        )
        memory = Memory()
        read = [None if i is None else holding(memory, i.info, i.data) for i in items]
        written = [holding(memory, info) for info in case.outputs]
        workload.execute(read, written)
        assert all(set(h.wanted) == {READ} for h in read if h is not None and h.wanted), case.id
        assert all(h.wanted in ([], [WRITTEN]) for h in written), case.id
        assert memory.downloads == sum(len(h.wanted) for h in read if h is not None), case.id
        assert memory.uploads == sum(len(h.wanted) for h in written), case.id
        compared += 1
    assert compared > 1000


def holding(memory: Memory, info: TensorInfo, data: Array | None = None) -> Intents:
    """A tensor on the device, full of garbage if there are no elements."""
    handle = Intents(memory, info, np.full(info.size_bytes, 1, np.uint8))
    if data is not None:
        handle.elements[...] = data
    return handle

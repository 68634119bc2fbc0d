"""Tensors go to a device and back once for each copy, whichever way its handles offer."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary
from armpy_testing.backends.device_memory import (
    CopyingDeviceHandle,
    DeviceBackend,
    DeviceHandle,
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

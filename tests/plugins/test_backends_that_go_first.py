"""Backends that go before what they have made."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    HostTensorHandle,
    IBackendInternal,
    NetworkResources,
    PreparationRequest,
    WorkloadInfo,
)
from tests.support.fake_backends import FakeBackend
from tests.support.networks import ADD, f32, floats


@pytest.mark.slow
@pytest.mark.parametrize("make", [ReferenceBackend, FakeBackend])
def test_what_a_backend_has_made_outlives_it(make: Callable[[], IBackendInternal]) -> None:
    backend = make()
    gone = weakref.ref(backend)
    support, factory = (
        backend.get_layer_support(PreparationRequest()),
        backend.create_workload_factory(NetworkResources()),
    )
    del backend
    gc.collect()
    assert gone() is None
    info = f32(2)
    assert support.is_layer_supported(ADD, (info, info), (info,))
    about = WorkloadInfo("add", (info, info), (info,), (None, None))
    workload = factory.create_workload(ADD, about)
    del factory, support
    gc.collect()
    y = np.zeros(2, np.float32)
    handles = [HostTensorHandle(info, array) for array in (floats(1, 2), floats(3, 4), y)]
    workload.execute(handles[:2], handles[2:])
    assert y.tolist() == [4, 6]

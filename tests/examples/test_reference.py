"""The reference backend as a dynamic one."""

from __future__ import annotations

import gc
import shutil
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from armpy.backend import HostTensorHandle, NetworkResources, PreparationRequest, WorkloadInfo
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Convolution2d
from armpy.plugins import BackendRegistry, CandidateStatus, PluginOptions
from armpy.types import REFERENCE_BACKEND_ID
from armpy_conformance import run_conformance
from armpy_testing.example_backends import EXAMPLES
from armpy_testing.models.networks import ADD, f32, floats

BACKEND_ID = "CpuRefDynamic"


@pytest.fixture
def options(tmp_path: Path) -> RuntimeOptions:
    shutil.copy(EXAMPLES / "reference" / "Arm_CpuRefDynamic_backend.py", tmp_path)
    return RuntimeOptions(dynamic_backends_path=tmp_path, backends=[BACKEND_ID])


def test_it_is_registered_beside_the_one_it_wraps(options: RuntimeOptions) -> None:
    paths = PluginOptions(options.dynamic_backends_path)
    registry = BackendRegistry.discover(paths)
    assert {BACKEND_ID, REFERENCE_BACKEND_ID} <= {b.get_id() for b in registry.available()}
    (candidate,) = (c for c in registry.candidates if c.backend_id == BACKEND_ID)
    assert candidate.status is CandidateStatus.REGISTERED


def test_it_runs_layers_as_the_reference_does(options: RuntimeOptions) -> None:
    runtime = Runtime(options)
    net = Network("sum")
    net.output("y", net.add(ADD, net.input("a", f32(3)), net.input("b", f32(3))))
    model = Model(net, runtime)
    assert model.placement is not None
    assert model.placement.layers_by_backend == {BACKEND_ID: 1}
    np.testing.assert_array_equal(model(floats(1, 2, 3), floats(1, 2, 3)), floats(2, 4, 6))


def test_a_convolution_is_supported_prepared_and_run(options: RuntimeOptions) -> None:
    backend = Runtime(options).registry.get(BACKEND_ID)
    operation = Convolution2d()
    image, weights, output = f32(1, 3, 3, 1), f32(1, 2, 2, 1), f32(1, 2, 2, 1)
    support = backend.get_layer_support(PreparationRequest())
    assert support.is_layer_supported(operation, (image, weights, None), (output,))
    ones = np.ones(weights.known_shape, np.float32)
    info = WorkloadInfo("convolution", (image, weights, None), (output,), (None, ones, None))
    workload = backend.create_workload_factory(NetworkResources()).create_workload(operation, info)
    pixels = np.arange(9, dtype=np.float32).reshape(image.known_shape)
    result = np.empty(output.known_shape, np.float32)
    inputs = [HostTensorHandle(image, pixels), HostTensorHandle(weights, ones), None]
    workload.execute(inputs, [HostTensorHandle(output, result)])
    np.testing.assert_array_equal(result.ravel(), floats(8, 12, 20, 24))


@pytest.mark.nightly
def test_it_passes_the_conformance_kit(options: RuntimeOptions) -> None:
    result = run_conformance(BACKEND_ID, runtime_options=options, filter="Convolution2d")
    assert not result.problems
    assert result.layers_run > 0


def test_neither_module_nor_instance_outlives_the_runtime(options: RuntimeOptions) -> None:
    runtime = Runtime(options)
    instance = weakref.ref(runtime.registry.get(BACKEND_ID))
    module = type(instance()).__module__
    assert module in sys.modules
    runtime.close()
    assert BACKEND_ID not in runtime.registry.backend_ids
    assert module not in sys.modules
    del runtime
    gc.collect()
    assert instance() is None

"""Arm NN's sample of a dynamic backend, in a directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import run_conformance
from armpy_testing.effort import part_of_kit
from armpy_testing.example_backends import EXAMPLES
from armpy_testing.models.networks import ADD, floats

BACKEND_ID = "SampleDynamic"


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    shutil.copy(EXAMPLES / "single_file" / "Arm_SampleDynamic_backend.py", tmp_path)
    return Runtime(RuntimeOptions(dynamic_backends_path=tmp_path))


def load(operation: Operation, data_type: DataType, runtime: Runtime) -> Model:
    net = Network("one layer")
    info = TensorInfo((2,), data_type)
    net.output("y", net.add(operation, net.input("a", info), net.input("b", info)))
    return Model(net, runtime)


def test_the_sample_is_found_in_its_directory(runtime: Runtime) -> None:
    assert BACKEND_ID in runtime.get_device_spec().supported_backends


def test_the_sample_adds_as_arm_nn_s_does(runtime: Runtime) -> None:
    model = load(ADD, DataType.FLOAT32, runtime)
    assert model.placement is not None
    assert model.placement.layers_by_backend == {BACKEND_ID: 1}
    np.testing.assert_array_equal(model(floats(5, 3), floats(10, 8)), floats(15, 11))


@pytest.mark.slow
def test_the_sample_passes_the_conformance_kit(runtime: Runtime) -> None:
    part = part_of_kit("contract/identity", "ElementwiseBinary")
    result = run_conformance(BACKEND_ID, runtime_options=runtime.options, filter=part)
    assert not result.problems

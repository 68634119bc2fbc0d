"""Outputs of small floats and integers, as arrays of the package ``ml_dtypes``."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, TensorInfo, ops

X = np.array([1.5, -2, 4, 0], np.float32)
KINDS = {
    "bfloat16": DataType.BFLOAT16,
    "float8_e4m3fn": DataType.FLOAT8_E4M3FN,
    "float8_e5m2": DataType.FLOAT8_E5M2,
    "float8_e8m0fnu": DataType.FLOAT8_E8M0,
    "float4_e2m1fn": DataType.FLOAT4_E2M1,
    "int4": DataType.SIGNED4,
    "uint2": DataType.UNSIGNED2,
}


def cast_to(data_type: DataType) -> Model:
    """A model that converts float32."""
    net = Network()
    x = net.input("x", TensorInfo((None,), DataType.FLOAT32))
    net.output("y", net.add(ops.Cast(), x, output=TensorInfo(None, data_type)))
    return Model(net, armpy.Runtime(armpy.RuntimeOptions(["CpuRef"])), closes_runtime=True)


@pytest.mark.parametrize("name", KINDS)
def test_outputs_are_numbers_of_the_package(name: str) -> None:
    kind = getattr(pytest.importorskip("ml_dtypes"), name)
    x = np.array([1, 2, 3 if "int" in name else 4, 0.5 if "e8m0" in name else 0], np.float32)
    expected = x.astype(kind)
    with cast_to(KINDS[name]) as model:
        called = model(x)
        named = (
            model.run({"x": x}),
            model.start({"x": x}).result(),
            model.run({"x": x}, deadline_s=9),
        )
    for output in (called, *(outputs["y"] for outputs in named)):
        assert isinstance(output, np.ndarray)
        assert output.dtype == expected.dtype
        np.testing.assert_array_equal(output.astype(np.float32), expected.astype(np.float32))


def test_an_array_of_the_package_is_written_to() -> None:
    target = np.zeros(4, pytest.importorskip("ml_dtypes").bfloat16)
    with cast_to(DataType.BFLOAT16) as model:
        assert model.run({"x": X}, {"y": target})["y"] is target
    np.testing.assert_array_equal(target.astype(np.float32), X)


def test_an_array_of_bits_is_written_to_as_well() -> None:
    target = np.zeros(4, np.uint16)
    with cast_to(DataType.BFLOAT16) as model:
        output = model.run({"x": X}, {"y": target})["y"]
    assert output.dtype == np.uint16
    np.testing.assert_array_equal(target, X.view(np.uint32) >> 16)


def test_outputs_are_bits_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with cast_to(DataType.BFLOAT16) as model:
        output = model.run({"x": X})["y"]
    np.testing.assert_array_equal(output, X.view(np.uint32) >> 16)

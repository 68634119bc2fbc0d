# SPDX-License-Identifier: Apache-2.0
"""A layer that the engine computes wrong is found from the file of the part that it got."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy import DataType, Model, Network, OptimizerOptions, TensorInfo
from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.graph import Graph, Layer
from armpy.ops import Activation, ActivationFunction, FullyConnected, Softmax
from armpy_conformance import first_difference

pytest.importorskip("onnxruntime")
pytest.importorskip("armpy_onnxruntime")


SIGMOID = Activation(ActivationFunction.SIGMOID)


def network() -> Graph:
    net = Network("digits")
    x = net.input("x", TensorInfo((2, 6), DataType.FLOAT32))
    weights = net.constant(np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6))
    x = net.add(FullyConnected(), x, weights, name="dense")
    x = net.add(SIGMOID, x, name="squash")
    net.output("y", net.add(Softmax(), x, name="classes"))
    return net.build()


def test_a_planted_fault_is_found_from_the_kept_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from armpy_onnxruntime.converters import CONVERTERS
    from armpy_onnxruntime.writer import ModelWriter

    right = CONVERTERS[Activation]

    def wrong(writer: ModelWriter, layer: Layer) -> None:
        if layer.operation == SIGMOID:
            value = layer.inputs[0]
            assert value is not None
            name = writer.add("Tanh", [writer.native(value)])
            writer.write(
                layer.outputs[0], name, channel_first=False, activation=FullyConnected().activation
            )
        else:
            right(writer, layer)

    converters: dict[type, object] = CONVERTERS  # type: ignore[assignment]
    monkeypatch.setitem(converters, Activation, wrong)
    options = OptimizerOptions(dump_graphs=str(tmp_path))
    runtime = Runtime(RuntimeOptions(backends=["OrtCpu"], on_fallback="error"))
    properties = NetworkProperties(optimizer=options)
    with Model(network(), runtime, properties=properties) as model:
        assert model.outputs[0].shape == (2, 6)
    (kept,) = tmp_path.glob("*-part_OrtCpu.tflite")
    answers = dict(np.load(kept.with_suffix(".npz")))
    assert answers["output_0"].shape == (2, 6)
    difference = first_difference(str(kept), "OrtCpu")
    assert not difference.is_same
    assert difference.first is not None
    assert difference.first.operation == "Activation()"

from __future__ import annotations

from armpy.graph.network import Network
from armpy.ops import Quantize, Reshape, Softmax
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.exact_layers import after_floats
from armpy_testing.models.networks import f32


def test_values_after_a_layer_that_computes_floats_are_inexact() -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    moved = net.add(Reshape((3, 2)), x)
    computed = net.add(Softmax(), moved)
    stored_info = TensorInfo((3, 2), DataType.QASYMM_S8, Quantization((0.5,), (0,)))
    stored = [
        net.add_layer(Quantize(), [value], outputs=[stored_info]).outputs[0]
        for value in (moved, computed)
    ]
    for number, value in enumerate(stored):
        net.output(f"y{number}", value)
    assert after_floats(net.build().layers) == {computed, stored[1]}

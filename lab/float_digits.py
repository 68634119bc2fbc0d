"""Writes the example model of digits on real numbers: `python lab/float_digits.py FILE.tflite`.

For pages that show what is done with a float model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from armpy.frontends.tflite_writer.tflite import write_tflite
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.model.model_files import parse
from armpy.ops import Activation, ActivationFunction, Pooling2d, Reshape, Softmax
from armpy_tools.accuracy.float_twin import float_twin

DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits_int8.tflite"

_NEVER_BELOW_ZERO = (Pooling2d, Reshape, Softmax)
"""Layers whose outputs are not negative, as the inputs that they have here are not."""


def write_float_digits(path: Path) -> None:
    """Write a float32 model with the layers and weights of the quantised one."""
    write_tflite(_without_ranges(float_twin(parse(DIGITS))), path)


def _without_ranges(twin: Graph) -> Graph:
    """The float network without the ranges of 8-bit tensors, for which TFLite has no operator.

    Those that begin at 0 are the model's RELUs.
    """
    net = Network("digits")
    values: dict[Value, Value] = {value: net.input(value.name, value.info) for value in twin.inputs}
    not_negative: set[Value] = set()
    for layer in twin.layers:
        inputs = [None if value is None else _copied(net, values, value) for value in layer.inputs]
        operation, source = layer.operation, layer.inputs[0]
        if isinstance(operation, Activation) and source is not None:
            if operation.b == 0 and source not in not_negative:
                relu = Activation(ActivationFunction.RELU)
                values[layer.outputs[0]] = net.add(relu, values[source])
            else:
                values[layer.outputs[0]] = values[source]
            continue
        if isinstance(operation, _NEVER_BELOW_ZERO):
            not_negative.update(layer.outputs)
        outputs = net.add_layer(operation, inputs, name=layer.name).outputs
        values.update(zip(layer.outputs, outputs, strict=True))
    for name, value in zip(twin.output_names, twin.outputs, strict=True):
        net.output(name, values[value])
    return net.build()


def _copied(net: Network, values: dict[Value, Value], value: Value) -> Value:
    """A value in the new network, to which a constant is added."""
    if value not in values:
        assert value.data is not None
        values[value] = net.constant(value.data, name=value.name)
    return values[value]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("file", type=Path, metavar="FILE.tflite")
    write_float_digits(parser.parse_args().file)

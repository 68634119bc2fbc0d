"""Operators that keep a state in variable tensors."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.node import ConverterTable, Node
from armpy.frontends.tflite.reader import Table
from armpy.graph import Value
from armpy.ops import RecurrentActivation, Svdf, UnidirectionalSequenceLstm
from armpy.ops.operation import Operation

_SVDF_STATE = 4
_LSTM_OUTPUT_STATE, _LSTM_CELL_STATE = 18, 19
_LSTM_HIDDEN = 4
_ACTIVATIONS = {
    0: RecurrentActivation.NONE,
    1: RecurrentActivation.RELU,
    2: RecurrentActivation.RELU1,
    3: RecurrentActivation.RELU6,
    4: RecurrentActivation.TANH,
}


def _activation(options: Table) -> RecurrentActivation:
    """The activation that the options name."""
    return options.choice("FusedActivationFunction", _ACTIVATIONS, "ActivationFunctionType")


def _state(node: Node, index: int) -> Value:
    """A variable tensor among the inputs."""
    value = node.input(index)
    if value is None:
        raise node.error(f"input {index}, the state, is missing")
    return value


def _svdf(node: Node) -> Sequence[Value]:
    options = node.options("SVDFOptions")
    operation = Svdf(options.integer("Rank"), _activation(options))
    return _recurrent_layer(node, operation, (_SVDF_STATE,))


def _lstm(node: Node) -> Sequence[Value]:
    options = node.options("UnidirectionalSequenceLSTMOptions")
    if options.flag("DiagonalRecurrentTensors"):
        raise node.error("diagonal recurrent weights are not supported")
    hidden_scale, hidden_zero_point = _intermediate(node, _LSTM_HIDDEN)
    operation = UnidirectionalSequenceLstm(
        activation=_activation(options),
        cell_clip=options.real("CellClip"),
        projection_clip=options.real("ProjClip"),
        time_major=options.flag("TimeMajor"),
        input_intermediate_scale=_intermediate(node, 0)[0],
        forget_intermediate_scale=_intermediate(node, 1)[0],
        cell_intermediate_scale=_intermediate(node, 2)[0],
        output_intermediate_scale=_intermediate(node, 3)[0],
        hidden_state_scale=hidden_scale,
        hidden_state_zero_point=hidden_zero_point,
    )
    return _recurrent_layer(node, operation, (_LSTM_OUTPUT_STATE, _LSTM_CELL_STATE))


def _intermediate(node: Node, index: int) -> tuple[float, int]:
    """Scale and zero point of an intermediate tensor; 0 where the file has none."""
    info = node.intermediates[index] if index < len(node.intermediates) else None
    if info is None or info.quantization is None:
        return 0.0, 0
    return info.quantization.scale, info.quantization.zero_point


def _recurrent_layer(node: Node, operation: Operation, states: Sequence[int]) -> Sequence[Value]:
    """Add a layer whose outputs are the new states, then the operator's own output."""
    node.expect_outputs(1)
    variables = [_state(node, index) for index in states]
    layer = node.network.add_layer(
        operation,
        node.inputs,
        name=node.name,
        outputs=[*(variable.info for variable in variables), *node.outputs],
        output_names=[*(f"{node.name}:state_{i}" for i in range(len(states))), *node.output_names],
    )
    for index, value in zip(states, layer.outputs, strict=False):
        node.update_variable(index, value)
    return layer.outputs[len(states) :]


CONVERTERS: ConverterTable = {
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}

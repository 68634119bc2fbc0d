"""Operators that keep a state in variable tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armpy.core.flatbuffers.reader import TableReader
from armpy.frontends.tflite.node import BoundOperator, ConverterTable
from armpy.graph import Value
from armpy.ops.bidirectional import BidirectionalSequenceLstm, BidirectionalSequenceRnn
from armpy.ops.lstm import Lstm, UnidirectionalSequenceLstm
from armpy.ops.operation import Operation
from armpy.ops.recurrent import RecurrentActivation, Rnn, Svdf, UnidirectionalSequenceRnn
from armpy.ops.reshaping import ExpandDims, Squeeze

_SVDF_STATE = _RNN_STATE = 4
_LSTM_STATES = (18, 19)
_BIDIRECTIONAL_LSTM_STATES = (35, 36, 37, 38)
_BIDIRECTIONAL_RNN_STATES = (4, 8)
_LSTM_HIDDEN = 4
_ACTIVATIONS = {
    0: RecurrentActivation.NONE,
    1: RecurrentActivation.RELU,
    2: RecurrentActivation.RELU1,
    3: RecurrentActivation.RELU6,
    4: RecurrentActivation.TANH,
}


def _activation(options: TableReader) -> RecurrentActivation:
    """The activation that the options name."""
    return options.choice("FusedActivationFunction", _ACTIVATIONS, "ActivationFunctionType")


def _state(node: BoundOperator, index: int) -> Value:
    """A variable tensor among the inputs."""
    value = node.input(index)
    if value is None:
        raise node.error(f"input {index}, the state, is missing")
    return value


def _svdf(node: BoundOperator) -> Sequence[Value]:
    options = node.options("SVDFOptions")
    operation = Svdf(options.integer("Rank"), _activation(options))
    return _recurrent_layer(node, operation, (_SVDF_STATE,))


def _rnn(node: BoundOperator) -> Sequence[Value]:
    options = node.options("RNNOptions")
    return _recurrent_layer(node, Rnn(_activation(options)), (_RNN_STATE,))


def _sequence_rnn(node: BoundOperator) -> Sequence[Value]:
    options = node.options("SequenceRNNOptions")
    operation = UnidirectionalSequenceRnn(_activation(options), options.flag("TimeMajor"))
    return _recurrent_layer(node, operation, (_RNN_STATE,))


def _bidirectional_rnn(node: BoundOperator) -> Sequence[Value]:
    options = node.options("BidirectionalSequenceRNNOptions")
    operation = BidirectionalSequenceRnn(
        _activation(options), options.flag("TimeMajor"), options.flag("MergeOutputs")
    )
    return _recurrent_layer(node, operation, _BIDIRECTIONAL_RNN_STATES)


def _bidirectional_lstm(node: BoundOperator) -> Sequence[Value]:
    options = node.options("BidirectionalSequenceLSTMOptions")
    operation = BidirectionalSequenceLstm(
        activation=_activation(options),
        cell_clip=options.real("CellClip"),
        projection_clip=options.real("ProjClip"),
        merge_outputs=options.flag("MergeOutputs"),
        time_major=options.flag("TimeMajor"),
    )
    return _recurrent_layer(node, operation, _BIDIRECTIONAL_LSTM_STATES)


def _lstm(node: BoundOperator) -> Sequence[Value]:
    options = node.options("LSTMOptions")
    options.choice("KernelType", {0: "FULL"}, "LSTMKernelType")
    source = node.input(0)
    if source is not None and source.info.data_type.is_quantized:
        return _quantized_step(node, source, options)
    operation = Lstm(
        activation=_activation(options),
        cell_clip=options.real("CellClip"),
        projection_clip=options.real("ProjClip"),
    )
    return _recurrent_layer(node, operation, _LSTM_STATES, unused=1)


def _quantized_step(node: BoundOperator, source: Value, options: TableReader) -> Sequence[Value]:
    """Compute a quantised LSTM as a sequence of one step."""
    step = node.network.add_layer(
        ExpandDims(0),
        [source],
        name=f"{node.name}:step",
        outputs=[source.info.with_shape(None)],
    )
    names = [f"{name}:sequence" for name in node.output_names]
    inner = replace(node, inputs=[step.outputs[0], *node.inputs[1:]], output_names=names)
    return node.layer(Squeeze((0,)), *_steps(inner, options, time_major=True))


def _sequence_lstm(node: BoundOperator) -> Sequence[Value]:
    options = node.options("UnidirectionalSequenceLSTMOptions")
    if options.flag("DiagonalRecurrentTensors"):
        raise node.error("diagonal recurrent weights are not supported")
    return _steps(node, options, time_major=options.flag("TimeMajor"))


def _steps(node: BoundOperator, options: TableReader, *, time_major: bool) -> Sequence[Value]:
    hidden_scale, hidden_zero_point = _intermediate(node, _LSTM_HIDDEN)
    operation = UnidirectionalSequenceLstm(
        activation=_activation(options),
        cell_clip=options.real("CellClip"),
        projection_clip=options.real("ProjClip"),
        time_major=time_major,
        input_intermediate_scale=_intermediate(node, 0)[0],
        forget_intermediate_scale=_intermediate(node, 1)[0],
        cell_intermediate_scale=_intermediate(node, 2)[0],
        output_intermediate_scale=_intermediate(node, 3)[0],
        hidden_state_scale=hidden_scale,
        hidden_state_zero_point=hidden_zero_point,
    )
    return _recurrent_layer(node, operation, _LSTM_STATES)


def _intermediate(node: BoundOperator, index: int) -> tuple[float, int]:
    """Scale and zero point of an intermediate tensor; 0 where the file has none."""
    info = node.intermediates[index] if index < len(node.intermediates) else None
    if info is None or info.quantization is None:
        return 0.0, 0
    return info.quantization.scale, info.quantization.zero_point


def _recurrent_layer(
    node: BoundOperator, operation: Operation, states: Sequence[int], unused: int = 0
) -> Sequence[Value]:
    """Add a layer whose outputs are unused ones, the new states, then the operator's own."""
    num_ahead = unused + len(states)
    node.expect_outputs(operation.num_outputs - num_ahead)
    variables = [_state(node, index) for index in states]
    state_names = [f"{node.name}:state_{i}" for i in range(len(states))]
    unused_names = [f"{node.name}:unused_{i}" for i in range(unused)]
    layer = node.network.add_layer(
        operation,
        node.inputs,
        name=node.name,
        outputs=[*(None,) * unused, *(variable.info for variable in variables), *node.outputs],
        output_names=[*unused_names, *state_names, *node.output_names],
    )
    for index, value in zip(states, layer.outputs[unused:], strict=False):
        node.update_variable(index, value)
    return layer.outputs[num_ahead:]


CONVERTERS: ConverterTable = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": _bidirectional_lstm,
    "BIDIRECTIONAL_SEQUENCE_RNN": _bidirectional_rnn,
    "LSTM": _lstm,
    "RNN": _rnn,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _sequence_lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _sequence_rnn,
}

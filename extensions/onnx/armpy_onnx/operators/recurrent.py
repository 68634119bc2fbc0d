"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.lstm import UnidirectionalSequenceLstm
from armpy.ops.movement import ReverseV2
from armpy.ops.recurrent import RecurrentActivation
from armpy.ops.recurrent_sequence import GateFunction, RecurrentCell, RecurrentSequence
from armpy.types import DataType
from armpy_onnx.blocks import binary, filled, joined, reshaped, split, transposed
from armpy_onnx.node import Node, Operator, OperatorTable

_FUNCTIONS: Mapping[str, tuple[GateFunction, float | None, float | None]] = {
    "sigmoid": (GateFunction.SIGMOID, None, None),
    "tanh": (GateFunction.TANH, None, None),
    "relu": (GateFunction.RELU, None, None),
    "affine": (GateFunction.AFFINE, 1.0, 0.0),
    "leakyrelu": (GateFunction.LEAKY_RELU, 0.01, None),
    "thresholdedrelu": (GateFunction.THRESHOLDED_RELU, 1.0, None),
    "scaledtanh": (GateFunction.SCALED_TANH, 1.0, 1.0),
    "hardsigmoid": (GateFunction.HARD_SIGMOID, 0.2, 0.5),
    "elu": (GateFunction.ELU, 1.0, None),
    "softsign": (GateFunction.SOFTSIGN, None, None),
    "softplus": (GateFunction.SOFTPLUS, None, None),
}
"""Functions by name, with the parameters that they take where a file gives none."""

_KEPT = {
    GateFunction.TANH: RecurrentActivation.TANH,
    GateFunction.RELU: RecurrentActivation.RELU,
    GateFunction.SIGMOID: RecurrentActivation.SIGMOID,
}
"""Functions of a candidate that `UnidirectionalSequenceLstm` has."""

_REVERSED = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_LENGTHS, _FIRST_STATE = 4, 5


def _recurrent(cell: RecurrentCell) -> Operator:
    """One or two directions of a cell."""

    def convert(node: Node) -> Sequence[Value]:
        directions = _operations(node, cell)
        _check(node, cell, len(directions))
        sequence = node.value(0)
        if node.flag("layout"):
            sequence = transposed(node, sequence, (1, 0, 2))
        by_direction = [
            _direction(node, number, operation, sequence)
            for number, operation in enumerate(directions)
        ]
        return _outputs(node, by_direction)

    return Operator(convert)


def _check(node: Node, cell: RecurrentCell, num_directions: int) -> None:
    """Ranks, and as many weights as there are directions."""
    ranks = {0: 3, 1: 3, 2: 3, 3: 2, _LENGTHS: 1, _FIRST_STATE: 3, 6: 3, 7: 2}
    for index, rank in ranks.items():
        if node.has(index) and node.rank(index) != rank:
            raise node.error(
                f"input {index} has the wrong rank", expected=str(rank), actual=node.shape(index)
            )
    axis = 1 if node.flag("layout") else 0
    for index, at in ((1, 0), (2, 0), (3, 0), (5, axis), (6, axis), (7, 0)):
        if node.has(index) and node.shape(index)[at] != num_directions:
            raise node.error(
                f"input {index} does not have a part for each direction",
                expected=str(num_directions),
                actual=node.shape(index),
            )
    units = node.shape(2)[2]
    biases = 2 * cell.num_gates * units
    for index, size in ((3, biases), (7, 3 * units)):
        if node.has(index) and node.shape(index)[1] != size:
            raise node.error(
                f"input {index} has the wrong size", expected=str(size), actual=node.shape(index)
            )


def _operations(node: Node, cell: RecurrentCell) -> list[RecurrentSequence]:
    """Return the operations of each direction."""
    direction = node.text("direction", "forward").lower()
    if direction not in _REVERSED:
        raise node.error(
            "the attribute 'direction' has an unknown value",
            expected=str([*_REVERSED]),
            actual=direction,
        )
    reverses, count = _REVERSED[direction], len(cell.functions)
    names = node.attribute("activations")
    functions = _functions(node, names) if names else []
    if functions and len(functions) != count * len(reverses):
        raise node.error(
            "the number of activations is wrong",
            expected=str(count * len(reverses)),
            actual=len(functions),
        )
    parts = [functions[number * count :][:count] for number in range(len(reverses))]
    return [
        RecurrentSequence(
            cell,
            tuple(function for function, _, _ in part),
            tuple(alpha for _, alpha, _ in part),
            tuple(beta for _, _, beta in part),
            clip=node.real("clip", 0.0),
            is_reversed=is_reversed,
            resets_after=cell is RecurrentCell.GRU and node.flag("linear_before_reset"),
            couples_gates=cell is RecurrentCell.LSTM and node.flag("input_forget"),
        )
        for is_reversed, part in zip(reverses, parts, strict=True)
    ]


def _functions(node: Node, names: Sequence[str]) -> list[tuple[GateFunction, float, float]]:
    """Functions with their parameters, which are given for those only that take some."""
    alphas: Iterator[float] = iter(node.attribute("activation_alpha", ()))
    betas: Iterator[float] = iter(node.attribute("activation_beta", ()))
    functions = []
    for name in names:
        entry = _FUNCTIONS.get(name.lower())
        if entry is None:
            raise node.error(
                "an activation is unknown", expected=", ".join(_FUNCTIONS), actual=name
            )
        function, alpha, beta = entry
        functions.append(
            (
                function,
                0.0 if alpha is None else float(next(alphas, alpha)),
                0.0 if beta is None else float(next(betas, beta)),
            )
        )
    return functions


def _direction(
    node: Node, number: int, operation: RecurrentSequence, sequence: Value
) -> tuple[Value, ...]:
    """The sequence and the states that one direction gives."""

    def part(index: int, axis: int = 0) -> Value | None:
        """The direction's part of an input."""
        value = node.input(index)
        if value is None:
            return None
        shape = list(value.info.known_shape)
        parts = split(node, value, (1,) * shape.pop(axis), axis)
        return reshaped(node, parts[number], shape)

    weights, recurrent, biases = part(1), part(2), part(3)
    assert weights is not None
    assert recurrent is not None
    bias, recurrent_bias = (None, None)
    if biases is not None:
        half = biases.info.known_shape[0] // 2
        bias, recurrent_bias = split(node, biases, (half, half), 0)
    axis = 1 if node.flag("layout") else 0
    hidden, cell, peephole = part(_FIRST_STATE, axis), None, None
    if operation.cell is RecurrentCell.LSTM:
        cell, peephole = part(6, axis), part(7)
    operands = (sequence, weights, recurrent, bias, recurrent_bias, _lengths(node, sequence))
    states = (hidden, cell, peephole)
    if _is_plain_lstm(operation, operands):
        return _plain_lstm(node, operation, operands, states)
    return node.layers(operation, (*operands, *states))


def _lengths(node: Node, sequence: Value) -> Value | None:
    """Lengths of sequences, unless all are known to be whole."""
    lengths = node.input(_LENGTHS)
    if lengths is None or lengths.data is None:
        return lengths
    is_whole = bool(np.all(lengths.data == sequence.info.known_shape[0]))
    return None if is_whole else lengths


def _is_plain_lstm(operation: RecurrentSequence, operands: Sequence[Value | None]) -> bool:
    """Return whether an LSTM is one that `UnidirectionalSequenceLstm` computes."""
    sequence, *_, lengths = operands
    assert sequence is not None
    if operation.cell is not RecurrentCell.LSTM:
        return False
    gate, activate, let_out = operation.functions or RecurrentCell.LSTM.functions
    return (
        gate is GateFunction.SIGMOID
        and activate is let_out
        and activate in _KEPT
        and not operation.clip
        and not operation.couples_gates
        and lengths is None
        and 0 not in sequence.info.known_shape
        and sequence.info.data_type in (DataType.FLOAT32, DataType.FLOAT16)
    )


def _plain_lstm(
    node: Node,
    operation: RecurrentSequence,
    operands: Sequence[Value | None],
    states: Sequence[Value | None],
) -> tuple[Value, ...]:
    """An LSTM as Arm NN and TFLite have it, whose gates have operands of their own."""
    sequence, weights, recurrent, bias, recurrent_bias, _ = operands
    hidden, cell, peephole = states
    assert sequence is not None
    assert weights is not None
    assert recurrent is not None
    units, batch = recurrent.info.known_shape[1], sequence.info.known_shape[1]

    def by_gate(value: Value, order: Sequence[int]) -> list[Value]:
        """Parts of an operand for the gates in another order."""
        parts = split(node, value, (units,) * len(order), 0)
        return [parts[at] for at in order]

    def zeros(*shape: int) -> Value:
        assert sequence is not None
        return filled(node, sequence, shape, 0)

    if bias is None or recurrent_bias is None:
        total = zeros(4 * units)
    else:
        total = binary(node, BinaryOperation.ADD, bias, recurrent_bias)
    gates = (0, 2, 3, 1)  # in, forget, candidate, out, of ONNX's in, out, forget, candidate
    peepholes: Sequence[Value | None] = (None,) * 3
    if peephole is not None:
        peepholes = by_gate(peephole, (0, 2, 1))
    axes = (0,)
    source = node.layer(ReverseV2(axes), sequence) if operation.is_reversed else sequence
    functions = operation.functions or RecurrentCell.LSTM.functions
    lstm = UnidirectionalSequenceLstm(activation=_KEPT[functions[1]], time_major=True)
    inputs = (
        source,
        *by_gate(weights, gates),
        *by_gate(recurrent, gates),
        *peepholes,
        *by_gate(total, gates),
        None,
        None,
        zeros(batch, units) if hidden is None else hidden,
        zeros(batch, units) if cell is None else cell,
    )
    hidden, cell, output = node.layers(lstm, inputs)
    if operation.is_reversed:
        output = node.layer(ReverseV2(axes), output)
    return output, hidden, cell


def _outputs(node: Node, directions: Sequence[Sequence[Value]]) -> list[Value]:
    """The outputs of all directions together, in the node's layout."""
    is_batch_major = node.flag("layout")
    outputs = []
    for number, parts in enumerate(zip(*directions, strict=True)):
        axis = 0 if number else 1
        rows = []
        for value in parts:
            shape = list(value.info.known_shape)
            shape.insert(axis, 1)
            rows.append(reshaped(node, value, shape))
        value = joined(node, rows, axis)
        if is_batch_major:
            value = transposed(node, value, (1, 0, 2) if number else (2, 0, 1, 3))
        outputs.append(value)
    return outputs


OPERATORS: OperatorTable = {
    "RNN": _recurrent(RecurrentCell.RNN),
    "GRU": _recurrent(RecurrentCell.GRU),
    "LSTM": _recurrent(RecurrentCell.LSTM),
}

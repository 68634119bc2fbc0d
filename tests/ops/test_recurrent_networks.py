"""Definitions of recurrent operations that take one step, or both directions of time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from armpy.errors import LayerValidationError
from armpy.ops import (
    BidirectionalSequenceLstm,
    BidirectionalSequenceRnn,
    Lstm,
    QLstm,
    QuantizedLstm,
    Rnn,
    UnidirectionalSequenceRnn,
)
from armpy.ops.operation import Operation
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType

F32 = DataType.FLOAT32

# Batch 2, time 5, 3 inputs, 4 cells projected to 6; backward 7 cells projected to 8; 9 auxiliary.
SIZES = {"b": 2, "t": 5, "i": 3, "n": 4, "o": 6, "m": 7, "p": 8, "a": 9}
AXES = {
    "weights": "ni",
    "recurrent_weights": "nn",
    "hidden_state_in": "bn",
    "aux_weights": "na",
    "projection_weights": "on",
    "projection_bias": "o",
    "output_state_in": "bo",
    "cell_state_in": "bn",
}
PREFIXES = {"input_to": "ni", "recurrent_to": "no", "aux_to": "na"}


def axes_of(full_name: str, input_axes: str) -> str:
    """Axes of an operand, where both directions read the input."""
    if full_name in ("input", "aux_input"):
        return input_axes if full_name == "input" else input_axes.replace("i", "a")
    name = full_name.removeprefix("forward_").removeprefix("backward_")
    by_prefix = next((axes for prefix, axes in PREFIXES.items() if name.startswith(prefix)), "n")
    axes = AXES.get(name, by_prefix)
    backward = str.maketrans("no", "mp")
    return axes.translate(backward) if full_name.startswith("backward_") else axes


def operands(
    operation: Operation,
    input_axes: str,
    without: Collection[str] = (),
    shapes: Mapping[str, Shape] | None = None,
) -> list[TensorInfo | None]:
    """Float operands of an operation with everything, but for some."""
    infos: list[TensorInfo | None] = []
    for operand in operation.inputs:
        shape: Shape = tuple(SIZES[axis] for axis in axes_of(operand.name, input_axes))
        shape = (shapes or {}).get(operand.name, shape)
        infos.append(None if operand.name in without else TensorInfo(shape, F32))
    return infos


def shapes_of(operation: Operation, inputs: Sequence[TensorInfo | None]) -> list[Shape | None]:
    """Inferred shapes."""
    return [info.shape for info in operation.infer(inputs)]


def test_rnn_outputs_its_state_twice() -> None:
    assert shapes_of(Rnn(), operands(Rnn(), "bi")) == [(2, 4), (2, 4)]


@pytest.mark.parametrize(
    ("operation", "axes", "output"),
    [
        (UnidirectionalSequenceRnn(), "bti", (2, 5, 4)),
        (UnidirectionalSequenceRnn(time_major=True), "tbi", (5, 2, 4)),
    ],
)
def test_sequence_rnn_outputs_state_and_sequence(
    operation: Operation, axes: str, output: Shape
) -> None:
    assert shapes_of(operation, operands(operation, axes)) == [(2, 4), output]


def test_rnn_refuses_recurrent_weights_of_another_size() -> None:
    inputs = operands(Rnn(), "bi", shapes={"recurrent_weights": (4, 5)})
    with pytest.raises(LayerValidationError, match=r"recurrent_weights does not match.*4; got 5"):
        Rnn().infer(inputs)


OF_INPUT_GATE = [
    "input_to_input_weights",
    "recurrent_to_input_weights",
    "cell_to_input_weights",
    "input_gate_bias",
    "input_layer_norm_weights",
]


@pytest.mark.parametrize(("without", "scratch"), [([], 16), (OF_INPUT_GATE, 12)])
def test_lstm_scratch_has_room_for_each_gate(without: list[str], scratch: int) -> None:
    shapes = shapes_of(Lstm(), operands(Lstm(), "bi", without))
    assert shapes == [(2, scratch), (2, 6), (2, 4), (2, 6)]


def test_lstm_infers_what_it_can_from_unknown_dimensions() -> None:
    unknown: dict[str, Shape] = {
        operand.name: (None,) * len(axes_of(operand.name, "bi")) for operand in Lstm.inputs
    }
    known = unknown | {"cell_bias": (4,), "input": (2, None)}
    assert shapes_of(Lstm(), operands(Lstm(), "bi", shapes=known)) == [
        (2, 16),
        (2, None),
        (2, 4),
        (2, None),
    ]


def test_lstm_step_leaves_parts_out_as_a_whole() -> None:
    inputs = operands(Lstm(), "bi", ["input_gate_bias"])
    with pytest.raises(LayerValidationError, match="input_gate_bias is missing"):
        Lstm().infer(inputs)


@pytest.mark.parametrize("name", ["cell_clip", "projection_clip"])
@pytest.mark.parametrize("operation", [Lstm(), BidirectionalSequenceLstm()])
def test_clips_are_not_negative(operation: Operation, name: str) -> None:
    axes = "bi" if isinstance(operation, Lstm) else "bti"
    with pytest.raises(LayerValidationError, match=f"{name} is negative.*0 or more; got -1"):
        operation.with_attributes(**{name: -1.0}).infer(operands(operation, axes))


LSTM_STATES = [(2, 6), (2, 4), (2, 8), (2, 7)]


@pytest.mark.parametrize(
    ("operation", "axes", "expected"),
    [
        (BidirectionalSequenceLstm(), "bti", [*LSTM_STATES, (2, 5, 6), (2, 5, 8)]),
        (
            BidirectionalSequenceLstm(merge_outputs=True, time_major=True),
            "tbi",
            [*LSTM_STATES, (5, 2, 14)],
        ),
        (BidirectionalSequenceRnn(), "bti", [(2, 4), (2, 7), (2, 5, 4), (2, 5, 7)]),
        (
            BidirectionalSequenceRnn(merge_outputs=True, time_major=True),
            "tbi",
            [(2, 4), (2, 7), (5, 2, 11)],
        ),
    ],
)
def test_both_directions_have_sizes_of_their_own(
    operation: Operation, axes: str, expected: list[Shape]
) -> None:
    assert shapes_of(operation, operands(operation, axes)) == expected


def aux_weights(operation: Operation) -> list[str]:
    """Names of the auxiliary input's weights."""
    names = [operand.name for operand in operation.inputs]
    return [name for name in names if "aux_" in name and name != "aux_input"]


LINKED = pytest.mark.parametrize(
    ("operation", "backward_weights"),
    [
        (
            BidirectionalSequenceLstm(),
            [f"backward_input_to_{gate}_weights" for gate in ("input", "forget", "cell", "output")],
        ),
        (BidirectionalSequenceRnn(), ["backward_weights"]),
    ],
)


@LINKED
def test_backward_direction_reads_an_auxiliary_input_without_weights(
    operation: Operation, backward_weights: list[str]
) -> None:
    without = aux_weights(operation)
    shapes: dict[str, Shape] = dict.fromkeys(backward_weights, (7, 9))
    assert operation.infer(operands(operation, "bti", without, shapes))
    with pytest.raises(LayerValidationError, match=r"does not match the other operands"):
        operation.infer(operands(operation, "bti", without))


@LINKED
def test_auxiliary_weights_need_an_auxiliary_input(
    operation: Operation, backward_weights: list[str]
) -> None:
    with pytest.raises(LayerValidationError, match="auxiliary input is missing"):
        operation.infer(operands(operation, "bti", ["aux_input"]))


@LINKED
def test_both_directions_weigh_the_auxiliary_input_or_none(
    operation: Operation, backward_weights: list[str]
) -> None:
    name = aux_weights(operation)[-1]
    with pytest.raises(LayerValidationError, match=f"{name} is missing"):
        operation.infer(operands(operation, "bti", [name]))


@pytest.mark.parametrize("prefix", ["forward_", "backward_"])
def test_parts_of_each_direction_are_left_out_as_a_whole(prefix: str) -> None:
    operation = BidirectionalSequenceLstm()
    peephole = [f"{prefix}cell_to_{gate}_weights" for gate in ("input", "forget", "output")]
    assert operation.infer(operands(operation, "bti", peephole))
    with pytest.raises(LayerValidationError, match=f"{prefix}cell_to_output_weights is there"):
        operation.infer(operands(operation, "bti", peephole[:2]))


def test_both_directions_run_over_unknown_dimensions() -> None:
    operation = BidirectionalSequenceLstm(merge_outputs=True)
    unknown: dict[str, Shape] = {
        operand.name: (None,) * len(axes_of(operand.name, "bti")) for operand in operation.inputs
    }
    shapes = shapes_of(operation, operands(operation, "bti", shapes=unknown))
    assert shapes == [(None, None)] * 4 + [(None, None, None)]


def quantized(shape: Shape, data_type: DataType, scale: float, zero_point: int = 0) -> TensorInfo:
    """Info of a quantised tensor."""
    return TensorInfo(shape, data_type, Quantization.per_tensor(scale, zero_point))


QLSTM = QLstm(hidden_state_scale=0.01).with_attributes(
    **{f"{gate}_intermediate_scale": 0.001 for gate in ("input", "forget", "cell", "output")}
)


def qlstm_operands(
    without: Collection[str] = (), cell_scale: float = 2.0**-11
) -> list[TensorInfo | None]:
    """Operands of a QLstm with everything, but for some."""
    infos: list[TensorInfo | None] = []
    for operand, info in zip(QLstm.inputs, operands(QLSTM, "bi", without), strict=True):
        name = operand.name
        shape: Shape = () if info is None or info.shape is None else info.shape
        if info is None or name.endswith("bias"):
            infos.append(info and TensorInfo(shape, DataType.SIGNED32))
        elif name == "cell_state_in" or name.startswith("cell_to") or "layer_norm" in name:
            scale = cell_scale if name == "cell_state_in" else 0.01
            infos.append(quantized(shape, DataType.QSYMM_S16, scale))
        else:
            is_weight = name.endswith("weights")
            data_type = DataType.QSYMM_S8 if is_weight else DataType.QASYMM_S8
            infos.append(quantized(shape, data_type, 0.01))
    return infos


def qlstm_outputs(cell_scale: float = 2.0**-11) -> list[TensorInfo]:
    """Declared outputs of a QLstm."""
    data = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(0.01))
    cell = TensorInfo(None, DataType.QSYMM_S16, Quantization.per_tensor(cell_scale))
    return [data, cell, data]


@pytest.mark.parametrize("without", [[], OF_INPUT_GATE])
def test_qlstm_outputs_states_and_output(without: list[str]) -> None:
    outputs = QLSTM.infer(qlstm_operands(without), qlstm_outputs())
    assert [info.shape for info in outputs] == [(2, 6), (2, 4), (2, 6)]


def test_qlstm_needs_the_scales_of_all_gates() -> None:
    operation = QLSTM.with_attributes(input_intermediate_scale=0.0)
    assert operation.infer(qlstm_operands(OF_INPUT_GATE), qlstm_outputs())
    with pytest.raises(LayerValidationError, match="input_intermediate_scale is not positive"):
        operation.infer(qlstm_operands(), qlstm_outputs())


def test_qlstm_cell_state_has_a_power_of_two_as_scale() -> None:
    with pytest.raises(LayerValidationError, match="cell state's scale is not a power of two"):
        QLSTM.infer(qlstm_operands(cell_scale=0.0006), qlstm_outputs(0.0006))


def quantized_lstm_operands() -> list[TensorInfo]:
    """Operands of a QuantizedLstm."""
    u8 = DataType.QASYMM_U8
    return [
        quantized((2, 3), u8, 1 / 128, 128),
        *(quantized((4, 3), u8, 0.01, 100) for _ in range(4)),
        *(quantized((4, 4), u8, 0.01, 100) for _ in range(4)),
        *(TensorInfo((4,), DataType.SIGNED32) for _ in range(4)),
        quantized((2, 4), DataType.QSYMM_S16, 2.0**-11),
        quantized((2, 4), u8, 1 / 128, 128),
    ]


def quantized_lstm_outputs() -> list[TensorInfo]:
    """Declared outputs of a QuantizedLstm."""
    return [info.with_shape(None) for info in quantized_lstm_operands()[-2:]]


def test_quantized_lstm_outputs_cell_state_and_output() -> None:
    outputs = QuantizedLstm().infer(quantized_lstm_operands(), quantized_lstm_outputs())
    assert [info.shape for info in outputs] == [(2, 4), (2, 4)]
    assert [info.data_type for info in outputs] == [DataType.QSYMM_S16, DataType.QASYMM_U8]


@pytest.mark.parametrize(
    ("index", "quantization", "message"),
    [
        (0, Quantization.per_tensor(1 / 64, 128), r"quantisation of input is not.*0.0078125 and"),
        (14, Quantization.per_tensor(1 / 128, 0), r"of output_state_in is not.*zero point 128"),
        (13, Quantization.per_tensor(2.0**-12), r"of cell_state_in is not.*0.000488281"),
        (8, Quantization.per_tensor(0.01, 99), r"recurrent_to_output_weights are quantised diff"),
    ],
)
def test_quantized_lstm_prescribes_its_quantization(
    index: int, quantization: Quantization, message: str
) -> None:
    inputs = quantized_lstm_operands()
    inputs[index] = replace(inputs[index], quantization=quantization)
    with pytest.raises(LayerValidationError, match=message):
        QuantizedLstm().infer(inputs, quantized_lstm_outputs())

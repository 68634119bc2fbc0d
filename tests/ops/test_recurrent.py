"""Definitions of recurrent operations: shapes, types, which operands go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from armpy.errors import LayerValidationError
from armpy.ops import RecurrentActivation, Svdf, UnidirectionalSequenceLstm
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType

F32, S8, S16 = DataType.FLOAT32, DataType.QASYMM_S8, DataType.QSYMM_S16

# Batch 2, 3 inputs, 6 filters, a memory of 4, rank 2.
SVDF_SHAPES: dict[str, Shape] = {
    "input": (2, 3),
    "weights_feature": (6, 3),
    "weights_time": (6, 4),
    "bias": (3,),
    "state_in": (2, 24),
}
# Batch 2, time 5, 3 inputs, 4 cells, projected to 6.
SIZES = {"b": 2, "t": 5, "i": 3, "n": 4, "o": 6}


def infos(shapes: dict[str, Shape], data_type: DataType = F32) -> list[TensorInfo]:
    """Infos of one data type."""
    return [TensorInfo(shape, data_type) for shape in shapes.values()]


def quantized(
    shape: Shape | None, data_type: DataType, scale: float, zero_point: int = 0
) -> TensorInfo:
    """Info of a quantised tensor."""
    return TensorInfo(shape, data_type, Quantization.per_tensor(scale, zero_point))


def integer_svdf(time: DataType = S16, state: DataType = S16) -> list[TensorInfo]:
    """Operands of an integer Svdf."""
    types = (S8, S8, time, DataType.SIGNED32, state)
    return [
        quantized(shape, data_type, 0.5) if data_type.is_quantized else TensorInfo(shape, data_type)
        for shape, data_type in zip(SVDF_SHAPES.values(), types, strict=True)
    ]


def svdf_outputs(state: DataType = S16, scale: float = 0.5) -> list[TensorInfo]:
    """Declared outputs of an integer Svdf."""
    return [quantized(None, state, scale), quantized(None, S8, 0.1, 3)]


def test_svdf_sums_the_filters_of_a_unit() -> None:
    state, output = Svdf(rank=2).infer(infos(SVDF_SHAPES))
    assert state == TensorInfo((2, 24), F32)
    assert output == TensorInfo((2, 3), F32)


def test_svdf_bias_may_be_left_out() -> None:
    operands: list[TensorInfo | None] = [*infos(SVDF_SHAPES)]
    operands[3] = None
    assert Svdf(rank=2).infer(operands)[1].shape == (2, 3)


def test_svdf_infers_what_it_can_from_unknown_dimensions() -> None:
    operands = [TensorInfo((None,) * len(s), F32) for s in SVDF_SHAPES.values()]
    assert [o.shape for o in Svdf(rank=2).infer(operands)] == [(None, None), (None, None)]
    operands[1] = TensorInfo((6, None), F32)
    assert [o.shape for o in Svdf(rank=2).infer(operands)] == [(None, None), (None, 3)]
    operands[2] = TensorInfo((None, 4), F32)
    operands[4] = TensorInfo((2, None), F32)
    assert [o.shape for o in Svdf(rank=2).infer(operands)] == [(2, 24), (2, 3)]


def test_svdf_of_unknown_rank_gives_unknown_shapes() -> None:
    operands = [TensorInfo(None, F32) for _ in SVDF_SHAPES]
    assert [o.shape for o in Svdf().infer(operands)] == [None, None]


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("weights_feature", (6, 4), r"size of weights_feature does not match.*Expected 3; got 4"),
        ("weights_time", (8, 4), r"size of weights_time does not match.*Expected 6; got 8"),
        ("bias", (4,), r"size of bias does not match.*Expected 4; got 3"),
        ("state_in", (2, 18), r"size of state_in does not match.*Expected 18; got 24"),
        ("state_in", (3, 24), r"size of state_in does not match.*Expected 2; got 3"),
        ("input", (2, 3, 1), r"'input' has the wrong rank.*rank 2"),
    ],
)
def test_svdf_refuses_sizes_that_do_not_fit(name: str, shape: Shape, message: str) -> None:
    with pytest.raises(LayerValidationError, match=message):
        Svdf(rank=2).infer(infos(SVDF_SHAPES | {name: shape}))


def test_svdf_filters_split_into_units() -> None:
    with pytest.raises(LayerValidationError, match=r"do not split.*multiple of 4 filters; got 6"):
        Svdf(rank=4).infer(infos(SVDF_SHAPES))


def test_svdf_rank_is_at_least_one() -> None:
    with pytest.raises(LayerValidationError, match=r"rank is too small.*1 or more; got 0"):
        Svdf(rank=0).infer(infos(SVDF_SHAPES))


@pytest.mark.parametrize(
    ("time", "state"), [(S16, S16), (S8, S8), (DataType.QSYMM_S8, DataType.QSYMM_S8)]
)
def test_svdf_takes_integers(time: DataType, state: DataType) -> None:
    outputs = Svdf(2).infer(integer_svdf(time, state), svdf_outputs(state))
    assert [o.data_type for o in outputs] == [state, S8]


@pytest.mark.parametrize(("time", "state"), [(S16, S8), (S8, S16)])
def test_svdf_refuses_time_weights_of_another_width_than_the_state(
    time: DataType, state: DataType
) -> None:
    with pytest.raises(LayerValidationError, match="combination of data types is not allowed"):
        Svdf(2).infer(integer_svdf(time, state), svdf_outputs(state))


def test_svdf_state_keeps_its_quantization() -> None:
    with pytest.raises(LayerValidationError, match=r"state_in and state_out are quantised diff"):
        Svdf(2).infer(integer_svdf(), svdf_outputs(scale=0.25))


def test_integer_svdf_has_no_activation_but_a_clamp() -> None:
    with pytest.raises(LayerValidationError, match=r"computed in integers.*clamps; got TANH"):
        Svdf(2, RecurrentActivation.TANH).infer(integer_svdf(), svdf_outputs())


def test_quantized_operands_need_one_scale() -> None:
    operands = integer_svdf()
    operands[1] = replace(operands[1], quantization=Quantization.per_axis([0.5] * 6, 0))
    with pytest.raises(
        LayerValidationError, match=r"weights_feature does not have one scale.*scales per axis"
    ):
        Svdf(2).infer(operands, svdf_outputs())
    operands[1] = replace(operands[1], quantization=None)
    with pytest.raises(
        LayerValidationError, match=r"weights_feature does not have.*one scale; got none"
    ):
        Svdf(2).infer(operands, svdf_outputs())


def lstm_axes(name: str, time_major: bool = False) -> str:
    """Axes of an LSTM's operand."""
    if name == "input":
        return "tbi" if time_major else "bti"
    fixed = {
        "projection_weights": "on",
        "projection_bias": "o",
        "output_state_in": "bo",
        "cell_state_in": "bn",
    }
    prefixes = (("input_to", "ni"), ("recurrent_to", "no"))
    by_prefix = next((axes for prefix, axes in prefixes if name.startswith(prefix)), "n")
    return fixed.get(name, by_prefix)


NAMES = [operand.name for operand in UnidirectionalSequenceLstm.inputs]
OPTIONAL = [operand.name for operand in UnidirectionalSequenceLstm.inputs if operand.optional]
PEEPHOLE = [name for name in OPTIONAL if name.startswith("cell_to")]
NORMALIZATION = [name for name in OPTIONAL if "layer_norm" in name]
INPUT_GATE = ["input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias"]
OF_INPUT_GATE = [*INPUT_GATE, "cell_to_input_weights", "input_layer_norm_weights"]
PROJECTION = ["projection_weights", "projection_bias"]
EVERY_INTERMEDIATE = {
    f"{gate}_intermediate_scale": 0.001 for gate in ("input", "forget", "cell", "output")
}


def lstm_operands(
    without: Sequence[str] = (), time_major: bool = False, shapes: Mapping[str, Shape] | None = None
) -> list[TensorInfo | None]:
    """Operands of a float LSTM with everything, but for some."""
    return [
        None
        if name in without
        else TensorInfo(
            (shapes or {}).get(name, tuple(SIZES[axis] for axis in lstm_axes(name, time_major))),
            F32,
        )
        for name in NAMES
    ]


def integer_type(name: str) -> DataType:
    """Type of an integer LSTM's operand."""
    if name.endswith("bias"):
        return DataType.SIGNED32
    is_16_bit = name in (*PEEPHOLE, *NORMALIZATION, "cell_state_in")
    return S16 if is_16_bit else S8


def integer_lstm(
    without: Sequence[str] = (), cell_scale: float = 2.0**-11
) -> list[TensorInfo | None]:
    """Operands of an integer LSTM with everything, but for some."""
    operands: list[TensorInfo | None] = []
    for name, info in zip(NAMES, lstm_operands(without), strict=True):
        data_type = integer_type(name)
        if info is None or data_type is DataType.SIGNED32:
            operands.append(info and TensorInfo(info.shape, data_type))
        else:
            scale = cell_scale if name == "cell_state_in" else 0.01
            operands.append(quantized(info.shape, data_type, scale))
    return operands


def lstm_outputs(
    state: float = 0.01, cell: float = 2.0**-11, output: float = 0.01
) -> list[TensorInfo]:
    """Declared outputs of an integer LSTM."""
    return [quantized(None, S8, state), quantized(None, S16, cell), quantized(None, S8, output)]


INTEGER = UnidirectionalSequenceLstm(hidden_state_scale=0.01).with_attributes(**EVERY_INTERMEDIATE)


def test_lstm_outputs_states_and_sequence() -> None:
    outputs = UnidirectionalSequenceLstm().infer(lstm_operands())
    assert [o.shape for o in outputs] == [(2, 6), (2, 4), (2, 5, 6)]
    assert [o.data_type for o in outputs] == [F32] * 3


def test_time_major_lstm_has_the_time_first() -> None:
    operation = UnidirectionalSequenceLstm(time_major=True)
    assert operation.infer(lstm_operands(time_major=True))[2].shape == (5, 2, 6)


@pytest.mark.parametrize(
    "without",
    [
        OF_INPUT_GATE,
        PEEPHOLE,
        NORMALIZATION,
        ["projection_bias"],
        [*OF_INPUT_GATE, *PEEPHOLE, *NORMALIZATION, "projection_bias"],
    ],
)
def test_lstm_parts_may_be_left_out(without: list[str]) -> None:
    outputs = UnidirectionalSequenceLstm().infer(lstm_operands(without))
    assert outputs[2].shape == (2, 5, 6)


def test_lstm_operands_may_end_with_the_states() -> None:
    operands = lstm_operands(NORMALIZATION)[: -len(NORMALIZATION)]
    assert UnidirectionalSequenceLstm().infer(operands)[2].shape == (2, 5, 6)


@pytest.mark.parametrize(
    ("without", "message"),
    [
        (["input_gate_bias"], "input_gate_bias is missing"),
        (["recurrent_to_input_weights"], "recurrent_to_input_weights is missing"),
        (["input_to_input_weights"], "recurrent_to_input_weights is there without its gate"),
        (INPUT_GATE, "cell_to_input_weights is there without"),
        (OF_INPUT_GATE[:4], "input_layer_norm_weights is there without"),
        (["cell_to_input_weights"], "cell_to_input_weights is missing"),
        (["cell_to_forget_weights"], "cell_to_output_weights is there without"),
        (["cell_to_output_weights"], "cell_to_output_weights is missing"),
        (["cell_layer_norm_weights"], "cell_layer_norm_weights is missing"),
        (["output_layer_norm_weights"], "output_layer_norm_weights is missing"),
        (["forget_layer_norm_weights"], "cell_layer_norm_weights is there without"),
        (["forget_gate_bias"], "input 'forget_gate_bias' is missing"),
    ],
)
def test_lstm_parts_are_left_out_as_a_whole(without: list[str], message: str) -> None:
    with pytest.raises(LayerValidationError, match=message):
        UnidirectionalSequenceLstm().infer(lstm_operands(without))


def test_lstm_projection_bias_needs_a_projection() -> None:
    shapes: dict[str, Shape] = {name: (4, 4) for name in NAMES if name.startswith("recurrent_to")}
    shapes |= {"output_state_in": (2, 4), "projection_bias": (4,)}
    operands = lstm_operands(["projection_weights"], shapes=shapes)
    with pytest.raises(LayerValidationError, match="projection_bias is there without"):
        UnidirectionalSequenceLstm().infer(operands)


def test_lstm_without_projection_has_as_many_outputs_as_cells() -> None:
    message = r"size of recurrent_to_output_weights does not match.*Expected 4; got 6"
    with pytest.raises(LayerValidationError, match=message):
        UnidirectionalSequenceLstm().infer(lstm_operands(PROJECTION))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "input"])
def test_lstm_refuses_an_operand_of_another_size(name: str) -> None:
    shape = tuple(SIZES[axis] for axis in lstm_axes(name))
    with pytest.raises(LayerValidationError, match="does not match the other operands"):
        UnidirectionalSequenceLstm().infer(lstm_operands(shapes={name: (*shape[:-1], 7)}))


def test_lstm_infers_what_it_can_from_unknown_dimensions() -> None:
    unknown: dict[str, Shape] = {name: (None,) * len(lstm_axes(name)) for name in NAMES}
    shapes = [o.shape for o in UnidirectionalSequenceLstm().infer(lstm_operands(shapes=unknown))]
    assert shapes == [(None, None), (None, None), (None, None, None)]
    known: dict[str, Shape] = {**unknown, "output_state_in": (2, None), "cell_bias": (4,)}
    operands = lstm_operands(PROJECTION, shapes=known)
    shapes = [o.shape for o in UnidirectionalSequenceLstm().infer(operands)]
    assert shapes == [(2, 4), (2, 4), (2, None, 4)]


def test_lstm_of_unknown_rank_gives_unknown_shapes() -> None:
    operands = [TensorInfo(None, F32) for _ in NAMES]
    assert [o.shape for o in UnidirectionalSequenceLstm().infer(operands)] == [None] * 3


@pytest.mark.parametrize("name", ["cell_clip", "projection_clip"])
def test_lstm_clips_are_not_negative(name: str) -> None:
    operation = UnidirectionalSequenceLstm().with_attributes(**{name: -1.0})
    with pytest.raises(LayerValidationError, match=f"{name} is negative.*0 or more; got -1"):
        operation.infer(lstm_operands())


@pytest.mark.parametrize("without", [[], OF_INPUT_GATE, NORMALIZATION, PEEPHOLE])
def test_lstm_takes_integers(without: list[str]) -> None:
    outputs = INTEGER.infer(integer_lstm(without), lstm_outputs())
    assert [o.data_type for o in outputs] == [S8, S16, S8]
    assert [o.shape for o in outputs] == [(2, 6), (2, 4), (2, 5, 6)]


def test_lstm_takes_half_floats_of_one_kind() -> None:
    operands = [i and replace(i, data_type=DataType.FLOAT16) for i in lstm_operands()]
    assert UnidirectionalSequenceLstm().infer(operands)[1].data_type is DataType.FLOAT16
    operands[0] = TensorInfo((2, 5, 3), F32)
    with pytest.raises(LayerValidationError, match="combination of data types is not allowed"):
        UnidirectionalSequenceLstm().infer(operands)


def test_integer_lstm_activates_with_tanh_only() -> None:
    operation = INTEGER.with_attributes(activation=RecurrentActivation.RELU)
    with pytest.raises(LayerValidationError, match=r"computed in integers.*TANH; got RELU"):
        operation.infer(integer_lstm(), lstm_outputs())


@pytest.mark.parametrize("scale", [2.0**-8, 2.0**-16, 0.0006])
def test_cell_state_scale_is_a_power_of_two(scale: float) -> None:
    with pytest.raises(LayerValidationError, match=r"cell state's scale is not a power of two"):
        INTEGER.infer(integer_lstm(cell_scale=scale), lstm_outputs(cell=scale))


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (lstm_outputs(state=0.02), "output_state_in and output_state_out are quantised diff"),
        (lstm_outputs(cell=2.0**-10), "cell_state_in and cell_state_out are quantised diff"),
        (lstm_outputs(output=0.02), "output_state_in and output are quantised diff"),
    ],
)
def test_lstm_states_keep_their_quantization(outputs: list[TensorInfo], message: str) -> None:
    with pytest.raises(LayerValidationError, match=message):
        INTEGER.infer(integer_lstm(), outputs)


@pytest.mark.parametrize("name", ["hidden_state_scale", *EVERY_INTERMEDIATE])
def test_integer_lstm_needs_the_scales_in_between(name: str) -> None:
    with pytest.raises(LayerValidationError, match=f"the {name} is not positive and finite"):
        INTEGER.with_attributes(**{name: 0.0}).infer(integer_lstm(), lstm_outputs())


def test_gate_scales_are_needed_for_layer_normalization_only() -> None:
    operation = UnidirectionalSequenceLstm(hidden_state_scale=0.01)
    assert operation.infer(integer_lstm(NORMALIZATION), lstm_outputs())
    scales = {name: 0.001 for name in EVERY_INTERMEDIATE if not name.startswith("input")}
    assert operation.with_attributes(**scales).infer(integer_lstm(OF_INPUT_GATE), lstm_outputs())

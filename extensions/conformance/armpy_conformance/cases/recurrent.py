"""Cases of recurrent operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import Operation, RecurrentActivation, Svdf, UnidirectionalSequenceLstm
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import between, grid, small
from armpy_conformance.sampling.case_template import CaseTemplate, Types, every, is_hybrid, of

_FLOATS = of(DataType.FLOAT32, DataType.FLOAT16)
_FLOAT32 = of(DataType.FLOAT32)

_SVDF_STEPS = (1 / 32, 1 / 64, 1 / 64, None, 1 / 8)
"""Scales of an integer Svdf's operands; the bias's follows."""


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _svdf()
    yield from _lstm()


def _svdf() -> Iterator[CaseTemplate]:
    shapes = ((2, 3), (4, 3), (4, 5), (2,), (2, 20))
    line = CaseTemplate(
        "basic",
        Svdf(2),
        shapes,
        every,
        (grid, grid, grid, grid, grid),
        constants=(1, 2, 3),
        infos=_svdf_infos,
        output_scale=_svdf_output,
    )
    yield line
    yield line.at_run_time()
    for label, operation, operand_shapes in (
        ("rank-2", Svdf(2), shapes),
        ("rank-1", Svdf(1), ((1, 3), (4, 3), (4, 5), (4,), (1, 20))),
        ("no-bias", Svdf(2), (*shapes[:3], None, shapes[4])),
        ("shifts-last", Svdf(2, shifts_state_first=False), shapes),
        ("one-element", Svdf(), ((1, 1), (1, 1), (1, 1), (1,), (1, 1))),
    ):
        types = _FLOATS if label == "shifts-last" else _float_or_wide_state
        if label != "shifts-last":
            yield replace(
                line,
                label=f"{label}-uneven-scales",
                operation=operation,
                shapes=operand_shapes,
                types=_wide_state,
                values=(loud,),
                infos=_uneven_svdf_infos,
                output_scale=_uneven_svdf_output,
            )
        yield replace(line, label=label, operation=operation, shapes=operand_shapes, types=types)
    for activation in RecurrentActivation:
        operation = Svdf(2, activation)
        yield replace(line, label=activation.name.lower(), operation=operation, types=_FLOAT32)


def _float_or_wide_state(types: Types) -> bool:
    """Select float32, and integers with a state of 16 bits."""
    return types[0] is DataType.FLOAT32 or types[4] is DataType.QSYMM_S16


def _svdf_infos(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Infos of an Svdf's operands; the bias has the scale of state times time weights."""
    infos: list[TensorInfo | None] = []
    for shape, data_type, step in zip(template.shapes, types, _SVDF_STEPS, strict=True):
        quantization = None
        if data_type.is_quantized and step is not None:
            wide = data_type is DataType.QSYMM_S16
            quantization = Quantization.per_tensor(step / 256 if wide else step)
        infos.append(None if shape is None else TensorInfo(shape, data_type, quantization))
    time, bias, state = infos[2], infos[3], infos[4]
    if bias is not None and time is not None and state is not None and types[0].is_quantized:
        infos[3] = replace(bias, quantization=Quantization.per_tensor(time.scale * state.scale))
    return infos


def _wide_state(types: Types) -> bool:
    """Select integers with a state of 16 bits."""
    return types[4] is DataType.QSYMM_S16


def _uneven_svdf_infos(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Infos of an Svdf's operands with zero points and a bias that counts."""
    infos = _svdf_infos(template, types)
    for index, zero_point in ((0, 11), (4, -9)):
        info = infos[index]
        if info is not None:
            offset = 0 if info.data_type.is_symmetric else zero_point
            step = info.scale * (1.3 if index else 0.9)
            infos[index] = replace(info, quantization=Quantization.per_tensor(step, offset))
    time, bias, state = infos[2], infos[3], infos[4]
    if bias is not None and time is not None and state is not None:
        infos[3] = replace(bias, quantization=Quantization.per_tensor(time.scale * state.scale))
    return infos


def _uneven_svdf_output(inputs: Sequence[TensorInfo | None], data_type: DataType) -> Quantization:
    """The state's own scale, or the output's with a zero point."""
    state = inputs[4]
    if state is not None and state.quantization is not None and data_type is state.data_type:
        return state.quantization
    return Quantization.per_tensor(1 / 5, -17)


def _svdf_output(inputs: Sequence[TensorInfo | None], data_type: DataType) -> Quantization:
    """The state's own scale, or the output's."""
    state = inputs[4]
    if state is not None and state.data_type is data_type and data_type is not DataType.QASYMM_S8:
        return state.quantization or Quantization.per_tensor(1.0)
    return Quantization.per_tensor(_SVDF_STEPS[4] or 1.0, 0)


_GATES = ("input", "forget", "cell", "output")
_PEEPHOLE = ("cell_to_input_weights", "cell_to_forget_weights", "cell_to_output_weights")
_INPUT_GATE = (
    "input_to_input_weights",
    "recurrent_to_input_weights",
    "cell_to_input_weights",
    "input_gate_bias",
    "input_layer_norm_weights",
)
_NAMES = tuple(operand.name for operand in UnidirectionalSequenceLstm.inputs)


def _lstm_shapes(
    *,
    left_out: Sequence[str] = (),
    with_projection: bool = False,
    time_major: bool = False,
    one_element: bool = False,
    is_square: bool = False,
) -> list[tuple[int, ...] | None]:
    """Shapes of an LSTM's operands, without peephole and the like where these are left out."""
    batch, time, size, cells = (1, 1, 1, 1) if one_element else (2, 3, 4, 5)
    batch = time if is_square else batch
    output = 3 if with_projection else cells
    by_name: dict[str, tuple[int, ...]] = {
        "input": (time, batch, size) if time_major else (batch, time, size),
        **{f"input_to_{gate}_weights": (cells, size) for gate in _GATES},
        **{f"recurrent_to_{gate}_weights": (cells, output) for gate in _GATES},
        "output_state_in": (batch, output),
        "cell_state_in": (batch, cells),
    }
    if with_projection:
        by_name |= {"projection_weights": (output, cells), "projection_bias": (output,)}
    shapes: list[tuple[int, ...] | None] = []
    for name in _NAMES:
        default = None if name.startswith("projection") else (cells,)
        shapes.append(None if name in left_out else by_name.get(name, default))
    return shapes


_NO_NORM = tuple(f"{gate}_layer_norm_weights" for gate in _GATES)
_PLAIN = (*_PEEPHOLE, *_NO_NORM)
_CONSTANTS = tuple(
    index
    for index, name in enumerate(_NAMES)
    if name not in ("input", "output_state_in", "cell_state_in")
)


def _lstm() -> Iterator[CaseTemplate]:
    variants: Mapping[str, tuple[Operation, list[tuple[int, ...] | None]]] = {
        "basic": (_integer_lstm(), _lstm_shapes(left_out=_PLAIN)),
        "projection": (
            _integer_lstm(),
            _lstm_shapes(left_out=_PLAIN, with_projection=True),
        ),
        "no-input-gate": (_integer_lstm(), _lstm_shapes(left_out=(*_PLAIN, *_INPUT_GATE))),
        "peephole": (_integer_lstm(), _lstm_shapes(left_out=_NO_NORM)),
        "layer-norm": (_integer_lstm(), _lstm_shapes(left_out=_PEEPHOLE)),
        "everything": (_integer_lstm(), _lstm_shapes(with_projection=True)),
        "time-major": (
            _integer_lstm(time_major=True),
            _lstm_shapes(left_out=_PLAIN, time_major=True),
        ),
        "batch-as-time": (
            _integer_lstm(),
            _lstm_shapes(left_out=_PLAIN, is_square=True),
        ),
        "batch-as-time-major": (
            _integer_lstm(time_major=True),
            _lstm_shapes(left_out=_PLAIN, time_major=True, is_square=True),
        ),
        "clips": (
            _integer_lstm(cell_clip=0.5, projection_clip=0.25),
            _lstm_shapes(left_out=_PLAIN, with_projection=True),
        ),
        "one-element": (_integer_lstm(), _lstm_shapes(left_out=_PLAIN, one_element=True)),
    }
    for label, (operation, shapes) in variants.items():
        # Weights are bounded so that the loss in float16 stays small from step to step.
        line = CaseTemplate(
            label,
            operation,
            shapes,
            every if label == "basic" else of(DataType.FLOAT32, DataType.QASYMM_S8),
            (small,),
            constants=_CONSTANTS,
            infos=lstm_infos,
            output_scale=lstm_output,
        )
        yield line
        if label == "basic":
            yield line.at_run_time()
        integers = of(DataType.QASYMM_S8)
        uneven = operation.with_attributes(**UNEVEN)
        yield replace(
            line,
            label=f"{label}-uneven-scales",
            operation=uneven,
            types=integers,
            values=(loud,),
            infos=uneven_lstm_infos,
            output_scale=uneven_lstm_output,
        )
        yield replace(line, label=f"{label}-loud", values=(loud,), types=_not_half)
    for activation in (RecurrentActivation.RELU, RecurrentActivation.SIGMOID):
        yield CaseTemplate(
            activation.name.lower(),
            UnidirectionalSequenceLstm(activation),
            _lstm_shapes(left_out=_PLAIN),
            _FLOAT32,
            (small,),
            constants=_CONSTANTS,
        )


UNEVEN = {
    "input_intermediate_scale": 1 / 3000,
    "forget_intermediate_scale": 1 / 5000,
    "cell_intermediate_scale": 1 / 4500,
    "output_intermediate_scale": 1 / 2500,
    "hidden_state_scale": 1 / 120,
    "hidden_state_zero_point": 5,
}
"""Scales of an integer LSTM that are not powers of two."""

_UNEVEN_STEPS = {
    "input": (1 / 50, 13),
    "output_state_in": (1 / 100, -7),
    "cell_state_in": (2**-11, 0),
}


def uneven_lstm_infos(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Infos of an LSTM's operands with scales that are not powers of two, and zero points."""
    infos = lstm_infos(template, types)
    for index, (name, info) in enumerate(zip(_NAMES, infos, strict=True)):
        if info is None or info.quantization is None:
            continue
        step, zero_point = _UNEVEN_STEPS.get(name, (info.scale * (0.6 + index % 5 / 7), 0))
        infos[index] = replace(info, quantization=Quantization.per_tensor(step, zero_point))
    return infos


def uneven_lstm_output(inputs: Sequence[TensorInfo | None], data_type: DataType) -> Quantization:
    """The scale of the state that the output is fed back into."""
    state = "cell_state_in" if data_type is DataType.QSYMM_S16 else "output_state_in"
    return Quantization.per_tensor(*_UNEVEN_STEPS[state])


def loud(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Biases that count beside sums of integers; floats in [-2, 2], integers of the whole range."""
    if info.data_type is DataType.SIGNED32:
        return between(-9000, 9000)(rng, info)
    return grid(rng, info)


def _not_half(types: Types) -> bool:
    """Select float32 and integers: float16 loses more from step to step."""
    return types[0] in (DataType.FLOAT32, DataType.QASYMM_S8) and not is_hybrid(types)


def _integer_lstm(**options: object) -> UnidirectionalSequenceLstm:
    """Attributes with which floats and integers work."""
    scales = {f"{gate}_intermediate_scale": 2.0**-12 for gate in _GATES}
    return UnidirectionalSequenceLstm(**scales, hidden_state_scale=1 / 128, **options)  # type: ignore[arg-type]  # by name


def lstm_infos(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Infos of an LSTM's operands with the scales that the integer kernel wants."""
    infos: list[TensorInfo | None] = []
    for name, shape, data_type in zip(_NAMES, template.shapes, types, strict=True):
        quantization = None
        if data_type.is_quantized:
            step = {"input": 1 / 64, "output_state_in": 1 / 128, "cell_state_in": 2.0**-11}.get(
                name, 2.0**-15 if data_type is DataType.QSYMM_S16 else 1 / 128
            )
            quantization = Quantization.per_tensor(step)
        infos.append(None if shape is None else TensorInfo(shape, data_type, quantization))
    return infos


def lstm_output(inputs: Sequence[TensorInfo | None], data_type: DataType) -> Quantization:
    """The scale of the state that the output is fed back into."""
    return Quantization.per_tensor(2.0**-11 if data_type is DataType.QSYMM_S16 else 1 / 128)

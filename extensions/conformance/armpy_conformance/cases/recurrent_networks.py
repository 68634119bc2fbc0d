"""Cases of recurrent operations that take one step, or both directions of time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from armpy.ops import (
    BidirectionalSequenceLstm,
    BidirectionalSequenceRnn,
    Lstm,
    Operation,
    QLstm,
    QuantizedLstm,
    RecurrentActivation,
    Rnn,
    UnidirectionalSequenceRnn,
)
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.cases.recurrent import (
    UNEVEN,
    loud,
    lstm_infos,
    lstm_output,
    uneven_lstm_infos,
    uneven_lstm_output,
)
from armpy_conformance.comparison.seeded_values import small
from armpy_conformance.sampling.case_template import CaseTemplate, Types, every, of

_GATES = ("input", "forget", "cell", "output")
_SIZES = {"b": 2, "t": 3, "i": 4, "a": 3, "n": 5, "o": 5, "m": 2, "p": 2}
"""Batch, time, input, auxiliary input, cells and outputs; m and p are those of backward ones."""

_AXES = {
    "projection_weights": "on",
    "projection_bias": "o",
    "output_state_in": "bo",
    "cell_state_in": "bn",
    "hidden_state_in": "bn",
    "weights": "ni",
    "recurrent_weights": "nn",
    "aux_weights": "na",
}
_PREFIXES = {"input_to_": "ni", "recurrent_to_": "no", "aux_to_": "na"}

Optional = Collection[str]


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for operation, optional in _float_variants():
        yield from _template(operation, optional, "-".join(optional) or "basic")
    for label, qlstm, sizes, optional in (
        ("basic", _qlstm(), {}, ("input_gate",)),
        ("no-input-gate", _qlstm(), {}, ()),
        ("everything", _qlstm(cell_clip=0.5), {"o": 3}, (*_PARTS, "layer_norm")),
    ):
        shapes = _shapes(qlstm, optional, "bi", sizes)
        yield CaseTemplate(
            label,
            qlstm,
            shapes,
            every,
            (small,),
            constants=_constants(qlstm),
            infos=lstm_infos,
            output_scale=lstm_output,
        )
        yield CaseTemplate(
            f"{label}-uneven-scales",
            qlstm.with_attributes(**UNEVEN),
            shapes,
            every,
            (loud,),
            constants=_constants(qlstm),
            infos=uneven_lstm_infos,
            output_scale=uneven_lstm_output,
        )
    yield from _quantized()


_PARTS = ("input_gate", "peephole", "projection")


def _float_variants() -> Iterator[tuple[Operation, Optional]]:
    tanh = RecurrentActivation.TANH
    yield Rnn(tanh), ()
    yield UnidirectionalSequenceRnn(tanh), ()
    yield UnidirectionalSequenceRnn(RecurrentActivation.RELU6, time_major=True), ()
    yield Lstm(), ()
    yield Lstm(cell_clip=0.5, projection_clip=0.25), _PARTS
    yield Lstm(), ("input_gate", "layer_norm")
    for merges in (False, True):
        for time_major in (False, True):
            yield BidirectionalSequenceRnn(tanh, time_major, merges), ()
            yield (
                BidirectionalSequenceLstm(merge_outputs=merges, time_major=time_major),
                ("input_gate",),
            )
    for aux in (("aux_input",), ("aux_input", "aux_weights")):
        yield BidirectionalSequenceRnn(tanh), aux
        yield BidirectionalSequenceLstm(), (*aux, *_PARTS, "layer_norm")


def _template(operation: Operation, optional: Optional, label: str) -> Iterator[CaseTemplate]:
    """Lines of a float operation; the label names its properties."""
    time_major = getattr(operation, "time_major", None)
    axes = "bi"
    if time_major:
        axes = "tbi"
    elif time_major is not None:
        axes = "bti"
    sizes = {"o": 3, "p": 1} if "projection" in optional else {}
    flags = [name for name in ("time_major", "merge_outputs") if getattr(operation, name, False)]
    shapes = _shapes(operation, optional, axes, sizes)
    constants = _constants(operation)
    label = "-".join((label, *flags)).replace("_", "-")
    line = CaseTemplate(label, operation, shapes, every, (small,), constants=constants)
    yield line
    # Values that activations bend and clips reach, and longer batches and sequences.
    sizes = {"b": 3, "t": 5, "i": 7} | sizes
    longer = _shapes(operation, optional, axes, sizes)
    types = of(DataType.FLOAT32)
    yield replace(line, label=f"{label}-loud", shapes=longer, values=(loud,), types=types)
    if time_major is not None:
        square = _shapes(operation, optional, axes, sizes | {"b": 3, "t": 3})
        yield replace(line, label=f"{label}-batch-as-time", shapes=square, types=types)


def _constants(operation: Operation) -> tuple[int, ...]:
    """Numbers of the inputs that are neither data nor state."""
    return tuple(
        index
        for index, operand in enumerate(operation.inputs)
        if operand.name not in ("input", "aux_input") and not operand.name.endswith("state_in")
    )


def _shapes(
    operation: Operation, optional: Optional, input_axes: str, sizes: Mapping[str, int]
) -> list[tuple[int, ...] | None]:
    """Shapes of all operands; None for an omitted one."""
    all_sizes = _SIZES | dict(sizes)
    is_parallel = "aux_input" in optional and "aux_weights" not in optional
    backward = str.maketrans("noi" if is_parallel else "no", "mpa" if is_parallel else "mp")
    shapes: list[tuple[int, ...] | None] = []
    for operand in operation.inputs:
        name = operand.name.removeprefix("forward_").removeprefix("backward_")
        axes = _axes(name, input_axes)
        if operand.name.startswith("backward_"):
            axes = axes.translate(backward)
        is_there = not operand.optional or _is_there(name, optional)
        shapes.append(tuple(all_sizes[axis] for axis in axes) if is_there else None)
    return shapes


def _axes(name: str, input_axes: str) -> str:
    """One letter per axis of an operand."""
    if name in ("input", "aux_input"):
        return input_axes if name == "input" else input_axes.replace("i", "a")
    by_prefix = next((axes for prefix, axes in _PREFIXES.items() if name.startswith(prefix)), "n")
    return _AXES.get(name, by_prefix)


def _is_there(name: str, optional: Optional) -> bool:
    """Return whether a template has an optional operand."""
    belongs = {
        "aux_input": name == "aux_input",
        "aux_weights": name.startswith("aux_") and name != "aux_input",
        "peephole": name.startswith("cell_to_"),
        "projection": name.startswith("projection_"),
        "layer_norm": name.endswith("_layer_norm_weights"),
    }
    of_input_gate = name in ("input_layer_norm_weights", "input_gate_bias") or name.endswith(
        "_to_input_weights"
    )
    if of_input_gate and "input_gate" not in optional:
        return False
    parts = [part for part, is_part in belongs.items() if is_part]
    return all(part in optional for part in parts)


def _qlstm(**options: float) -> Operation:
    """Attributes of a QLstm with scales that suit the templates' operands."""
    scales = {f"{gate}_intermediate_scale": 2.0**-12 for gate in _GATES}
    return QLstm(hidden_state_scale=1 / 128).with_attributes(**scales, **options)


def _quantized() -> Iterator[CaseTemplate]:
    operation = QuantizedLstm()
    weights = _shapes(operation, (), "bi", {})
    line = CaseTemplate(
        "basic",
        operation,
        weights,
        every,
        constants=_constants(operation),
        infos=_quantized_infos,
        output_scale=_quantized_output,
    )
    yield line
    yield line.at_run_time()
    yield replace(line, label="loud", values=(loud,), shapes=_shapes(operation, (), "bi", {"b": 7}))


def _quantized_infos(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Infos of a QuantizedLstm's operands with the quantisation that it prescribes."""
    infos: list[TensorInfo | None] = []
    for operand, shape, data_type in zip(
        template.operation.inputs, template.shapes, types, strict=True
    ):
        if data_type is DataType.SIGNED32:
            quantization = Quantization.per_tensor(2.0**-15)
        elif operand.name.endswith("_weights"):
            quantization = Quantization.per_tensor(1 / 256, 100)
        else:
            quantization = _quantized_output((), data_type)
        infos.append(TensorInfo(shape, data_type, quantization))
    return infos


def _quantized_output(inputs: Sequence[TensorInfo | None], data_type: DataType) -> Quantization:
    """Quantisation of data, or of the cell state."""
    is_cell = data_type is DataType.QSYMM_S16
    return Quantization.per_tensor(2.0**-11) if is_cell else Quantization.per_tensor(1 / 128, 128)

"""Tools for wrong values: what to compute in the place of a layer, or where to spoil it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import HostTensorHandle, ReasonCode, Support, WorkloadInfo
from armpy.ops import FusedActivation, Padding
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .planting import Planted
from .shapes import Call, Fault, Plain, spoil

# --- Another answer


Answer = Sequence[Array] | None
"""Wrong outputs; None where the outputs are right."""


class Wrong(Fault):
    """Other outputs of one kind of operation."""

    def __init__(self, operation: type[Operation], answer: Callable[[Any, Call], Answer]) -> None:
        self._operation = operation
        self._answer = answer

    def after(self, call: Call) -> None:
        if not isinstance(call.operation, self._operation):
            return
        with np.errstate(all="ignore"):
            outputs = self._answer(call.operation, call)
        for target, wrong in zip(call.outputs, outputs or (), strict=False):
            target[...] = wrong.astype(target.dtype, copy=False)


def recomputed(
    call: Call,
    operation: Operation | None = None,
    inputs: Sequence[Array | None] | None = None,
    infos: Sequence[TensorInfo | None] | None = None,
) -> list[Array]:
    """What CpuRef computes with another operation, other inputs or other infos."""
    arrays = call.inputs if inputs is None else inputs
    known = call.infos if infos is None else tuple(infos)
    info = WorkloadInfo("again", known, call.results, (None,) * len(arrays))
    workload = ReferenceWorkloadFactory().create_workload(operation or call.operation, info)
    results = [np.empty(i.known_shape, i.data_type.dtype) for i in call.results]
    workload.execute(
        [
            None if a is None or i is None else HostTensorHandle(i, np.array(a, order="C"))
            for i, a in zip(known, arrays, strict=True)
        ],
        [HostTensorHandle(i, a) for i, a in zip(call.results, results, strict=True)],
    )
    return results


def replace_results(call: Call, results: tuple[TensorInfo, ...]) -> Call:
    """The same layer with outputs of other infos."""
    return replace(call, results=results)


def source(call: Call, index: int = 0) -> Array:
    """The elements of an input that is there."""
    array = call.inputs[index]
    assert array is not None
    return array


def info_of(call: Call, index: int = 0) -> TensorInfo:
    """The info of an input that is there."""
    info = call.infos[index]
    assert info is not None
    return info


def is_float(call: Call) -> bool:
    """Whether the first input holds float32."""
    return info_of(call).data_type is DataType.FLOAT32


def wrong(
    operation: type[Operation],
    answer: Callable[[Any, Call], Answer],
    shape: type[Plain] = Plain,
    area: str = "",
    said: str = "",
) -> Planted:
    """A row: wrong answers for one kind of operation, found by its cases if no area is named."""
    area = area or f"{operation.__name__}/"
    return Planted(area, shape, partial(Wrong, operation, answer), said)


# --- A wrong form


Condition = Callable[[Call], Any]  # Any: of any truth


@dataclass
class Form(Fault):
    """The result is wrong where a condition holds: the other forms of the operation are right."""

    name: str
    condition: Condition

    def after(self, call: Call) -> None:
        if call.operation.name != self.name:
            return
        with np.errstate(all="ignore"):
            is_wrong = self.condition(call)
        if is_wrong:
            for output in call.outputs:
                spoil(output)


class FloatsOnly(Plain):
    """Takes float32 alone, as small devices do."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        infos = [info for info in (*inputs, *outputs) if info is not None]
        if any(info.data_type.is_quantized for info in infos):
            return Support.no(ReasonCode.DATA_TYPE, "no quantised types")
        return super().supports(operation, inputs, outputs)


def attribute(call: Call, name: str) -> Any:
    return call.operation.attributes()[name]


def shape_of(call: Call, index: int = 0) -> tuple[int, ...]:
    if index >= len(call.infos) or call.infos[index] is None:
        return ()
    info = call.infos[index]
    assert info is not None
    return info.known_shape


def rank_of(call: Call, index: int = 0) -> int:
    return len(shape_of(call, index))


def size_of(call: Call, index: int) -> int:
    return int(np.prod(shape_of(call, index)))


def has_channels_first(call: Call) -> bool:
    return str(attribute(call, "data_layout").name).startswith("NC")


def is_dilated(call: Call) -> bool:
    return bool(max(attribute(call, "dilation")) > 1)


def is_activated(call: Call) -> bool:
    return attribute(call, "activation") is not FusedActivation.NONE


def is_explicitly_padded(call: Call) -> bool:
    return not isinstance(attribute(call, "padding"), Padding)


def has_bias(call: Call) -> bool:
    return len(call.infos) > 2 and call.infos[2] is not None


def kind_of(call: Call) -> str:
    attributes = call.operation.attributes()
    name = "operation" if "operation" in attributes else "function"
    return str(attributes[name].name)


def is_bytes(call: Call) -> bool:
    return call.results[0].data_type in (DataType.QASYMM_S8, DataType.QASYMM_U8)


def is_per_axis(call: Call, index: int) -> bool:
    info = call.infos[index] if index < len(call.infos) else None
    return info is not None and info.quantization is not None and len(info.quantization.scales) > 1


def scale_axis(call: Call) -> int | None:
    info = call.infos[0]
    return None if info is None or info.quantization is None else info.quantization.axis


def axis_of(call: Call, name: str = "axis") -> int:
    value = attribute(call, name)
    return 0 if value is None else int(value)


def wrong_forms(table: Mapping[str, tuple[str, Condition]], kind: str) -> dict[str, Planted]:
    """Rows of a table of forms, every other one in a backend of floats."""
    shapes = (Plain, FloatsOnly)
    rows: dict[str, Planted] = {}
    for number, (label, (name, condition)) in enumerate(table.items()):
        is_of_bytes = "per-axis" in label or "quantize-" in label
        shape = Plain if is_of_bytes else shapes[number % 2]
        rows[f"{kind}/{label}"] = Planted(f"{name}/", shape, partial(Form, name, condition))
    return rows

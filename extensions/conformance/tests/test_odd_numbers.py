"""Operands that say how: whatever they hold, errors are armpy's own, and no backend's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from armpy import DataType, Network, Runtime, RuntimeOptions, TensorInfo
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.cases import all_case_templates
from armpy_conformance.sampling.case_template import CaseTemplate

ODD: dict[str, Array] = {
    "none": np.zeros(0, np.int32),
    "several": np.full(3, 2, np.int32),
    "a matrix": np.zeros((2, 2), np.int32),
    "negative": np.array(-9, np.int32),
    "negatives": np.array([-(2**31)], np.int32),
    "large": np.array([2**31 - 1], np.int32),
    "larger than memory": np.array([2**62], np.int64),
    "lowest": np.array(-(2**63), np.int64),
    "not a number": np.array(np.nan, np.float32),
    "infinite": np.array([np.inf], np.float32),
    "truths": np.array([True, False]),
}
TYPES = {
    "int32": DataType.SIGNED32,
    "int64": DataType.SIGNED64,
    "float32": DataType.FLOAT32,
    "bool": DataType.BOOLEAN,
}
BACKENDS = (["CpuRef"], ["NumbaAcc", "CpuRef"])


def deciding() -> dict[str, tuple[CaseTemplate, int]]:
    """A line per operand that becomes an attribute, or is one number, and the operand's place."""
    lines: dict[str, tuple[CaseTemplate, int]] = {}
    for template in all_case_templates():
        for place, operand in enumerate(template.operation.inputs):
            is_number = operand.ranks == (0, 1)
            if operand.becomes or is_number:
                lines.setdefault(f"{template.operation.name} {operand.name}", (template, place))
    return lines


DECIDING = deciding()


def attempt(case: Case, place: int, odd: Array, *, is_constant: bool, backends: list[str]) -> None:
    """Build, load and run a layer with an operand as it should not be."""
    operation, operand = case.operation, case.operation.input_operand(place)
    if operand.becomes:
        operation = dataclasses.replace(operation, **{operand.becomes: None})  # type: ignore[type-var]  # all are dataclasses
    items = list(case.inputs)
    items += [None] * (place + 1 - len(items))
    network, feeds = Network(), {}
    values: list[Value | None] = []
    for number, item in enumerate(items):
        if number == place and is_constant:
            values.append(network.constant(odd))
        elif number == place or item is not None:
            case_input = CaseInput(TensorInfo(odd.shape, TYPES[odd.dtype.name]), odd)
            case_input = case_input if number == place or item is None else item
            values.append(network.input(f"x{number}", case_input.info))
            feeds[f"x{number}"] = case_input.data
        else:
            values.append(None)
    layer = network.add_layer(operation, values, outputs=[i.with_shape(None) for i in case.outputs])
    for number, value in enumerate(layer.outputs):
        network.output(f"y{number}", value)
    with Runtime(RuntimeOptions(backends=backends, memory_limit_bytes=1 << 30)) as runtime:
        loaded = runtime.load_network(network)
        runtime.enqueue_workload(loaded, feeds)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", DECIDING)
def test_odd_numbers_work_or_are_refused(name: str) -> None:
    template, place = DECIDING[name]
    case = next(iter(template.cases()))
    for backends in BACKENDS:
        for is_constant in (False, True):
            for odd in ODD.values():
                try:
                    attempt(case, place, odd, is_constant=is_constant, backends=backends)
                except BackendError:
                    raise
                except ArmpyError:
                    continue

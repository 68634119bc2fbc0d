"""Elements and slices moved by indices: like CpuRef, and errors where an index is out of range."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import Network, ops
from armpy.errors import InvalidArgumentError
from armpy.graph import Value
from armpy.ops.operation import Array, Operation
from armpy.ops.tolerance import EXACT
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.effort import effort

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    isas_of_this_test,
    random_array,
    run_compiled,
    run_reference,
)

TYPES = (DataType.FLOAT32, DataType.SIGNED64, DataType.SIGNED16, DataType.BOOLEAN)
INDICES = {
    np.dtype(data_type.dtype): data_type
    for data_type in (DataType.SIGNED16, DataType.SIGNED32, DataType.SIGNED64)
}


def random_move(random: np.random.Generator) -> tuple[Operation, DataType, dict[str, Array]]:
    """An operation and its operands; indices repeat, and one in four is out of range."""
    shape = tuple(map(int, random.integers(1, 6, random.integers(1, 5))))
    axis, wraps = int(random.integers(len(shape))), bool(random.integers(2))
    dtype = list(INDICES)[random.integers(len(INDICES))]
    count = int(random.integers(1, 7))
    kind = random.integers(3)
    if kind == 2:
        sizes = np.array(shape[: axis + 1])
        places: tuple[int, ...] = (count, len(sizes))
        operation: Operation = ops.ScatterNd(wraps_negative=wraps)
        written: tuple[int, ...] = (count, *shape[axis + 1 :])
    else:
        sizes = np.array(shape[axis])
        places = written = (*shape[:axis], count, *shape[axis + 1 :])
        operation = (ops.GatherElements if kind else ops.ScatterElements)(
            axis, wraps_negative=wraps
        )
    indices = random.integers(-sizes if wraps else 0, sizes, places).astype(dtype)
    if not random.integers(4):
        indices.flat[random.integers(indices.size)] = (-9, 9)[random.integers(2)]
    data_type = TYPES[random.integers(len(TYPES))]
    inputs = {"x": random_array(TensorInfo(shape, data_type), 1), "places": indices}
    if not isinstance(operation, ops.GatherElements):
        inputs["updates"] = random_array(TensorInfo(written, data_type), 2)
    return operation, data_type, inputs


def network_of(operation: Operation, data_type: DataType, given: dict[str, Array]) -> Network:
    """The operation with inputs only, and a layer after it."""
    network = Network()
    values = [
        network.input(
            name,
            TensorInfo(array.shape, INDICES[array.dtype] if name == "places" else data_type),
        )
        for name, array in given.items()
    ]
    moved = network.add(operation, *values, name="moved")
    network.output("y", moved)
    network.output("z", network.add(ops.ReverseV2(axes=(0,)), moved, name="reversed"))
    return network


@pytest.mark.slow
def test_random_moves_give_what_the_reference_gives_or_the_same_error() -> None:
    random, failed = np.random.default_rng(5), 0
    count = effort(40)
    for number in range(count):
        operation, data_type, inputs = random_move(random)
        network, isa = network_of(operation, data_type, inputs), ISAS[number % len(ISAS)]
        try:
            expected = run_reference(network, inputs)
        except InvalidArgumentError:
            failed += 1
            with pytest.raises(InvalidArgumentError, match=r"moved.*an index is out of range"):
                run_compiled(network, inputs, isa)
        else:
            check_against_reference(network, inputs, isa, expected, EXACT)
    assert count // 20 < failed < count // 2


COMBINED = (
    *(DataType.FLOAT32, DataType.SIGNED64, DataType.UNSIGNED8, DataType.SIGNED16),
    DataType.UNSIGNED32,
)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("data_type", COMBINED, ids=lambda data_type: data_type.name)
def test_updates_are_combined_as_the_reference_does_it(data_type: DataType) -> None:
    random = np.random.default_rng(7)
    network, given = Network(), {}

    def value(name: str, array: Array, kind: DataType = data_type) -> Value:
        given[name] = array
        return network.input(name, TensorInfo(array.shape, kind))

    x, updates = (random_array(TensorInfo((n, 3, 77), data_type), n) for n in (4, 9))
    if data_type is DataType.FLOAT32:
        x[:, :, ::5], updates[:, :, 3::7] = np.nan, np.nan
        x[0, 0, :9], updates[0, 0, :9] = -np.inf, 0
    table, slices = value("x", x), value("slices", updates[:, 0])
    elements, single = value("elements", updates), value("single", updates[0, 0])
    rows = value("rows", random.integers(-4, 4, updates.shape), DataType.SIGNED64)
    places = random.integers(0, (4, 3), (9, 2)).astype(np.int32)
    at_slices = value("at slices", places, DataType.SIGNED32)
    numbers = random.integers(0, (4, 3, 77), (77, 3)).astype(np.int16)
    at_single = value("at single", numbers, DataType.SIGNED16)
    for reduction in list(ops.ScatterReduction)[1:]:
        for name, operation, where, new in (
            ("elements", ops.ScatterElements(0, reduction, wraps_negative=True), rows, elements),
            ("slices", ops.ScatterNd(reduction), at_slices, slices),
            ("single", ops.ScatterNd(reduction), at_single, single),
        ):
            layer = network.add(operation, table, where, new)
            network.output(f"{reduction.name} {name}", layer)
    for isa in isas_of_this_test():
        check_against_reference(network, given, isa, tolerance=EXACT)


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_the_last_of_several_updates_stays_however_many_threads_there_are(isa: str) -> None:
    random = np.random.default_rng(6)
    x, updates = np.zeros((3, 500), np.float32), random.normal(size=(40, 500)).astype(np.float32)
    rows = random.integers(0, 3, (40, 1)).astype(np.int32)
    inputs = {"x": x, "places": rows, "updates": updates}
    network = network_of(ops.ScatterNd(), DataType.FLOAT32, inputs)
    expected = x.copy()
    for row, update in zip(rows[:, 0], updates, strict=True):
        expected[row] = update
    got = run_compiled(network, inputs, ISAS[ISA_NAMES.index(isa)])
    np.testing.assert_array_equal(got["y"], expected)

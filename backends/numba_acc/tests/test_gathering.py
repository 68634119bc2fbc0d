"""Lookups by indices that are computed: like CpuRef, and errors where an index is out of range."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.runtime.instance import Instance, LoadedCode

from armpy import Network, Quantization, Runtime, RuntimeOptions, ops
from armpy.backend import Cancellation
from armpy.errors import InvalidArgumentError
from armpy.graph import SubgraphView
from armpy.ops.operation import Array, Operation
from armpy.ops.tolerance import EXACT
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.effort import effort

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    guarded,
    random_array,
    run_compiled,
    run_reference,
)

F32, I64 = TensorInfo((1,), DataType.FLOAT32), TensorInfo((1,), DataType.SIGNED64)
S8 = TensorInfo((1,), DataType.QASYMM_S8, quantization=Quantization.per_tensor(0.5, 3))
BOOL = TensorInfo((1,), DataType.BOOLEAN)
INDICES = (DataType.SIGNED16, DataType.SIGNED32, DataType.SIGNED64)


def isa_named(name: str) -> Isa:
    """An instruction set of this processor."""
    return ISAS[ISA_NAMES.index(name)]


def network_of(operation: Operation, values: TensorInfo, indices: TensorInfo) -> Network:
    """One lookup by an input, and a layer after it."""
    network = Network()
    x, places = network.input("x", values), network.input("places", indices)
    looked_up = network.add(operation, x, places, name="lookup")
    network.output("y", looked_up)
    if looked_up.info.known_shape:
        network.output("z", network.add(ops.ReverseV2(axes=(0,)), looked_up, name="reversed"))
    return network


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("data_type", INDICES, ids=lambda t: t.name)
@pytest.mark.parametrize(("axis", "batch_dims"), [(0, 0), (1, 0), (2, 1), (-1, 2), (-1, -2)])
def test_slices_are_gathered_by_computed_indices(
    axis: int, batch_dims: int, data_type: DataType, isa: str
) -> None:
    shape = (*(3, 4, 5)[: batch_dims % 4], 2, 3) if batch_dims >= 0 else (3, 4, 2, 3)
    indices = np.random.default_rng(0).integers(0, 3, shape).astype(data_type.dtype)
    for kind in (F32, S8, I64, BOOL):
        values = kind.with_shape((3, 4, 5))
        operation = ops.Gather(axis=axis, batch_dims=batch_dims)
        network = network_of(operation, values, TensorInfo(shape, data_type))
        inputs = {"x": random_array(values), "places": indices}
        check_against_reference(network, inputs, isa_named(isa), tolerance=EXACT)


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_rows_of_any_length_are_looked_up(isa: str) -> None:
    random = np.random.default_rng(1)
    for length in (1, 3, 7, 16, 33, 128):
        table = random.normal(size=(11, length)).astype(np.float32)
        indices = random.integers(0, 11, (5, 4)).astype(np.int32)
        network = network_of(
            ops.Gather(), F32.with_shape(table.shape), TensorInfo((5, 4), DataType.SIGNED32)
        )
        got = run_compiled(network, {"x": table, "places": indices}, isa_named(isa))
        np.testing.assert_array_equal(got["y"], table[indices])
        np.testing.assert_array_equal(got["z"], table[indices][::-1])


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_slices_are_gathered_by_computed_coordinates(depth: int, isa: str) -> None:
    random = np.random.default_rng(2)
    values = random.normal(size=(3, 4, 5)).astype(np.float32)
    sizes = values.shape[:depth]
    indices = random.integers(0, sizes, (2, 7, depth))
    indices[0, 0], indices[0, 1] = 0, np.array(sizes) - 1
    network = network_of(
        ops.GatherNd(), F32.with_shape(values.shape), I64.with_shape((2, 7, depth))
    )
    got = run_compiled(network, {"x": values, "places": indices}, isa_named(isa))
    np.testing.assert_array_equal(got["y"], values[tuple(np.moveaxis(indices, -1, 0))])


OUT_OF_RANGE = [
    (DataType.SIGNED16, (-1, 4, 2**15 - 1, -(2**15))),
    (DataType.SIGNED32, (-1, 4, 2**31 - 1, -(2**31))),
    (DataType.SIGNED64, (-1, 4, 2**32, 2**61, 2**63 - 1, -(2**63))),
]


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize(("data_type", "wrong"), OUT_OF_RANGE, ids=lambda x: getattr(x, "name", ""))
def test_index_out_of_range_is_an_error_that_names_the_layer(
    data_type: DataType, wrong: tuple[int, ...], isa: str
) -> None:
    operations = [
        (ops.Gather(), (4,), "0 to 2"),
        (ops.Gather(axis=1, batch_dims=1), (3, 2), "0 to 3"),
        (ops.GatherNd(), (2, 2), "0 to 2"),
    ]
    for operation, shape, allowed in operations:
        network = network_of(operation, F32.with_shape((3, 4)), TensorInfo(shape, data_type))
        for number in wrong:
            places = np.zeros(shape, data_type.dtype)
            places.flat[-2] = number
            inputs = {"x": np.ones((3, 4), np.float32), "places": places}
            with pytest.raises(InvalidArgumentError, match=rf"lookup.*{allowed}; got {number}\."):
                run_compiled(network, inputs, isa_named(isa))


def program_instance(num_threads: int) -> tuple[Instance, list[Array]]:
    """A lookup that is long enough for several threads, and its tensors."""
    network = network_of(
        ops.Gather(), F32.with_shape((9, 1000)), TensorInfo((2000,), DataType.SIGNED32)
    )
    graph = network.build()
    view = SubgraphView.of(graph, graph.layers)
    instance = Instance(LoadedCode(lower_region(view, ISAS[0], num_threads), ISAS[0]))
    table = np.arange(9000, dtype=np.float32).reshape(9, 1000)
    places = np.arange(2000, dtype=np.int32) % 9
    outputs = [np.full((2000, 1000), -1, np.float32) for _ in range(2)]
    return instance, [*map(guarded, (table, places)), *outputs]


@pytest.mark.parametrize("num_threads", [1, 3])
def test_nothing_after_a_failed_lookup_runs_and_the_next_execution_is_right(
    num_threads: int,
) -> None:
    instance, tensors = program_instance(num_threads)
    table, places, gathered, reverse = tensors
    places[[100, 1900]] = 9
    for cancellation in (None, Cancellation()):
        with pytest.raises(InvalidArgumentError, match=r"lookup.*Expected 0 to 8; got 9\."):
            instance.run(tensors, cancellation)
        assert (reverse == -1).all()
    places[[100, 1900]] = 8
    for _ in range(3):
        instance.run(tensors)
    np.testing.assert_array_equal(gathered, table[places])
    np.testing.assert_array_equal(reverse, table[places][::-1])


def test_failed_lookup_is_an_error_of_the_whole_network_and_gives_no_outputs() -> None:
    network = network_of(ops.Gather(), F32.with_shape((3, 2)), TensorInfo((2,), DataType.SIGNED32))
    with Runtime(RuntimeOptions(backends=["NumbaAcc"])) as runtime:
        number = runtime.load_network(network)
        inputs = {"x": np.ones((3, 2), np.float32), "places": np.array([0, 3], np.int32)}
        with pytest.raises(InvalidArgumentError, match=r"lookup.*Expected 0 to 2; got 3\."):
            runtime.enqueue_workload(number, inputs)
        inputs["places"][1] = 2
        assert (runtime.enqueue_workload(number, inputs)["y"] == 1).all()


def random_lookup(random: np.random.Generator) -> tuple[Operation, Array, Array]:
    """A lookup of any shape, its values and indices; one in three has an index out of range."""
    shape = tuple(map(int, random.integers(1, 6, random.integers(1, 5))))
    dtype = (np.int16, np.int32, np.int64)[random.integers(3)]
    extra = tuple(map(int, random.integers(1, 5, random.integers(0, 3))))
    indices: Array
    wraps = bool(random.integers(2))
    if random.integers(2):
        batch = int(random.integers(len(shape)))
        depth = int(random.integers(1, len(shape) - batch + 1))
        operation: Operation = ops.GatherNd(batch, wraps)
        sizes: Array = np.array(shape[batch : batch + depth])
        places = (*shape[:batch], *extra, depth)
        indices = random.integers(-sizes if wraps else 0, sizes, places).astype(dtype)
    else:
        axis = int(random.integers(len(shape)))
        batch = int(random.integers(axis + 1))
        operation = ops.Gather(axis, batch, wraps)
        least = -shape[axis] if wraps else 0
        indices = random.integers(least, shape[axis], (*shape[:batch], *extra)).astype(dtype)
    if not random.integers(3):
        limits = np.iinfo(dtype)
        wrong = (-7, 6, limits.min, limits.max, int(random.integers(limits.min, limits.max)))
        indices.flat[random.integers(indices.size)] = wrong[random.integers(len(wrong))]
    data_type = (F32, S8, I64, BOOL)[random.integers(4)]
    return operation, random_array(data_type.with_shape(shape), 3), indices


@pytest.mark.slow
def test_random_lookups_give_what_the_reference_gives_or_the_same_error() -> None:
    random, failed = np.random.default_rng(4), 0
    types = {np.dtype(data_type.dtype): data_type for data_type in INDICES}
    kinds = {kind.data_type.dtype: kind for kind in (F32, S8, I64, BOOL)}
    count = effort(40, quick=10)
    for number in range(count):
        operation, values, indices = random_lookup(random)
        infos = kinds[values.dtype].with_shape(values.shape), types[indices.dtype]
        network = network_of(operation, infos[0], TensorInfo(indices.shape, infos[1]))
        inputs = {"x": values, "places": indices}
        try:
            expected = run_reference(network, inputs)
        except InvalidArgumentError:
            failed += 1
            with pytest.raises(InvalidArgumentError, match=r"lookup.*an index is out of range"):
                run_compiled(network, inputs, ISAS[number % len(ISAS)])
        else:
            check_against_reference(network, inputs, ISAS[number % len(ISAS)], expected, EXACT)
    assert count // 10 < failed < count // 2

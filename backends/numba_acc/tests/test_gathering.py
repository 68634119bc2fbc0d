"""Lookups by indices that are computed: like CpuRef, and errors where an index is out of range."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.runtime.instance import Instance, LoadedCode

from armpy import Network, Runtime, RuntimeOptions, ops
from armpy.backend import Cancellation
from armpy.errors import InvalidArgumentError
from armpy.graph import SubgraphView
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .support import (
    ISA_NAMES,
    ISAS,
    guarded,
    run_compiled,
)

F32, I64 = TensorInfo((1,), DataType.FLOAT32), TensorInfo((1,), DataType.SIGNED64)


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

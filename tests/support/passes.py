"""Graphs before and after optimiser passes, run on real backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from armpy_numba_acc import NumbaBackend
from armpy_reference import ReferenceBackend

from armpy import Network, NetworkProperties, OptimizerOptions
from armpy.backend import IBackendInternal
from armpy.compiler import BUILT_IN_PASSES, OptimizerPass
from armpy.compiler.optimize import simplified
from armpy.compiler.pass_selection import worthwhile
from armpy.compiler.passes.pipeline import built_in
from armpy.graph import Graph, verify_graph
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import runtime_of

OFF = dict.fromkeys(BUILT_IN_PASSES, False)
"""Every pass switched off."""

REDUCTIONS = ("reduce_fp32_to_fp16", "reduce_fp32_to_bf16")
"""Passes that are switched by options of their own."""


def after_passes(graph: Graph, options: OptimizerOptions, *backends: IBackendInternal) -> Graph:
    """A graph after the passes of some options; for CpuRef if no backends are given."""
    return simplified(graph, backends or (ReferenceBackend(),), options)


def after_pass(name: str, graph: Graph, *backends: IBackendInternal) -> Graph:
    """A graph after one pass, switched on as users do it; the graph itself if it is idle."""
    to_fp16, to_bf16 = (name == reduction for reduction in REDUCTIONS)
    options = OptimizerOptions(
        passes=OFF if name in REDUCTIONS else {**OFF, name: True},
        reduce_fp32_to_fp16=to_fp16,
        reduce_fp32_to_bf16=to_bf16,
    )
    return after_passes(graph, options, *backends)


def after(name: str, network: Network) -> Graph:
    """A network after one pass, which must give the same on CpuRef and NumbaAcc, to the bit."""
    graph = network.build()
    rewritten = after_pass(name, graph)
    verify_graph(rewritten)
    check_equal(graph, rewritten)
    return rewritten


def idle_passes(graph: Graph) -> dict[str, OptimizerPass]:
    """Functions of the passes that run by default and are not imported for a graph, by name."""
    names = worthwhile(graph)
    return {
        name: built_in(name)
        for name, is_on in BUILT_IN_PASSES.items()
        if is_on and name not in names
    }


def check_equal(graph: Graph, made: Graph) -> None:
    """Check that two graphs give the same bits."""
    inputs = random_inputs(graph)
    for backends in ((), (NumbaBackend(),)):
        expected = run(graph, inputs, *backends)
        for name, got in run(made, inputs, *backends).items():
            assert got.dtype == expected[name].dtype
            np.testing.assert_array_equal(got, expected[name], name)
            np.testing.assert_array_equal(bits(got), bits(expected[name]), name)


def bits(array: Array) -> Array:
    """An array's bytes."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def run(
    graph: Graph | Network,
    inputs: Mapping[str, Array],
    *backends: IBackendInternal,
    options: OptimizerOptions | None = None,
) -> dict[str, Array]:
    """A graph's outputs, without any pass unless options are given."""
    properties = NetworkProperties(optimizer=options or OptimizerOptions(passes=OFF))
    with runtime_of(*backends) as runtime:
        network_id = runtime.load_network(graph, properties)
        return runtime.enqueue_workload(network_id, inputs)


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Elements for every input."""
    random = np.random.default_rng(seed)
    arrays = {}
    for value in graph.inputs:
        shape, data_type = value.info.known_shape, value.info.data_type
        if data_type.is_float:
            arrays[value.name] = random.normal(0, 3, shape).astype(data_type.dtype)
        else:
            low, high = data_type.integer_range
            arrays[value.name] = random.integers(low, high, shape, data_type.dtype, endpoint=True)
    return arrays


def names(graph: Graph) -> list[str]:
    """Operations of a graph's layers."""
    return [layer.operation.name for layer in graph.layers]


def layer_named(graph: Graph, name: str) -> Sequence[str]:
    """Origins of the layer of a name."""
    return next(layer.origins for layer in graph.layers if layer.name == name)

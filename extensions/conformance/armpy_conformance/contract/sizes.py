"""Rules about programs for traced sizes, which the core has made anew for other shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy.backend import Capability, has_matching_capability
from armpy.execution import LoadedNetwork
from armpy.execution.programs.traced.template import ResizedNetwork
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NotApplicableError, NothingToKeepError, check
from armpy_conformance.contract.networks import Bench, opened_networks

_FACTORS = (1, 2, 5, 3, 8, 4)
"""Of the first dimension, one execution after the other: for the first two networks are compiled,
for the third sizes are traced, and for all others they are put in, smaller and larger ones."""


def new_sizes_are_as_if_compiled_for_them(subject: BackendUnderTest) -> None:
    """Programs for traced sizes compute the same as ones that are compiled for each size."""
    if not has_matching_capability(
        Capability.TRACED_SIZES, True, subject.backend.get_capabilities()
    ):
        raise NothingToKeepError("it does not say that sizes may be traced")
    num_resized = sum([_try(subject, *opened) for opened in opened_networks(subject)])
    if not num_resized:
        raise NotApplicableError("none of its programs was made for other sizes")


def _try(subject: BackendUnderTest, graph: Graph, once: Mapping[str, Array]) -> int:
    """Execute a network with one size after the other; how often a program was resized."""
    runtime, num_resized = subject.runtime, 0
    feeds = [_scaled(once, factor) for factor in _FACTORS]
    expected = subject.expected_each(graph, feeds)
    network_id = runtime.load_network(graph)
    network = runtime.get_network(network_id)
    for inputs, right in zip(feeds, expected, strict=True):
        sizes = " and ".join(str(array.shape) for array in inputs.values())
        Bench(graph, inputs, right).run(runtime, network_id, f"with inputs of {sizes}")
        num_resized += _is_resized(network)
    error = network.program_cache.traces.error
    check(error is None, f"a program for traced sizes could not be made for others: {error}")
    runtime.unload_network(network_id)
    return num_resized


def _is_resized(network: LoadedNetwork) -> bool:
    """Return whether the latest execution's programs came of traced sizes."""
    return isinstance(network.optimized, ResizedNetwork)


def _scaled(feeds: Mapping[str, Array], factor: int) -> dict[str, Array]:
    """Inputs so many times as long, their elements in any order: no part repeats another."""
    repeated = {name: np.concatenate([array] * factor) for name, array in feeds.items()}
    return {name: _shuffled(array) for name, array in repeated.items()}


def _shuffled(array: Array) -> Array:
    """The elements of an array in another order, always the same."""
    order: Sequence[int] = np.random.default_rng(array.size).permutation(array.size)  # type: ignore[assignment]
    return np.ascontiguousarray(array.reshape(-1)[order].reshape(array.shape))

"""Rules about networks of several layers, and about what comes from the caller."""

from __future__ import annotations

import numpy as np

from armpy.errors import ArmpyError
from armpy.graph.network import Network
from armpy.ops.operation import Array
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import ViolationError, check
from armpy_conformance.contract.networks import (
    Bench,
    bench,
    chain,
    open_batches,
    sample_bench,
    samples,
)


def _try(subject: BackendUnderTest, trial: Bench, situation: str) -> None:
    """Load, run twice, unload."""
    network_id = subject.runtime.load_network(trial.graph)
    trial.run(subject.runtime, network_id, situation)
    trial.run(subject.runtime, network_id, f"{situation} again")
    subject.runtime.unload_network(network_id)


def two_layers(subject: BackendUnderTest) -> None:
    """One layer reads what another wrote; the backend may make one of them."""
    builder = chain(subject)
    builder.net.output("y", builder.layer(builder.layer(builder.source)))
    _try(subject, builder.bench(subject), "with two layers")


def branches(subject: BackendUnderTest) -> None:
    """A value that is read twice and is an output as well."""
    builder = chain(subject)
    trunk = builder.layer(builder.source)
    builder.net.output("trunk", trunk)
    builder.net.output("left", builder.layer(trunk))
    builder.net.output("right", builder.layer(builder.layer(trunk)))
    _try(subject, builder.bench(subject), "with branches")


def separate_parts(subject: BackendUnderTest) -> None:
    """Layers that have nothing to do with each other but the source."""
    builder = chain(subject)
    builder.net.output("one", builder.layer(builder.source))
    builder.net.output("other", builder.layer(builder.source))
    _try(subject, builder.bench(subject), "with two separate layers")


def input_as_output(subject: BackendUnderTest) -> None:
    """An input that is an output as well, beside a layer that reads it."""
    builder = chain(subject)
    builder.net.output("through", builder.source)
    builder.net.output("y", builder.layer(builder.source))
    _try(subject, builder.bench(subject), "with an input as an output")


def output_twice(subject: BackendUnderTest) -> None:
    """One value under two output names."""
    builder = chain(subject)
    value = builder.layer(builder.source)
    builder.net.output("y", value)
    builder.net.output("again", value)
    _try(subject, builder.bench(subject), "with one value under two names")


def no_layers(subject: BackendUnderTest) -> None:
    """A network in which there is nothing to do."""
    case = samples(subject)[0]
    info = next(x.info for x in case.inputs if x is not None and not x.is_constant)
    data = next(x.data for x in case.inputs if x is not None and not x.is_constant)
    net = Network("through")
    net.output("y", net.input("x", info))
    _try(subject, bench(subject, net.build(), {"x": data}), "without layers")


def wrong_input(subject: BackendUnderTest) -> None:
    """Inputs that do not fit are refused, and the network works as before."""
    runtime = subject.runtime
    for case in samples(subject):
        trial = sample_bench(subject, case)
        network_id = runtime.load_network(trial.graph)
        for noun, feeds in _wrong_feeds(dict(trial.feeds)):
            try:
                runtime.enqueue_workload(network_id, feeds)
            except ArmpyError:
                trial.run(runtime, network_id, f"after {noun} was refused")
            else:
                raise ViolationError(f"{noun} is accepted by {case.operation.name}")
        runtime.unload_network(network_id)


def _wrong_feeds(feeds: dict[str, Array]) -> list[tuple[str, dict[str, Array]]]:
    """Inputs that do not fit, each with its fault."""
    name, array = next(iter(feeds.items()))
    other = np.complex64 if array.dtype != np.complex64 else np.float32
    return [
        ("an input of another rank", feeds | {name: array[np.newaxis, np.newaxis]}),
        ("an input of another dtype", feeds | {name: array.astype(other)}),
        ("a missing input", {key: value for key, value in feeds.items() if key != name}),
        ("an unknown input", feeds | {"no_such_input": array}),
    ]


def another_shape_at_the_call(subject: BackendUnderTest) -> None:
    """A network whose first dimension is open runs with one size, another, and the first."""
    graph, feeds = open_batches(subject)
    runtime = subject.runtime
    network_id = runtime.load_network(graph)
    for inputs in (*feeds, feeds[0]):
        trial = bench(subject, graph, inputs)
        trial.run(runtime, network_id, "with an open first dimension")
    runtime.unload_network(network_id)


def arrays_of_the_caller(subject: BackendUnderTest) -> None:
    """Outputs are written where the caller says, and nowhere else."""
    for case in samples(subject):
        trial = sample_bench(subject, case)
        network_id = subject.runtime.load_network(trial.graph)
        targets = {name: _beside_alignment(array) for name, array in trial.expected.items()}
        results = subject.runtime.enqueue_workload(network_id, dict(trial.feeds), targets)
        for name, array in targets.items():
            check(results[name] is array, f"the output '{name}' is not the caller's array")
        trial.check(targets, "written to the caller's arrays")
        subject.runtime.unload_network(network_id)


def _beside_alignment(array: Array) -> Array:
    """Zeros of an array's shape and type that begin one element after aligned memory."""
    return np.zeros(array.size + 1, array.dtype)[1:].reshape(array.shape)

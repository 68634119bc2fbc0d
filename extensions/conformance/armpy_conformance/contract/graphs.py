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


def _try(subject: BackendUnderTest, made: Bench, what: str) -> None:
    """Load, run twice, unload."""
    network_id = subject.runtime.load_network(made.graph)
    made.run(subject.runtime, network_id, what)
    made.run(subject.runtime, network_id, f"{what} again")
    subject.runtime.unload_network(network_id)


def two_layers(subject: BackendUnderTest) -> None:
    """One layer reads what another wrote; the backend may make one of them."""
    made = chain(subject)
    made.net.output("y", made.layer(made.layer(made.source)))
    _try(subject, made.bench(subject), "with two layers")


def branches(subject: BackendUnderTest) -> None:
    """A value that is read twice and is an output as well."""
    made = chain(subject)
    trunk = made.layer(made.source)
    made.net.output("trunk", trunk)
    made.net.output("left", made.layer(trunk))
    made.net.output("right", made.layer(made.layer(trunk)))
    _try(subject, made.bench(subject), "with branches")


def separate_parts(subject: BackendUnderTest) -> None:
    """Layers that have nothing to do with each other but the source."""
    made = chain(subject)
    made.net.output("one", made.layer(made.source))
    made.net.output("other", made.layer(made.source))
    _try(subject, made.bench(subject), "with two separate layers")


def input_as_output(subject: BackendUnderTest) -> None:
    """An input that is an output as well, beside a layer that reads it."""
    made = chain(subject)
    made.net.output("through", made.source)
    made.net.output("y", made.layer(made.source))
    _try(subject, made.bench(subject), "with an input as an output")


def output_twice(subject: BackendUnderTest) -> None:
    """One value under two output names."""
    made = chain(subject)
    value = made.layer(made.source)
    made.net.output("y", value)
    made.net.output("again", value)
    _try(subject, made.bench(subject), "with one value under two names")


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
        made = sample_bench(subject, case)
        network_id = runtime.load_network(made.graph)
        for what, feeds in _wrong_feeds(dict(made.feeds)):
            try:
                runtime.enqueue_workload(network_id, feeds)
            except ArmpyError:
                made.run(runtime, network_id, f"after {what} was refused")
            else:
                raise ViolationError(f"{what} is accepted by {case.operation.name}")
        runtime.unload_network(network_id)


def _wrong_feeds(feeds: dict[str, Array]) -> list[tuple[str, dict[str, Array]]]:
    """Inputs that do not fit, each with what is wrong."""
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
    for given in (*feeds, feeds[0]):
        made = bench(subject, graph, given)
        made.run(runtime, network_id, "with an open first dimension")
    runtime.unload_network(network_id)


def arrays_of_the_caller(subject: BackendUnderTest) -> None:
    """Outputs are written where the caller says, and nowhere else."""
    for case in samples(subject):
        made = sample_bench(subject, case)
        network_id = subject.runtime.load_network(made.graph)
        given = {name: np.zeros_like(array) for name, array in made.expected.items()}
        results = subject.runtime.enqueue_workload(network_id, dict(made.feeds), given)
        for name, array in given.items():
            check(results[name] is array, f"the output '{name}' is not the caller's array")
        made.check(given, "written to the caller's arrays")
        subject.runtime.unload_network(network_id)

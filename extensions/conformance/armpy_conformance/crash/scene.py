"""Scene of a crash case: runtimes, a network, inputs and what must come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from armpy import IsolationLimits
from armpy.compiler import specialize
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.model import Model
from armpy.ops.operation import Array
from armpy.ops.tolerance import TOLERANCES, Tolerance, compare
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.crash.networks import SMALL, builders, random_feeds
from armpy_conformance.differential_run import FailureError

NUM_FEEDS = 4
"""Different inputs, so that results which are mixed up are found."""


@dataclass(frozen=True, eq=False, slots=True)
class Expectation:
    """Inputs by name, and the outputs that CpuRef gives for them."""

    feeds: Mapping[str, Array]
    outputs: Mapping[str, Array]


class Scene:
    """A backend under test and a network of which it takes layers.

    Parameters
    ----------
    options : RuntimeOptions
        Where backends are found, and their options.
    network : str
        A key of `builders`.
    """

    def __init__(
        self, backend_id: BackendId, options: RuntimeOptions, network: str, seed: int
    ) -> None:
        ids = list(dict.fromkeys([backend_id, REFERENCE_BACKEND_ID]))
        self.backend_id = backend_id
        self._options = replace(options, backends=ids, registry=None)
        self._network = network
        self.random = np.random.default_rng(seed)

    def graph(self, batch: int = SMALL) -> Graph:
        """The network for a batch."""
        return builders()[self._network](batch)

    def networks(self) -> list[str]:
        """The networks of which the backend takes a layer; errors are its own."""
        subject = BackendUnderTest(self.backend_id, self._options)
        names = [
            name
            for name, build in builders().items()
            if any(subject.supports(specialize(build(SMALL))).values())
        ]
        if not names:
            subject.check_availability()  # a missing device is the reason then
        return names

    def runtime(self) -> Runtime:
        """Another runtime, with a registry of its own."""
        return Runtime(self._options)

    def isolated_runtime(self) -> Runtime:
        """A runtime whose backend has a process of its own, without quarantine."""
        limits = IsolationLimits(max_failures=1000)
        isolation = {self.backend_id: "process"}
        return Runtime(replace(self._options, isolation=isolation, isolation_limits=limits))

    def model(self, batch: int = SMALL, runtime: Runtime | None = None) -> Model:
        """The loaded network; FailureError if no layer of it runs on the backend."""
        model = Model(self.graph(batch), runtime or self.runtime())
        placement = model.placement
        if placement is not None and not placement.layers_by_backend.get(self.backend_id):
            reasons = {r.text for r in placement.refusals if r.backend == self.backend_id}
            text = "; ".join(sorted(reasons)) or "no reason given"
            raise FailureError(f"no layer runs on {self.backend_id}: {text}")
        return model

    @cached_property
    def expectations(self) -> tuple[Expectation, ...]:
        """Several inputs of a small batch."""
        return self.expectations_of(SMALL, NUM_FEEDS)

    def expectations_of(self, batch: int, count: int = 1) -> tuple[Expectation, ...]:
        """Inputs of a batch, and what must come out."""
        graph = self.graph(batch)
        reference = replace(self._options, backends=[REFERENCE_BACKEND_ID], backend_options={})
        with Runtime(reference) as runtime:
            model = Model(graph, runtime)
            feeds = [random_feeds(graph, self.random) for _ in range(count)]
            return tuple(Expectation(feed, model.run(feed)) for feed in feeds)

    def check(self, expectation: Expectation, outputs: Mapping[str, Array]) -> None:
        """Compare outputs with the right ones.

        Raises
        ------
        FailureError
            If one is wrong.
        """
        graph = self.graph()
        for name, value in zip(graph.output_names, graph.outputs, strict=True):
            usual = TOLERANCES[value.info.data_type]
            times = len(graph.layers)  # each may add its own error
            tolerance = Tolerance(usual.absolute * times, usual.relative * times)
            wrong = compare(expectation.outputs[name], outputs[name], value.info, tolerance)
            if wrong is not None:
                raise FailureError(f"output '{name}': {wrong}")

    def run(self, model: Model, expectation: Expectation) -> None:
        """Execute once and compare.

        Raises
        ------
        FailureError
            If the answer is wrong, or there is none.
        """
        try:
            outputs = model.run(dict(expectation.feeds))
        except ArmpyError as error:
            raise FailureError(f"the execution failed: {error}") from error
        self.check(expectation, outputs)

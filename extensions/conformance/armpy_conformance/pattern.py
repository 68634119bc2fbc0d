"""Small networks that backends are tried with: the kit's own, and those that a backend declares."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import BackendError
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.ops.operation import Array
from armpy.plugins.proxy.guarded_call import call_backend, describe
from armpy.types import BackendId
from armpy_conformance.comparison.seeded_values import anything

MEMBER = "conformance_patterns"
"""The method by which a backend declares patterns."""


@dataclass(frozen=True, eq=False, slots=True)
class Pattern:
    """A small network that a backend is tried with.

    Notes
    -----
    A backend that takes layers in certain company only, or has operations of its own, declares
    what it takes by a method ``conformance_patterns(self)``, which returns a sequence of these.
    It is not part of the contract: nothing but the conformance kit and ``armpy doctor`` call it.
    Every layer of a declared pattern has to run on the backend. In return, a layer that it accepts
    and gives back when it stands alone is not a failure, as long as some layer of the same
    operation and type runs in a pattern.
    """

    name: str  # unique among the backend's
    network: Network | Graph
    inputs: Mapping[str, Array] | None = None
    """Inputs by name; the same random ones in each run if left out."""
    expected: Mapping[str, Array] | None = None
    """Outputs by name for these inputs, for layers that CpuRef cannot run; where it can, it says
    the right answers, and these have to be the same.
    """
    again: tuple[Mapping[str, Array], Mapping[str, Array]] | None = None
    """Inputs and outputs of a second execution where CpuRef cannot say them: a backend that gives
    an old answer again is found by it.
    """

    @property
    def graph(self) -> Graph:
        """The network, built."""
        return self.network.build() if isinstance(self.network, Network) else self.network

    def feeds(self) -> dict[str, Array]:
        """Fresh copies of the inputs."""
        if self.inputs is not None:
            return {name: np.array(array) for name, array in self.inputs.items()}
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return {value.name: anything(rng, value.info) for value in self.graph.inputs}


def _read(backend_id: BackendId, method: Callable[[], Iterable[Pattern]]) -> tuple[Pattern, ...]:
    """Read a backend's method's result, in a tuple."""

    def conformance_patterns() -> tuple[Pattern, ...]:
        return tuple(method())

    return call_backend(backend_id, conformance_patterns)


def declared_patterns(backend_id: BackendId, backend: object) -> tuple[Pattern, ...]:
    """The patterns that a backend declares; none if it has no such method.

    Raises
    ------
    BackendError
        If the method raises, or returns anything but patterns with names of their own.
    """
    method = getattr(backend, MEMBER, None)
    if method is None:
        return ()
    patterns = _read(backend_id, method)
    names = [pattern.name for pattern in patterns if isinstance(pattern, Pattern)]
    if len(set(names)) < len(patterns):
        raise BackendError(
            "the answer cannot be used",
            where=f"{backend_id} / {MEMBER}",
            expected="armpy_conformance.Pattern objects with different names",
            actual=describe(patterns),
        )
    return patterns

"""Backends whose executions, networks or declarations get in each other's way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from armpy.backend import (
    Capabilities,
    Capability,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    WorkloadInfo,
)
from armpy.ops import ElementwiseUnary, Softmax
from armpy.ops.operation import Array, Operation
from tests.support.planted_faults import (
    Call,
    Factory,
    Handles,
    OneScratch,
    Outputs,
    Plain,
    Planted,
)


@dataclass
class ScratchOf(OneScratch):
    """One place for intermediate results of one operation, which all threads share."""

    name: str
    _kept: dict[object, Array] = field(default_factory=dict)
    _result: dict[object, Array] = field(default_factory=dict)

    def scratch(self, key: object, array: Array) -> Array:
        return array.copy()

    def after(self, call: Call) -> None:
        if call.operation.name == self.name:
            for number, output in enumerate(call.outputs):
                place = (number, output.shape, output.dtype)
                kept = self._result.setdefault(place, np.empty_like(output))
                kept[...] = output
                time.sleep(0)
                output[...] = kept


class _Remembering(IWorkload):
    """Reads the arrays that it was given first."""

    def __init__(self, right: IWorkload) -> None:
        self._right = right
        self._inputs: Handles | None = None

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        self._inputs = self._inputs or list(inputs)
        kept = self._inputs
        return lambda: self.execute(kept, outputs)


class ReadsTheFirstMemory(Plain):
    """A second bound memory reads the tensors of the first one."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        class Bound(Factory):
            def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
                return _Remembering(super().create_workload(operation, info))

        return Bound(self.fault)


class NeverStops(Plain):
    """Declares that executions can be stopped, and goes on."""

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.CANCELLABLE_EXECUTION: True}


_THREADS = "contract/threads/"
_BOUND = "contract/executions/bound-executions-are"


def _scratch_of(name: str) -> Plain:
    """A backend whose results of one operation go through one place."""
    return Plain(ScratchOf(name))


SHARING_FAULTS: dict[str, Planted] = {
    **{
        f"threads/scratch-of-{name}": Planted(
            f"{_THREADS}threads-race", partial(_scratch_of, name), "run by 4 threads"
        )
        for name in ("Softmax", "Pooling2d", "Transpose", "FullyConnected")
    },
    "threads/softmax-alone": Planted(
        f"{_THREADS}threads-share",
        lambda: Plain(ScratchOf("Softmax"), operations={Softmax}),
        "run by 4 threads",
    ),
    "bound/reads-the-first-memory": Planted(_BOUND, ReadsTheFirstMemory, "bound execution"),
    "declared/never-stops": Planted(
        "contract/executions/executions-stop",
        lambda: NeverStops(operations={ElementwiseUnary}),
        "as if nothing had happened",
    ),
    "declared/no-deadline": Planted(
        "contract/executions/deadlines",
        lambda: NeverStops(operations={ElementwiseUnary}),
        "as if nothing had happened",
    ),
}
"""By name."""

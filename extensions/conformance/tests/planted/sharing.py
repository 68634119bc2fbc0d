"""Backends whose executions, networks or declarations get in each other's way."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from armpy.backend import Capability, IWorkload, IWorkloadFactory, NetworkResources
from armpy.ops import ElementwiseUnary, Softmax
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, Step

from .faults import (
    Call,
    Factory,
    Fault,
    OneScratch,
    Plain,
    Planted,
    Sized,
    spoil,
    spoil_tensor,
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
                scratch = self._result.setdefault(place, np.empty_like(output))
                scratch[...] = output
                time.sleep(0)
                output[...] = scratch


class ReadsTheFirstMemory(Fault):
    """A second bound memory reads the tensors of the first one."""

    def wrap(self, step: Step) -> IWorkload:
        first: list[Handles] = []

        class Bound(FunctionWorkload):
            def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
                first.append(list(inputs))
                return lambda: self.execute(first[0], outputs)

        return Bound(step.right.execute)


class TableOf(Plain):
    """Has room for so many networks; the next one takes the place of the first."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self._num_loaded = 0
        self._alive: set[int] = set()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self._num_loaded += 1
        return Factory(_Placed(self._room, self._num_loaded, self._alive))


@dataclass
class _Placed(Fault):
    """One network of a table."""

    room: int
    number: int
    alive: set[int]

    def wrap(self, step: Step) -> IWorkload:
        self.alive.add(self.number)
        workload = FunctionWorkload(partial(self.execute, step))
        weakref.finalize(workload, self.alive.discard, self.number)
        return workload

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        if len(self.alive) > self.room:
            spoil_tensor(outputs[0])


class Sleepy(Fault):
    """The result after a rest is wrong."""

    def __init__(self, rest_s: float) -> None:
        self._rest_s = rest_s
        self._last_s: dict[int, float] = {}

    def after(self, call: Call) -> None:
        now, key = time.monotonic(), id(call.operation)
        last = self._last_s.get(key, now)
        self._last_s[key] = now
        if now - last > self._rest_s:
            spoil(call.outputs[0])


class TruthBytes(Fault):
    """Truth values are 0 and 255."""

    def after(self, call: Call) -> None:
        for output in call.outputs:
            if output.dtype == bool:
                output.view(np.uint8)[...] *= 255


_THREADS = "contract/threads/"
_BOUND = "contract/executions/bound-executions-are"


IMAGES_OF_256_KIB = Sized(
    lambda a: a.ndim == 4 and a.shape[0] > 1 and a.nbytes // a.shape[0] > 1 << 18
)
"""Of a batch of images above 256 KiB the last element is wrong."""

_STOPS = {Capability.CANCELLABLE_EXECUTION: True}
"""Declared by a backend that goes on."""

SHARING_FAULTS: dict[str, Planted] = {
    **{
        f"threads/scratch-of-{name}": Planted(
            f"{_THREADS}threads-race", partial(Plain, ScratchOf(name)), "run by 4 threads"
        )
        for name in ("Softmax", "Pooling2d", "Transpose", "FullyConnected")
    },
    "threads/softmax-alone": Planted(
        f"{_THREADS}threads-share",
        lambda: Plain(ScratchOf("Softmax"), operations={Softmax}),
        "run by 4 threads",
    ),
    "bound/reads-the-first-memory": Planted(
        _BOUND, lambda: Plain(ReadsTheFirstMemory()), "bound execution"
    ),
    "declared/never-stops": Planted(
        "contract/executions/executions-stop",
        lambda: Plain(operations={ElementwiseUnary}, capabilities=_STOPS),
        "as if it had not been cancelled",
    ),
    "declared/no-deadline": Planted(
        "contract/executions/deadlines",
        lambda: Plain(operations={ElementwiseUnary}, capabilities=_STOPS),
        "as if it had not been cancelled",
    ),
    "lifecycle/table-of-16": Planted(
        "contract/lifecycle/many", lambda: TableOf(16), "40 networks loaded"
    ),
    "lifecycle/sleepy": Planted(
        "contract/lifecycle/executions-after", lambda: Plain(Sleepy(0.9)), "after a rest"
    ),
    "values/truth-bytes": Planted(
        "Comparison/", lambda: Plain(TruthBytes()), "a byte other than 0 and 1"
    ),
    "sizes/many-elements": Planted(
        "/2-20-elements", lambda: Plain(Sized(lambda array: array.size > 1 << 20))
    ),
    "sizes/large-images": Planted("tiles-", lambda: Plain(IMAGES_OF_256_KIB)),
}
"""By name."""

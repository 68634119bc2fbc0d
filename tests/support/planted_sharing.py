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
    Fault,
    Handles,
    OneScratch,
    Outputs,
    Plain,
    Planted,
    Sized,
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


class TableOf(Plain):
    """Has room for so many networks; the next one takes the place of the first."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self._loaded: list[object] = []

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        room, loaded = self._room, self._loaded
        loaded.append(None)
        alive: set[int] = self.__dict__.setdefault("alive", set())

        class Numbered(Factory):
            number = len(loaded)

            def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
                right, number = super().create_workload(operation, info), self.number
                alive.add(number)

                class Placed(IWorkload):
                    def execute(self, inputs: Handles, outputs: Outputs) -> None:
                        right.execute(inputs, outputs)
                        if len(alive) > room and outputs[0].info.num_elements:
                            array = outputs[0].map()
                            array.reshape(-1).view(np.uint8)[-1] ^= 0x40
                            outputs[0].unmap()

                    def __del__(self) -> None:
                        alive.discard(number)

                return Placed()

        return Numbered(self.fault)


class Sleepy(Fault):
    """What is computed after a rest is wrong."""

    def __init__(self, rest_s: float) -> None:
        self._rest_s = rest_s
        self._last_s: dict[int, float] = {}

    def after(self, call: Call) -> None:
        now, key = time.monotonic(), id(call.operation)
        last = self._last_s.get(key, now)
        self._last_s[key] = now
        if now - last > self._rest_s and call.outputs[0].size:
            call.outputs[0].reshape(-1).view(np.uint8)[-1] ^= 0x40


class TruthBytes(Fault):
    """Truth values are 0 and 255."""

    def after(self, call: Call) -> None:
        for output in call.outputs:
            if output.dtype == bool:
                output.view(np.uint8)[...] *= 255


def images_of_256_kib() -> Fault:
    """Of a batch of images above 256 KiB the last element is wrong."""
    return Sized(lambda a: a.ndim == 4 and a.shape[0] > 1 and a.nbytes // a.shape[0] > 1 << 18)


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
    "sizes/large-images": Planted("tiles-", lambda: Plain(images_of_256_kib())),
}
"""By name."""

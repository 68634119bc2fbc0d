"""Backends whose workloads take long, and say what becomes of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from armpy.backend import (
    Capabilities,
    Capability,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    WorkloadInfo,
    current_cancellation,
)
from armpy.ops.operation import Operation
from tests.support.fake_backends import FakeBackend


class SlowBackend(FakeBackend):
    """Runs a layer as long as `gate` is closed; stops when it is told so if it `looks`."""

    def __init__(self, *, looks: bool = False, name: str = "Slow") -> None:
        super().__init__(name)
        self.looks = looks
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.order: list[str] = []
        self.num_ended = 0

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.CANCELLABLE_EXECUTION: self.looks}

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory(self, super().create_workload_factory(network))


class _Factory(IWorkloadFactory):
    def __init__(self, backend: SlowBackend, right: IWorkloadFactory) -> None:
        self._backend = backend
        self._right = right

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return _Workload(self._backend, self._right.create_workload(operation, info), info.name)


class _Workload(IWorkload):
    def __init__(self, backend: SlowBackend, right: IWorkload, name: str) -> None:
        self._backend = backend
        self._right = right
        self._name = name

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        backend, cancellation = self._backend, current_cancellation()
        backend.order.append(self._name)
        backend.entered.set()
        while not backend.gate.is_set():
            if backend.looks and cancellation is not None:
                cancellation.check()
            time.sleep(0.0005)
        self._right.execute(inputs, outputs)
        backend.num_ended += 1

"""Backends whose workloads take long, and record their outcome."""

from __future__ import annotations

import threading
import time

from armpy.backend import Capabilities, Capability, current_cancellation
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step


class SlowBackend(FakeBackend):
    """Runs a layer as long as `gate` is closed; stops when cancelled if it `looks`."""

    def __init__(self, *, looks: bool = False, name: str = "Slow") -> None:
        super().__init__(name)
        self.looks = looks
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.order: list[str] = []
        self.num_ended = 0

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.CANCELLABLE_EXECUTION: self.looks}

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        cancellation = current_cancellation()
        self.order.append(step.info.name)
        self.entered.set()
        while not self.gate.is_set():
            if self.looks and cancellation is not None:
                cancellation.check()
            time.sleep(0.0005)
        step.right.execute(inputs, outputs)
        self.num_ended += 1

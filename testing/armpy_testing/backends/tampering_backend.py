"""A backend that spoils right results."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from armpy.ops import Activation, ElementwiseBinary
from armpy.ops.operation import Array, Operation
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step

Tamper = Callable[[Operation, list[Array], list[Array]], None]
"""Spoils inputs or outputs after the right answer was computed."""

OPERATIONS = (ElementwiseBinary, Activation)
"""What it supports unless told otherwise."""


class Tampering(FakeBackend):
    """Spoils its results."""

    def __init__(self, tamper: Tamper, operations: Collection[type] | None = OPERATIONS) -> None:
        super().__init__("Liar", operations)
        self._tamper = tamper

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        sources = [handle.map() for handle in inputs if handle is not None]
        self._tamper(step.operation, sources, [handle.map() for handle in outputs])


def adds_one(_: Operation, __: list[Array], outputs: list[Array]) -> None:
    """Make every output wrong."""
    for output in outputs:
        np.add(output, np.ones((), output.dtype), out=output)

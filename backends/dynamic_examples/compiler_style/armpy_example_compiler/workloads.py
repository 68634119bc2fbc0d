"""Runs programs, and the activations that were left untouched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from armpy.backend import ITensorHandle, IWorkload, IWorkloadFactory, WorkloadInfo
from armpy.errors import UnimplementedError
from armpy.ops import Activation, PreCompiled
from armpy.ops.operation import Operation
from armpy_example_compiler.program import Floats, bounds_of, clamp


class ExampleWorkload(IWorkload):
    """One program or activation; keeps nothing of an execution."""

    def __init__(self, run: Callable[[Floats, Floats], None]) -> None:
        self._run = run

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the output in its own memory."""
        sources = [handle for handle in inputs if handle is not None]
        with np.errstate(all="ignore"):  # infinities and NaNs are answers like any other
            self._run(sources[0].map(write=False), outputs[0].map(read=False))
        for handle in (*sources, *outputs):
            handle.unmap()


class ExampleWorkloadFactory(IWorkloadFactory):
    """Prepares what `compile_view` answered as substituted or untouched."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Make the workload of a program or of a single activation."""
        if isinstance(operation, PreCompiled):
            return ExampleWorkload(operation.program.run)
        if isinstance(operation, Activation):
            low, high = bounds_of(operation)
            return ExampleWorkload(partial(_clamp, low, high))
        raise UnimplementedError(f"{operation.name} is not run alone", where=info.name)


def _clamp(low: float | None, high: float | None, source: Floats, out: Floats) -> None:
    """Clamp from one array to another."""
    clamp(source, low, high, out)

"""Steps that tell verbose logging when they are executed; made only where its tag is on."""

from __future__ import annotations

from collections.abc import Callable, Collection

from armpy.core.vlog import vlog
from armpy.execution.steps.profiled import Measure
from armpy.execution.steps.step import Inputs, Outputs, Step, waiting
from armpy.graph import Layer
from armpy.types import BackendId


def logged_steps(measure: Measure | None, processors: Collection[BackendId]) -> Measure:
    """What makes the steps of layers that processors execute tell that they are executed.

    Parameters
    ----------
    measure : callable, optional
        What else is done to steps.
    processors : collection of str
        Ids of the backends that execute on a processor.
    """

    def logged(step: Step, layer: Layer, backend_id: BackendId) -> Step:
        if measure is not None:
            step = measure(step, layer, backend_id)
        if backend_id not in processors:
            return step
        # Told one after the other, as on a processor.
        inner, where = waiting(backend_id, step), layer.where

        def execute(inputs: Inputs, outputs: Outputs) -> None:
            vlog("cpuexe", "%s: %s", backend_id, where)
            inner.execute(inputs, outputs)

        def bind(inputs: Inputs, outputs: Outputs) -> Callable[[], object]:
            call = inner.bind(inputs, outputs)

            def logged_call() -> object:
                vlog("cpuexe", "%s: %s", backend_id, where)
                return call()

            return logged_call

        return Step(execute, bind, inner.free_idle, is_bound=inner.is_bound)

    return logged

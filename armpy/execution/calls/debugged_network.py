"""Loaded network as calls see it, which reports every value to a callback."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.slots import InputSlot
from armpy.execution.programs.imports import ImportedTensors
from armpy.execution.programs.program import BoundProgram
from armpy.execution.wrappers.debugging import DebugCallback, debugged
from armpy.ops.operation import Array

if TYPE_CHECKING:
    from armpy.execution.calls.callee import LoadedCallee


class DebuggedNetwork:
    """A loaded network as calls see it that reports to a callback.

    Raises InvalidArgumentError if the callback cannot be called.
    """

    latest: BoundProgram | None = None
    """Each execution is prepared with its own callback."""

    def __init__(self, network: LoadedCallee, callback: DebugCallback) -> None:
        if not callable(callback):
            raise InvalidArgumentError(
                "the callback cannot be called",
                where="debug",
                expected="a function of a DebugValue",
                actual=type(callback).__name__,
                fix="Pass debug=print to see every value",
            )
        self.graph = network.graph
        self.inputs: tuple[InputSlot, ...] = network.inputs
        self.imported: ImportedTensors = network.imported
        self._network = network
        self._debug = partial(debugged, callback=callback)

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """The network prepared for the shapes of some inputs, and with the callback.

        Raises InvalidArgumentError if there are tensors that are not in memory of the host.
        """
        shapes = tuple([array.shape for array in inputs])
        prepared = self._network.prepared_to_debug(shapes, self._debug)
        if self.imported.of_call(prepared, inputs, targets):
            raise InvalidArgumentError(
                "values are reported of executions with arrays",
                actual="an imported tensor",
                fix="Give arrays to a network that does not import in every call",
            )
        return prepared

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return self._network.describe_shapes()

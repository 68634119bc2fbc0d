"""Working memory of a loaded network that an application holds."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.slots import InputSlot
from armpy.execution.calls.run import run_by_name
from armpy.execution.programs.imports import ImportedTensors
from armpy.execution.programs.program import BoundProgram
from armpy.execution.steps.control_flow import Shapes
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.tensor import format_shape
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.execution.calls.callee import LoadedCallee
    from armpy.execution.programs.held_memory import HeldMemory


class NetworkMemory:
    """Working memory for one execution at a time, with certain input shapes.

    Made by `armpy.Model.create_working_memory`; calls without one use a pool of the network's.

    Parameters
    ----------
    prepared : BoundProgram
        The network prepared for the shapes, with this memory.

    Notes
    -----
    Every backend has made its part of it when this object is there, so that executions in it do
    not run out of memory later, except for control flow, and layers after shapes that depend on
    values. One thread at a time can use it. It goes with the last reference, with `close`, or
    with its network.

    References
    ----------
    Arm NN IWorkingMemHandle.

    Examples
    --------
    >>> with model.create_working_memory() as memory:               # doctest: +SKIP
    ...     for frame in frames:
    ...         scores = model.run({"image": frame}, memory=memory)
    """

    __slots__ = ("__weakref__", "_held", "_network", "graph", "imported", "latest")

    def __init__(self, network: LoadedCallee, prepared: BoundProgram, held: HeldMemory) -> None:
        self.graph: Graph = network.graph
        self.imported: ImportedTensors = network.imported
        self.latest = prepared
        self._held = held
        # Weak: a network that was unloaded ends, even if its working memory is kept.
        self._network = weakref.ref(network)

    @property
    def shapes(self) -> Shapes:
        """The shape of each input."""
        return self.latest.shapes

    @property
    def bytes_by_backend(self) -> Mapping[BackendId, int]:
        """Return the bytes of one execution on each backend, its programs' own memory included."""
        return self._held.bytes_by_backend

    @property
    def size_bytes(self) -> int:
        """Return the bytes of one execution on all backends together."""
        return sum(self.bytes_by_backend.values())

    def run(
        self, inputs: Mapping[str, object], outputs: Mapping[str, object] | None = None
    ) -> dict[str, Array]:
        """Execute once; parameters, result and errors as for `armpy.Model.run`."""
        return run_by_name(self, inputs, outputs)

    @property
    def is_closed(self) -> bool:
        """Return whether it was closed, or its network unloaded."""
        return self._held.is_closed

    def close(self) -> None:
        """Free it, after an execution that is under way."""
        network = self._network()
        is_gone = network is None or network.is_closed
        text = "the network has been unloaded" if is_gone else "the working memory was closed"
        self._held.close(text)

    def __enter__(self) -> NetworkMemory:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # What calls ask of a network.

    @property
    def inputs(self) -> tuple[InputSlot, ...]:
        """Return the slot of each input."""
        return self.latest.inputs

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """`latest`, if it is for the shapes of some inputs.

        Parameters
        ----------
        inputs, targets : sequence of ndarray
            Imported tensors in their place as for `LoadedNetwork.prepared_for`.

        Raises
        ------
        InvalidArgumentError
            If it is for others, or a tensor is imported other than as memory of the host.
        """
        # It was made for one program, so other shapes cannot be prepared in passing.
        shapes = tuple([array.shape for array in inputs])
        if shapes != self.shapes:
            raise InvalidArgumentError(
                "the working memory is for other input shapes",
                expected=", ".join(map(format_shape, self.shapes)),
                actual=", ".join(map(format_shape, shapes)),
                fix="Make one for these",
            )
        if self.imported.of_call(self.latest, inputs, targets):
            raise InvalidArgumentError(
                "the working memory is for executions with arrays",
                actual="an imported tensor",
                fix="Run without the working memory",
            )
        return self.latest

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        pairs = zip(self.graph.inputs, self.shapes, strict=True)
        return ", ".join(f"{value.name} {format_shape(shape)}" for value, shape in pairs)

    def of(self, network: LoadedCallee) -> NetworkMemory:
        """The memory itself, if it was made for a network.

        Raises InvalidArgumentError if it was made for another one.
        """
        if self._network() is not network:
            raise InvalidArgumentError(
                "the working memory belongs to another network", fix="Make one of this network"
            )
        return self

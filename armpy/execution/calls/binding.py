"""Bindings: the arrays of an execution, and what executes with them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from armpy.backend import Cancellation, cancellable
from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.conversion import memory_description
from armpy.execution.arrays.imported_tensor import ImportedTensor, ToImport
from armpy.execution.arrays.slots import InputSlot
from armpy.execution.calls.run import as_dict, checked_call, wrong_names
from armpy.execution.programs.program import BoundProgram
from armpy.ops.operation import Array

if TYPE_CHECKING:
    from armpy.execution.calls.callee import Callee


class Binding:
    """The arrays that a network is executed with, again and again.

    Raises InvalidArgumentError if an array is missing, not known, does not fit or could not be used
    in place.

    All arrays are views of its own: whatever becomes of the shape or type of the caller's array
    objects does not matter. It also keeps weak references to the memory's owners, as NumPy does
    not resize an array in place that has such a reference, whatever the arguments.
    """

    def __init__(
        self,
        network: Callee,
        inputs: Mapping[str, object],  # every input
        # Arrays to write outputs to; the ones missing are made.
        outputs: Mapping[str, object] | None,
    ) -> None:
        named = as_dict("inputs", inputs)
        if named.keys() != {slot.name for slot in network.inputs}:
            raise wrong_names(network, named)
        arrays = [_in_place(slot, named[slot.name]) for slot in network.inputs]
        call = checked_call(network, arrays, outputs)
        self._prepared: BoundProgram = call.prepared
        self._sources = call.sources
        self._copies = call.copies
        pairs = zip(network.inputs, arrays, strict=True)
        self._strings = [(slot, array) for slot, array in pairs if slot.takes_strings]
        # Whether executions stop soon when they are cancelled. Others that are to be stopped at any
        # time write into arrays of their own, as their work may have to be abandoned.
        self.stops_in_place: bool = call.prepared.stops_in_place or call.writes_imported
        self._names = call.names
        self._targets: list[Array | None] = []
        self.shown: dict[str, Array] = {}  # the outputs by name
        for slot, target in zip(call.prepared.outputs, call.targets, strict=True):
            array = slot.new_array() if target is None else target
            self._targets.append(None if array is None else _own_view(array))
            if array is not None:
                self.shown[slot.name] = call.given.get(slot.name, array)  # type: ignore[assignment]
        used = [*arrays, *(target for target in call.targets if target is not None)]
        self._owners = [weakref.ref(owner) for owner in _owners(used)]

    def bound(self, signal: Cancellation) -> Callable[[], object]:
        """Return a function that executes once with these arrays, and is stopped by a signal."""
        call = self._bound(signal, self._targets)
        if all(array is not None for array in self._targets):
            return call

        def execute() -> None:
            self.shown.update(zip(self._names, call() or (), strict=True))

        return execute

    def bound_apart(self, signal: Cancellation) -> PrivateCall:
        """`bound`, which writes into arrays of its own until `PrivateCall.write`."""
        results = [None if array is None else np.empty_like(array) for array in self._targets]
        return PrivateCall(self._bound(signal, results), results, self)

    def _bound(
        self, signal: Cancellation, results: list[Array | None]
    ) -> Callable[[], Sequence[Array] | None]:
        """Return a function that executes once into some arrays."""
        # Backends look up what stops them when they prepare, not in each execution.
        with cancellable(signal):
            call = self._prepared.bind(self._sources, results)
        if self._copies:
            # A step may write an output before another one reads the input that it overlaps.
            copies = [partial(target.__setitem__, ..., source) for target, source in self._copies]
            call = _after(copies, call)
        if self._strings:
            # The caller can put any object into their arrays.
            checks = [partial(_in_place, slot, array) for slot, array in self._strings]
            call = _after(checks, call)
        return call

    def take(self, made: Sequence[Array]) -> None:
        """Copy results into the caller's arrays, or show them where the caller has none."""
        for name, slot, target, array in zip(
            self._names, self._prepared.outputs, self._targets, made, strict=True
        ):
            if target is None:
                self.shown[name] = array
            else:
                slot.check_result(array, target)
                target[...] = array


class PrivateCall:
    """Executes into arrays that the caller does not have."""

    __slots__ = ("_binding", "_call", "_made", "_results")

    def __init__(
        self,
        call: Callable[[], Sequence[Array] | None],
        results: Sequence[Array | None],
        binding: Binding,
    ) -> None:
        self._call = call
        self._results = results
        self._binding = binding
        self._made: Sequence[Array] | None = None

    def __call__(self) -> None:
        """Execute once."""
        self._made = self._call()

    def write(self) -> None:
        """Copy the results into the caller's arrays."""
        results = self._results if self._made is None else self._made
        self._made = None
        self._binding.take(results)  # type: ignore[arg-type]  # unknown parts are made now


def _in_place(slot: InputSlot, argument: object) -> Array:
    """A view of an input that is read where it is."""
    array = slot.converted(argument, quantize=False)
    # A copy would hold the earlier elements: later changes of the array would not be seen.
    if array is not argument and array.flags.owndata:
        raise InvalidArgumentError(
            "the input cannot be bound, as it would have to be copied",
            where=f"input '{slot.name}'",
            expected=f"a C-contiguous array of {array.dtype}",
            actual=memory_description(argument),
            fix="Bind a copy made by np.ascontiguousarray, and write each run's elements into it",
        )
    return _own_view(array)


def _own_view(array: Array) -> Array:
    """The same elements in an array whose shape and type no other code can change."""
    if isinstance(array, (ImportedTensor, ToImport)):
        return array
    return array.view(np.ndarray)


def _owners(arrays: Sequence[Array]) -> list[Array]:
    """The arrays whose memory some arrays lie in."""
    plain = (array for array in arrays if isinstance(array, np.ndarray))
    # NumPy's views know the owner of their memory itself, so that one step is enough.
    bases = (array if array.base is None else array.base for array in plain)
    return [base for base in bases if isinstance(base, np.ndarray)]


def _after(
    earlier: Sequence[Callable[[], object]], call: Callable[[], Sequence[Array] | None]
) -> Callable[[], Sequence[Array] | None]:
    """A call after others."""

    def execute() -> Sequence[Array] | None:
        for other in earlier:
            other()
        return call()

    return execute

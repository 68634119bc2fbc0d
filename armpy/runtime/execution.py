"""Execution: a network bound to arrays, checked once and executed any number of times."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array
from armpy.runtime.calls import as_dict, settle, wrong_names
from armpy.runtime.imported_tensor import ImportedTensor, ToImport
from armpy.runtime.slots import InputSlot

if TYPE_CHECKING:
    from armpy.runtime.debugging import DebuggedNetwork
    from armpy.runtime.loaded_network import LoadedNetwork


class Execution:
    """A loaded network bound to arrays; made by `armpy.Model.bind`.

    Parameters
    ----------
    execute : callable
        Executes once; gives the outputs if some are made anew every time.
    outputs : dict of str to ndarray
        Where each output is written.
    keep_alive : object
        What has to live as long.

    Attributes
    ----------
    outputs : dict of str to ndarray
        The outputs by name. The arrays stay the same, except those of outputs whose shapes depend
        on values, of which each execution makes new ones.

    Notes
    -----
    It has working memory of its own. One thread at a time can call it; any number of executions
    of one network can run at the same time.
    """

    __slots__ = ("__weakref__", "_is_closed", "_keep_alive", "_turn", "outputs")

    def __init__(
        self,
        execute: Callable[[], Sequence[Array] | None],
        outputs: dict[str, Array],
        keep_alive: object = None,
    ) -> None:
        self.outputs = outputs
        self._keep_alive = keep_alive
        self._is_closed = False
        # Whoever takes it out executes: to take from a list is one step, and the quickest lock.
        self._turn = [execute]

    def __call__(self) -> dict[str, Array]:
        """Execute once.

        Returns
        -------
        dict of str to ndarray
            `outputs`.

        Raises
        ------
        InvalidArgumentError
            If the network has been unloaded, or another thread is in here.
        """
        turn = self._turn
        try:
            execute = turn.pop()
        except IndexError:
            raise self._not_free() from None
        try:
            execute()
        finally:
            turn.append(execute)
        return self.outputs

    def _not_free(self) -> InvalidArgumentError:
        """Why it cannot be executed now."""
        if self._is_closed:
            return InvalidArgumentError("the network has been unloaded", fix="Load it again")
        return InvalidArgumentError(
            "the execution is under way in another thread", fix="Bind one for each thread"
        )

    def keeping(self, owner: object) -> Execution:
        """The same, which keeps its owner: networks go with their runtime."""
        self._keep_alive = (self._keep_alive, owner)
        return self

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or its network unloaded."""
        return self._is_closed

    def close(self) -> None:
        """Give its memory back; one that is under way comes to its end."""
        self._is_closed = True
        self._turn = []


def bind_by_name(
    network: LoadedNetwork | DebuggedNetwork,
    inputs: Mapping[str, object],
    outputs: Mapping[str, object] | None = None,
) -> Execution:
    """Check inputs and outputs given by name, and prepare executions with them.

    Parameters
    ----------
    network : LoadedNetwork or DebuggedNetwork
    inputs : mapping of str to ndarray
        Every input.
    outputs : mapping of str to ndarray, optional
        Arrays to write outputs to; the ones missing are made.

    Raises
    ------
    InvalidArgumentError
        If an array is missing, not known, does not fit or could not be used in place.
    """
    named = as_dict("inputs", inputs)
    if named.keys() != {slot.name for slot in network.inputs}:
        raise wrong_names(network, named)
    arrays = [_in_place(slot, named[slot.name]) for slot in network.inputs]
    prepared = network.prepared_for(arrays)
    given = as_dict("outputs", {} if outputs is None else outputs)
    targets: list[Array | None] = [given.get(slot.name) for slot in prepared.outputs]
    sources = [*arrays]
    prepared = settle(network, prepared, sources, targets, given)
    copies = [(s, a) for s, a in zip(sources, arrays, strict=True) if s is not a]
    for index, slot in enumerate(prepared.outputs):
        array = targets[index]
        targets[index] = slot.new_array() if array is None else _own_view(array)
    call = prepared.bind(sources, targets)
    names = [slot.name for slot in prepared.outputs]
    shown = {
        slot.name: given.get(slot.name, array)
        for slot, array in zip(prepared.outputs, targets, strict=True)
        if array is not None
    }
    if copies:
        call = _after_copies(call, copies)
    if len(shown) < len(names):
        call = _showing(call, names, shown)
    held = [weakref.ref(owner) for owner in _owners([*arrays, *given.values()])]
    return Execution(call, shown, held)


def _in_place(slot: InputSlot, given: object) -> Array:
    """A view of an input that is read where it is."""
    array = slot.converted(given, quantize=False)
    if array is not given and array.flags.owndata:
        raise InvalidArgumentError(
            "the input cannot be bound, as it would have to be copied",
            where=f"input '{slot.name}'",
            expected=f"a C-contiguous array of {array.dtype}",
            actual=type(given).__name__,
            fix="Bind an array of that kind, and write each run's elements into it",
        )
    return _own_view(array)


def _own_view(array: Array) -> Array:
    """The same elements in an array that nobody else can reshape or give another type."""
    if isinstance(array, (ImportedTensor, ToImport)):
        return array
    return array.view(np.ndarray)


def _owners(arrays: Sequence[Array]) -> list[Array]:
    """The arrays whose memory some arrays lie in.

    Notes
    -----
    NumPy resizes no array in place that there is a weak reference to, whatever it is told.
    """
    plain = (array for array in arrays if isinstance(array, np.ndarray))
    bases = (array if array.base is None else array.base for array in plain)
    return [base for base in bases if isinstance(base, np.ndarray)]


def _after_copies(
    call: Callable[[], Sequence[Array] | None], copies: Sequence[tuple[Array, Array]]
) -> Callable[[], Sequence[Array] | None]:
    """Copy the inputs that outputs overlap first, as a step may write before another reads."""

    def execute() -> Sequence[Array] | None:
        for target, source in copies:
            target[...] = source
        return call()

    return execute


def _showing(
    call: Callable[[], Sequence[Array] | None], names: Sequence[str], shown: dict[str, Array]
) -> Callable[[], None]:
    """Show the outputs that an execution has made anew."""

    def execute() -> None:
        shown.update(zip(names, call() or (), strict=True))

    return execute

"""State: contents of loaded networks' variables between executions."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from operator import is_

from armpy.errors import InvalidArgumentError
from armpy.graph import Variable
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo


class SharedState:
    """The variables that networks of one model have in common.

    Attributes
    ----------
    lock : Lock
        Held while one of the networks runs.
    latest : VariableState or None
        That of the network which ran last: it knows the variables' contents.

    Notes
    -----
    Arrays go from one network to the next only where another one runs than before, so that a
    network that runs alone does not pay for it.
    """

    __slots__ = ("_arrays", "_infos", "latest", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.latest: VariableState | None = None
        self._infos: dict[Hashable, TensorInfo] = {}
        self._arrays: dict[Hashable, Array] = {}

    def open(self, variables: Sequence[Variable]) -> VariableState:
        """The state of one more network.

        Raises InvalidArgumentError if a variable has another shape, type or quantisation than in
        another network.
        """
        infos = {_key(variable): variable.value.info for variable in variables}
        for key, info in infos.items():
            # Refused when the network is made: elements would only fail to fit when it runs.
            known = self._infos.get(key, info)
            if known != info:
                raise InvalidArgumentError(
                    "two networks share a variable of different shapes or types",
                    where=f"variable {key}",
                    expected=str(known),
                    actual=str(info),
                )
        self._infos.update(infos)
        return VariableState(variables)

    def hand_over(self, state: VariableState) -> None:
        """Let a network's variables keep their contents, for it to run."""
        if self.latest is not None:
            self.latest.give(self._arrays)
        state.take(self._arrays)
        self.latest = state

    def reset(self) -> None:
        """Let all variables hold their initial elements."""
        with self.lock:
            self._arrays.clear()
            self.latest = None


class VariableState:
    """The arrays of a network's variables, and `spare` ones to write their next contents to.

    Two sets of arrays take turns, as allocating them anew takes long next to small networks.
    """

    __slots__ = ("_initials", "_is_own", "arrays", "spare")

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._initials = {_key(variable): variable.initial for variable in variables}
        self.spare: list[Array] | None = None
        self.take({})

    def take(self, arrays: Mapping[Hashable, Array]) -> None:
        """Let variables hold what others left; their initial elements where there is nothing."""
        self.arrays = [arrays.get(key, initial) for key, initial in self._initials.items()]
        self._is_own = False

    def give(self, arrays: dict[Hashable, Array]) -> None:
        """Add the variables' contents."""
        arrays.update(zip(self._initials, self.arrays, strict=True))

    def advance(self, arrays: list[Array], *, is_own: bool) -> None:
        """Let variables hold other arrays.

        They are its own if no other code has them, or the earlier ones through these.
        """
        # What a caller has seen as an output is never written to again.
        is_free = is_own and self._is_own
        # The same lists, by which executions that are prepared with these arrays are found.
        is_spare = self.spare is not None and all(map(is_, arrays, self.spare))
        following = self.spare if self.spare is not None and is_spare else arrays
        self.spare = self.arrays if is_free else None
        self.arrays, self._is_own = following, is_own

    @property
    def pair(self) -> tuple[list[Array], list[Array]] | None:
        """The arrays that variables hold and the spare ones, if both are this caller's alone."""
        return (self.arrays, self.spare) if self._is_own and self.spare is not None else None


def _key(variable: Variable) -> Hashable:
    """Key of a variable; one without a key is not shared with another network."""
    return variable if variable.key is None else variable.key

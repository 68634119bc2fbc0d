"""What the variables of a loaded network hold."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Variable
from armpy.ops.operation import Array


class State:
    """The arrays of some variables, and arrays for what they will hold next.

    Parameters
    ----------
    variables : sequence of Variable

    Attributes
    ----------
    arrays : list of ndarray
        What each variable holds; not to be written to.
    spare : list of (ndarray or None)
        Arrays to write to that nobody else has; None where there is none.

    Notes
    -----
    Two sets of arrays take turns, as allocating them anew takes long next to small networks.
    """

    __slots__ = ("_is_own", "_variables", "arrays", "spare")

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = tuple(variables)
        self.spare: list[Array | None] = [None] * len(self._variables)
        self.reset()

    def reset(self) -> None:
        """Let variables hold their initial elements."""
        self.arrays = [variable.initial for variable in self._variables]
        self._is_own = False

    def advance(self, arrays: list[Array], *, is_own: bool) -> None:
        """Let variables hold other arrays.

        Parameters
        ----------
        arrays : list of ndarray
        is_own : bool
            Whether nobody else has these arrays, nor those before them through these.
        """
        is_free = is_own and self._is_own
        self.spare = [*self.arrays] if is_free else [None] * len(arrays)
        self.arrays, self._is_own = arrays, is_own

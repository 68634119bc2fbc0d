"""Programs that are made again for other sizes without being compiled again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from armpy.core.symbolic import Number, Size


class IResizableProgram(ABC):
    """Program for all sizes: compiled from a subgraph in whose shapes sizes are traced.

    Notes
    -----
    Requested from backends with the capability ``TracedSizes``, from the third set of input shapes
    of a network or loop body on, if all parts are one backend's. A part of fixed sizes may be an
    ordinary program. Dimensions are ``armpy.core.symbolic.Size`` (``isinstance`` or
    ``armpy.core.symbolic.is_traced``): arithmetic with one gives another one, and each comparison
    is a condition under which the program holds. Any other use, as by NumPy, makes the program one
    for these sizes alone, and the trace says so. Decisions by ``armpy.core.symbolic.current`` are
    not conditions: they have to be right for all sizes. For a program of only ``count``, the
    product of the dimensions, ``needed`` is ``[count]``, and ``for_sizes`` gives
    ``numbers[count.number], 0``.

    Only the conformance kit (``contract/sizes/``) checks programs for other sizes. One that raises,
    or gives something else, ends tracing for the network, with a warning.
    """

    @abstractmethod
    def needed(self) -> Sequence[Size]:
        """All sizes that the program's numbers follow from."""

    @abstractmethod
    def for_sizes(self, numbers: Sequence[Number]) -> tuple[object, int]:
        """The program for other sizes.

        Parameters
        ----------
        numbers : sequence of (int or float)
            Sizes, by `Size.number`.

        Returns
        -------
        object
            Program that `PreCompiled` would have held for a subgraph of these sizes.
        int
            Memory of its own that one execution needs, in bytes.
        """

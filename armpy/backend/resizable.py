"""Programs that are made again for other sizes without being compiled again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from armpy.core.symbolic import Number, Size


class IResizableProgram(ABC):
    """Program for all sizes: compiled from a subgraph in whose shapes sizes are traced.

    Notes
    -----
    Asked for from backends with the capability ``TracedSizes``, from the third set of input shapes
    of a network or of a loop's body on, where all parts are one backend's. A part whose tensors all
    have fixed sizes may be an ordinary program. Dimensions are `armpy.core.symbolic.Size` there,
    which a backend finds by ``isinstance`` or `armpy.core.symbolic.is_traced`: arithmetic with one
    gives another one, and comparing one is a condition under which the program holds. A program
    that goes by them in any other way, as NumPy does, is for these sizes alone, and the trace says
    so. Decisions by `armpy.core.symbolic.current` are not conditions: they have to be
    right for all sizes. Where ``count`` is the product of the dimensions, a program that is no more
    than that has ``[count]`` as `needed`, and ``numbers[count.number], 0`` as what `for_sizes`
    gives.

    Only the conformance kit (``contract/sizes/``) checks the program for other sizes. One
    that raises, or gives something else, ends the tracing of sizes for the network, with a warning.
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
            By `Size.number`, the sizes.

        Returns
        -------
        object
            What `PreCompiled` would have held for a subgraph of these sizes.
        int
            Memory of its own that one execution needs, in bytes.
        """

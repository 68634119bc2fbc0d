"""Programs that are made again for other sizes without being compiled again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from armpy.sizes import Number, Size


class IResizableProgram(ABC):
    """What a backend makes of a subgraph in whose shapes sizes are traced.

    Notes
    -----
    Asked for from backends with the capability ``TracedSizes``. Dimensions are `armpy.sizes.Size`
    there: a program that goes by them in any other way than by computing with them and comparing
    them is for these sizes alone, and the trace says so.
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
            By `Size.number`, what the sizes are.

        Returns
        -------
        object
            What `PreCompiled` would have held for a subgraph of these sizes.
        int
            Memory of its own that one execution needs, in bytes.
        """

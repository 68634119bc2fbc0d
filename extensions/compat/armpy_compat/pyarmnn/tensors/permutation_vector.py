"""PyArmNN's PermutationVector."""

from __future__ import annotations

from collections.abc import Iterator

from armpy_compat.pyarmnn.fields import as_unsigned
from armpy_compat.pyarmnn.swig import SwigObject

MAX_DIMENSIONS = 5
"""Most dimensions of a tensor of Arm NN."""


class PermutationVector(SwigObject):
    """Order in which dimensions are permuted.

    Parameters
    ----------
    dim_mappings : tuple
        Of `PermuteDescriptor`: for each dimension of the source, where it goes. Of
        `TransposeDescriptor`: for each dimension of the result, where it comes from.

    Raises
    ------
    TypeError
        If it is not a tuple, or an element is not a number.
    RuntimeError
        If it is not a permutation.
    """

    def __init__(self, dim_mappings: tuple[object, ...]) -> None:
        sizes = checked_sizes(dim_mappings)
        if len(sizes) > MAX_DIMENSIONS:
            raise RuntimeError(
                f"The number of mappings ({len(sizes)}) cannot be greater than the maximum number"
                f" of dimensions supported ({MAX_DIMENSIONS})"
            )
        for index, mapping in enumerate(sizes):
            if mapping >= len(sizes):
                raise RuntimeError(
                    f"Dimension mapping at index {index} is invalid: {mapping} is outside of the"
                    f" valid range [0,{len(sizes) - 1}]"
                )
        if len(set(sizes)) != len(sizes):
            raise RuntimeError(
                "Invalid dimension mappings: Two or more source dimensions are mapped to the same"
                " output dimension"
            )
        self._mappings = sizes

    def GetSize(self) -> int:
        """Return the number of dimensions."""
        return len(self._mappings)

    def IsInverse(self, other: PermutationVector) -> bool:
        """Return whether the other one undoes this one."""
        mine, others = self._mappings, other._mappings
        return len(mine) == len(others) and all(mine[o] == i for i, o in enumerate(others))

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < len(self._mappings):
            raise ValueError(
                f"Invalid indexing of PermutationVector of size {len(self._mappings)}"
                f" at location [{index}]."
            )
        return self._mappings[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self._mappings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PermutationVector):
            return NotImplemented
        return self._mappings == other._mappings

    __hash__ = None  # type: ignore[assignment]  # as of every class with an operator ==


def checked_sizes(dimensions: object) -> tuple[int, ...]:
    """The integers of a tuple of numbers, or of text with numbers in it; TypeError for others."""
    if not isinstance(dimensions, tuple):
        raise TypeError("Argument is not a tuple")
    try:
        return tuple(as_unsigned(int(size)) for size in dimensions)
    except (TypeError, ValueError) as error:
        raise TypeError("All elements must be numbers") from error

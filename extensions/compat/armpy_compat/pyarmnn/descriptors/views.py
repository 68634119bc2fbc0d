"""Descriptors of concatenations and splits: where each part begins."""

from __future__ import annotations

from collections.abc import Sequence

from armpy_compat.pyarmnn.fields import as_unsigned
from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments
from armpy_compat.pyarmnn.tensors.tensor_info import TensorShape


class _Views(SwigObject):
    """A number of parts of a tensor, with the place where each begins."""

    def __init__(self, *args: object) -> None:
        try:
            num_views, num_dimensions = map(as_unsigned, (*args, 4)[:2] if args else (0, 0))
            if len(args) > 2:
                raise TypeError("too many")
        except (TypeError, OverflowError) as error:
            raise wrong_arguments(f"new_{type(self).__name__}") from error
        self._num_dimensions = num_dimensions
        self._origins = [[0] * num_dimensions for _ in range(num_views)]

    def GetNumViews(self) -> int:
        """Return the number of parts."""
        return len(self._origins)

    def GetNumDimensions(self) -> int:
        """Return the number of dimensions."""
        return self._num_dimensions

    def GetViewOrigin(self, idx: int) -> list[int]:
        """Return where a part begins: as many coordinates as there are parts, as PyArmNN does."""
        return self._origins[self._checked(idx)][: self.GetNumViews()]

    def SetViewOriginCoord(self, view: int, coord: int, value: int) -> None:
        """Set one coordinate of the place where a part begins.

        Raises
        ------
        RuntimeError
            If there is no such part or dimension.
        """
        if not (0 <= view < self.GetNumViews() and 0 <= coord < self._num_dimensions):
            raise RuntimeError("Failed to set view origin coordinates.")
        self._origins[view][coord] = as_unsigned(value)

    def _checked(self, idx: int) -> int:
        if not 0 <= idx < self.GetNumViews():
            raise RuntimeError(
                f"There is no view {idx}. Expected an index below {self.GetNumViews()}."
            )
        return idx

    def whole_origins(self) -> list[list[int]]:
        """Every coordinate of the places where the parts begin."""
        return [[*origin] for origin in self._origins]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # as of every class with an operator ==


class ConcatDescriptor(_Views):
    """Configuration of `INetwork.AddConcatLayer`.

    Parameters
    ----------
    num_views : int
        Number of the inputs.
    num_dimensions : int
        4 if left out.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._concat_axis = 1

    def SetConcatAxis(self, concatAxis: int) -> None:
        """Set the axis along which inputs are joined."""
        self._concat_axis = as_unsigned(concatAxis)

    def GetConcatAxis(self) -> int:
        """Return the axis along which inputs are joined."""
        return self._concat_axis


class SplitterDescriptor(_Views):
    """Configuration of `INetwork.AddSplitterLayer`.

    Parameters
    ----------
    num_views : int
        Number of the outputs.
    num_dimensions : int
        4 if left out.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._sizes = self.whole_origins()

    def SetViewSize(self, view: int, coord: int, value: int) -> None:
        """Set the size of a part along one dimension.

        Raises
        ------
        RuntimeError
            If there is no such part or dimension.
        """
        if not (0 <= view < self.GetNumViews() and 0 <= coord < self.GetNumDimensions()):
            raise RuntimeError("Failed to set view size.")
        self._sizes[view][coord] = as_unsigned(value)

    def GetViewSizes(self, idx: int) -> list[int]:
        """Return a part's sizes: as many of them as there are parts, as PyArmNN does."""
        return self._sizes[self._checked(idx)][: self.GetNumViews()]

    def GetOrigins(self) -> ConcatDescriptor:
        """Return where the parts begin."""
        origins = ConcatDescriptor(self.GetNumViews(), self.GetNumDimensions())
        origins._origins = self.whole_origins()
        return origins

    def whole_sizes(self) -> list[list[int]]:
        """Every size of the parts."""
        return [[*sizes] for sizes in self._sizes]


def CreateDescriptorForConcatenation(
    shapes: Sequence[TensorShape], concatenationDimension: int
) -> ConcatDescriptor:
    """Describe the concatenation of tensors of some shapes.

    Raises
    ------
    TypeError
        If they are not shapes.
    RuntimeError
        If the shapes cannot be joined along the axis.
    """
    if not all(isinstance(shape, TensorShape) for shape in shapes):
        raise TypeError(
            "in method 'CreateDescriptorForConcatenation', argument 1 of type 'std::vector<"
            " armnn::TensorShape,std::allocator< armnn::TensorShape > >'"
        )
    axis, sizes = as_unsigned(concatenationDimension), [tuple(shape) for shape in shapes]
    if len(sizes) < 2:
        raise RuntimeError("Concatenation requires at least 2 inputs")
    if len({*map(len, sizes)}) > 1:
        raise RuntimeError("All inputs to concatenation must have the same number of dimensions")
    if axis >= len(sizes[0]):
        raise RuntimeError("concatenationDimension must be between 0 and the number of dimensions.")
    if len({shape[:axis] + shape[axis + 1 :] for shape in sizes}) > 1:
        raise RuntimeError(
            "All inputs to concatenation must be the same size along all dimensions  except the"
            " concatenation dimension"
        )
    descriptor = ConcatDescriptor(len(sizes), len(sizes[0]))
    descriptor.SetConcatAxis(axis)
    begin = 0
    for view, shape in enumerate(sizes):
        descriptor.SetViewOriginCoord(view, axis, begin)
        begin += shape[axis]
    return descriptor

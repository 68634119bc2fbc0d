"""Outline: the operators and tensors of a model file, in the file's own terms."""

from __future__ import annotations

import math

from armpy.core.dataclass import dataclass

LEFT_OUT = -1
"""Index of an operand that an operator leaves out."""


@dataclass(frozen=True, slots=True)
class FileTensor:
    """One tensor of a model file."""

    name: str
    shape: tuple[int | None, ...] | None
    """Shape; a dimension that callers choose is None, and so is a shape of unknown rank."""
    type: str
    """Data type in the format's terms: ``FLOAT32``, ``INT8``."""
    is_constant: bool = False
    """Whether the file holds its elements."""
    is_parameter: bool = False
    """Whether the elements are learnt: weights and biases, not shapes, axes and the like."""
    size_bytes: int | None = None
    """Size of its elements, for a constant as stored; None if unknown."""
    # Quantisation: one number, or one for each channel; empty if not quantised.
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int | None = None
    """Axis of the channels."""

    @property
    def num_elements(self) -> int:
        """Number of elements; an unknown dimension counts as 1."""
        return math.prod(1 if dim is None else dim for dim in self.shape or ())


@dataclass(frozen=True, slots=True)
class FileOperator:
    """One operator of a model file."""

    kind: str
    """Kind in the format's terms: ``CONV_2D``, ``Conv``."""
    name: str
    # Indexes of tensors in the graph's list; `LEFT_OUT` for an operand that is left out.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    layer_names: tuple[str, ...] = ()
    """Names of the layers created for this operator, or prefixes of them up to ``/``. Empty: the
    operator's `name`.
    """
    graphs: tuple[tuple[str, int], ...] = ()
    """Graphs that it runs: the operator's name for each, and its index in the outline's list."""


@dataclass(frozen=True, slots=True)
class FileGraph:
    """One graph of a model file."""

    name: str
    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    """Operators in the file's order."""
    # Indexes of tensors.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileOutline:
    """Outline of a model file, whether armpy can run it or not."""

    graphs: tuple[FileGraph, ...]
    """The main graph first, then those that operators run."""

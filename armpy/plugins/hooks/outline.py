"""Outline: the operators and tensors of a model file, in the file's own words."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEFT_OUT = -1
"""In the place of an operand that an operator leaves out."""


@dataclass(frozen=True, slots=True)
class FileTensor:
    """One tensor of a model file."""

    name: str
    shape: tuple[int | None, ...] | None
    """None for dimensions that callers choose, and for an unknown rank."""
    type: str
    """In the format's words: ``FLOAT32``, ``INT8``."""
    is_constant: bool = False
    """Whether the file holds its elements."""
    is_parameter: bool = False
    """Whether these are learnt: weights and biases, not shapes, axes and the like."""
    size_bytes: int | None = None
    """Of its elements, as they are stored for a constant; None where that is not known."""
    # Quantisation: one number, or one for each channel; empty if not quantised.
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int | None = None
    """Of the channels."""

    @property
    def num_elements(self) -> int:
        """Number of elements; an unknown dimension counts as 1."""
        return math.prod(1 if dim is None else dim for dim in self.shape or ())


@dataclass(frozen=True, slots=True)
class FileOperator:
    """One operator of a model file."""

    kind: str
    """In the format's words: ``CONV_2D``, ``Conv``."""
    name: str
    # Places of tensors in the graph's list; `LEFT_OUT` for an operand that is left out.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    layer_names: tuple[str, ...] = ()
    """Names of the layers that the front-end makes of it, or the part of their names before the
    ``/`` that follows; its own name if left out.
    """
    graphs: tuple[tuple[str, int], ...] = ()
    """Graphs that it runs, by its names for them: places in the outline's list."""


@dataclass(frozen=True, slots=True)
class FileGraph:
    """One graph of a model file."""

    name: str
    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    """In the file's order."""
    # Places of tensors.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileOutline:
    """Outline of a model file, whether armpy can run it or not."""

    graphs: tuple[FileGraph, ...]
    """The main one first, then those that operators run."""

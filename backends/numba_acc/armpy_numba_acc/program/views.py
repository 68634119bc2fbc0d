"""Tensors that are read or written where they lie in other ones, in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from armpy.core.dataclass import dataclass
from armpy.graph import Layer, Value
from armpy.ops.operation import Array


@dataclass(frozen=True, eq=False, slots=True)
class TensorView:
    """View of a tensor's elements in another one."""

    whole: Value  # the tensor that is in memory
    base: Array  # stands for it; the array's elements have no meaning
    part: Array  # a view of `base`, with the shape of the tensor that is in no memory of its own


@dataclass(frozen=True, eq=False, slots=True)
class Views:
    """Views: tensors that layers read and write without a move."""

    # Tensors that are in no memory of their own.
    of: Mapping[Value, TensorView] = field(default_factory=dict)
    # For a layer that reads or writes some of them, those that would have moved their elements.
    absorbed: Mapping[Layer, tuple[Layer, ...]] = field(default_factory=dict)

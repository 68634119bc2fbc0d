"""Inputs for models that are measured: the caller's, or random ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy.typing as npt

from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.model import InputShapes, choose_shapes

Array: TypeAlias = npt.NDArray[Any]  # Any: whatever the model takes

_SPATIAL = 224
"""Default height and width of images with open sizes."""


def chosen_shapes(
    specs: Sequence[TensorSpec],
    defaults: Sequence[tuple[int, ...] | None],
    shapes: Mapping[str, Sequence[int]],
    batch: int | None,
    read_dimension_names: Callable[[], Mapping[str, Sequence[str]]] = dict,
) -> InputShapes:
    """A shape for each input.

    Parameters
    ----------
    defaults : sequence of (tuple of int or None)
        The proposals of the model's file for each.
    shapes : mapping of str to sequence of int
        The user's settings.
    batch : int, optional
        Size of the first axis of every input.
    read_dimension_names : callable, optional
        As of `armpy.model.open_shapes.choose_shapes`.

    Raises
    ------
    InvalidArgumentError
        If there is no such input, or an input has no axis for a batch.

    Notes
    -----
    They need not be those of the file; see `fits`.
    """
    chosen = choose_shapes(specs, defaults, shapes, read_dimension_names, image_side=_SPATIAL)
    if batch is None:
        return chosen
    batched = {
        spec.name: _batched(spec, chosen.by_name[spec.name], batch)
        for spec in specs
        if spec.name not in shapes
    }
    return InputShapes({**chosen.by_name, **batched}, chosen.guessed, chosen.unknown)


def _batched(spec: TensorSpec, shape: tuple[int, ...], batch: int) -> tuple[int, ...]:
    """A shape with another size of its first axis."""
    if not shape:
        raise InvalidArgumentError(
            "an input has no axis for a batch",
            where=f"--batch {batch}, input '{spec.name}'",
            fix="Leave --batch out",
        )
    return (batch, *shape[1:])


def fits(spec: TensorSpec, shape: Sequence[int]) -> bool:
    """Return whether an input takes a shape as the file has it."""
    declared = spec.shape
    if declared is None:
        return True
    return len(declared) == len(shape) and all(
        dim is None or dim == size for dim, size in zip(declared, shape, strict=True)
    )

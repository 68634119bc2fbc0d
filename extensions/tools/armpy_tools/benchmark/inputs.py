"""Inputs for models that are measured: the caller's, or random ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.cli.inputs.values import given_arrays
from armpy.errors import Argument, InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.model import InputShapes, choose_shapes
from armpy.tensor import format_shape
from armpy_tools.benchmark.subjects import Subject

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
        Size of the first axis of every input that has one.
    read_dimension_names : callable, optional
        As of `armpy.model.open_shapes.choose_shapes`.

    Raises
    ------
    InvalidArgumentError
        If there is no such input, one has another batch, or none has an axis for it.

    Notes
    -----
    They need not be those of the file; see `fits`.
    """
    chosen = choose_shapes(specs, defaults, shapes, read_dimension_names, image_side=_SPATIAL)
    if batch is None:
        return chosen
    for name, shape in shapes.items():
        if shape and shape[0] != batch:
            raise InvalidArgumentError(
                "the input has another first size than the batch",
                where=f"input '{name}'",
                argument=Argument("batch", batch),
                expected=str(batch),
                actual=format_shape(tuple(shape)),
                fix="Leave it out",
            )
    batched = {name: (batch, *shape[1:]) if shape else () for name, shape in chosen.by_name.items()}
    if not any(batched.values()):
        raise InvalidArgumentError(
            "no input has an axis for a batch",
            argument=Argument("batch", batch),
            fix="Leave it out",
        )
    return replace(chosen, by_name=batched)


def fits(spec: TensorSpec, shape: Sequence[int]) -> bool:
    """Return whether an input takes a shape as the file has it."""
    declared = spec.shape
    if declared is None:
        return True
    return len(declared) == len(shape) and all(
        dim is None or dim == size for dim, size in zip(declared, shape, strict=True)
    )


def filled_arrays(
    specs: Sequence[TensorSpec],
    subject: Subject,
    arrays: Mapping[str, Array],
    shapes: Mapping[str, Sequence[int]],
    seed: int,
) -> dict[str, Array]:
    """Arrays for all inputs: `arrays` that are there, those that a subject says, random ones."""
    generator = np.random.default_rng(seed)
    feeds = given_arrays(specs, subject.input_request, arrays, shapes)
    left = [spec for spec in specs if spec.name not in feeds]
    # Not `spec.random`: the engine says whether an input takes the shape.
    return feeds | {spec.name: spec.data_type.random(generator, shapes[spec.name]) for spec in left}

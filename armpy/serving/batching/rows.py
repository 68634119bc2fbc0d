"""Rows: how single items become a batch, and a batch's outputs become answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution.arrays.conversion import as_input
from armpy.execution.arrays.tensor_spec import TensorSpec
from armpy.execution.calls.run import as_dict
from armpy.model.model import Model
from armpy.ops.operation import Array
from armpy.serving.batching.item import Answer, Item
from armpy.tensor import Shape, format_shape


def with_open_batch(model: Model, max_batch: int) -> Model:
    """A model that takes any number of rows.

    Parameters
    ----------
    model : Model
    max_batch : int
        The most rows that it is to take.

    Returns
    -------
    Model
        `model` itself if it does; else one of `Model.reshape`.

    Raises
    ------
    InvalidArgumentError
        If the model cannot be run on several items at once; the text says why.
    """
    for spec in model.inputs:
        if not spec.shape:
            raise _unsuitable(f"input '{spec.name}' has no batch dimension", str(spec.info))
    # Asked of a light one, the graph would load the whole network; light ones have no state.
    if not model.is_light and model.graph.variables:
        raise _unsuitable("the model has state, which would go from caller to caller")
    if all(_first(spec.shape) is None for spec in model.inputs):
        _check_outputs(model)
        return model
    fixed = {_first(spec.shape) for spec in model.inputs} - {None}
    if len(fixed) > 1:
        told = ", ".join(f"{s.name}{format_shape(s.shape)}" for s in model.inputs)
        raise _unsuitable("the inputs differ in their first dimension", told)
    return _opened(model, max_batch)


def _opened(model: Model, max_batch: int) -> Model:
    """`with_open_batch` of a model whose file has fixed the batch."""
    try:
        # Tried with a batch that no file fixes by chance: a constant that happens to be the file's
        # batch shows as an error here, and not as wrong rows later.
        several = model.reshape(_shapes(model.inputs, max_batch + 1))
    except ArmpyError as error:
        raise InvalidArgumentError(
            f"the model's batch is fixed, and cannot be changed: {error}", where="Batcher"
        ) from error
    several.close()
    opened = model.reshape(_shapes(model.inputs, None))
    try:
        _check_outputs(opened)
    except BaseException:
        opened.close()
        raise
    return opened


def _shapes(specs: Sequence[TensorSpec], batch: int | None) -> dict[str, Shape]:
    """The inputs' shapes with another batch."""
    return {spec.name: (batch, *(spec.shape or ())[1:]) for spec in specs}


def _check_outputs(model: Model) -> None:
    """Check that every output may have a row for each item."""
    for spec in model.outputs:
        if spec.shape is not None and (not spec.shape or spec.shape[0] is not None):
            raise _unsuitable(
                f"output '{spec.name}' has not as many rows as the inputs", str(spec.info)
            )


def _first(shape: Shape | None) -> int | None:
    """A shape's first dimension."""
    return shape[0] if shape else None


def _unsuitable(reason: str, actual: str = "") -> InvalidArgumentError:
    """The error for a model whose items cannot be run together."""
    return InvalidArgumentError(
        f"the model cannot be run on several items at once: {reason}",
        where="Batcher",
        actual=actual,
        fix="Call the model itself",
    )


def read_item(
    specs: Sequence[TensorSpec],
    inputs: Mapping[str, object],
    quantize: bool = False,
    deadline_s: float | None = None,
) -> Item:
    """Check one item's inputs, so that nothing is wrong with them once they are in a batch.

    Parameters
    ----------
    specs : sequence of TensorSpec
        The model's inputs.
    inputs : mapping of str to array_like
    quantize : bool
        Whether real numbers are quantised.
    deadline_s : float, optional
        By `time.perf_counter`.

    Raises
    ------
    InvalidArgumentError
        If names, types or shapes do not fit the model.
    """
    given = as_dict("inputs", inputs)
    names = [spec.name for spec in specs]
    if given.keys() != set(names):
        missing = [name for name in names if name not in given]
        extra = [str(name) for name in given if name not in names]
        raise InvalidArgumentError(
            "the inputs are not the model's",
            expected=", ".join(names),
            actual="; ".join(
                [f"missing {name!r}" for name in missing] + [f"not known {n!r}" for n in extra]
            ),
        )
    arrays, with_axis = {}, set()
    for spec in specs:
        array, has_axis = _row(spec, given[spec.name], quantize)
        arrays[spec.name] = array
        with_axis.add(has_axis)
    if len(with_axis) > 1:
        raise InvalidArgumentError(
            "some inputs have a batch dimension of 1, and others none",
            where="Batcher",
            fix="Give all of them with it, or without",
        )
    return Item(arrays, with_axis == {True}, deadline_s)


def _row(spec: TensorSpec, given: object, quantize: bool) -> tuple[Array, bool]:
    """One input of an item, without the batch dimension, and whether it came with one."""
    row = (spec.shape or ())[1:]
    shape = row if isinstance(given, (bytes, bytearray, memoryview)) else None
    array = as_input(spec.name, spec.info.with_shape(shape), given, quantize=quantize)
    has_axis = array.ndim == len(row) + 1
    single = array[0] if has_axis and array.shape[0] == 1 else array
    if single.ndim != len(row) or any(
        size is not None and size != actual for size, actual in zip(row, single.shape, strict=True)
    ):
        raise InvalidArgumentError(
            "the shape is not one item's",
            where=f"input '{spec.name}'",
            expected=f"{format_shape(row)} or {format_shape((1, *row))}",
            actual=format_shape(array.shape),
            fix="Hand in the items of a batch one by one" if has_axis else "",
        )
    return single, has_axis


def stacked(items: Sequence[Item], size: int) -> dict[str, Array]:
    """Items as one batch; missing rows are those of the first item once more."""
    batch = {}
    for name, first in items[0].arrays.items():
        # Not zeros: every row is written, the missing ones as well. Those hold a real item's
        # elements, as zeros may divide by zero or index what is not there.
        rows = np.empty((size, *first.shape), first.dtype)
        for index, item in enumerate(items):
            rows[index] = item.arrays[name]
        if size > len(items):
            rows[len(items) :] = first
        batch[name] = rows
    return batch


def answers(items: Sequence[Item], size: int, outputs: Answer) -> list[Answer]:
    """Each item's row of every output, in memory of its own.

    Raises
    ------
    InvalidArgumentError
        If an output has not as many rows as the batch.
    """
    for name, array in outputs.items():
        if array.ndim == 0 or array.shape[0] != size:
            raise _unsuitable(
                f"output '{name}' has not as many rows as the inputs", format_shape(array.shape)
            )
    # Copies: a view would keep the whole batch alive, and let callers see each other's rows.
    return [
        {
            name: array[index : index + 1].copy() if item.keeps_axis else array[index].copy()
            for name, array in outputs.items()
        }
        for index, item in enumerate(items)
    ]


def batch_sizes(max_batch: int) -> tuple[int, ...]:
    """Sizes that a model is prepared for: powers of two, and the largest."""
    return (*(2**power for power in range(math.ceil(math.log2(max_batch)))), max_batch)

"""Rows: how single items become a batch, and a batch's outputs become answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy import Model
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution import TensorSpec, as_input
from armpy.execution.arrays.reshaping import with_input_shapes
from armpy.execution.calls.run import as_dict
from armpy.ops.operation import Array
from armpy.tensor import Shape, format_shape
from armpy_serving.batching.item import Answer, Item
from armpy_serving.filling import fill_up


def has_open_batch(model: Model, max_batch: int) -> bool:
    """Check that a model can be run on several items at once.

    Parameters
    ----------
    max_batch : int
        The most rows that it is to take.

    Returns
    -------
    bool
        Whether it takes any number of rows as it is; otherwise `Model.reshape` makes one that does.

    Raises
    ------
    InvalidArgumentError
        If it cannot; the text says why.
    """
    for spec in model.inputs:
        if not spec.shape:
            raise _unsuitable(f"input '{spec.name}' has no batch dimension", str(spec.info))
    # Asked of a light one, the graph would load the whole network; light ones have no state.
    if not model.is_light and model.graph.variables:
        raise _unsuitable("the model has state, which would go from caller to caller")
    if all(_first(spec.shape) is None for spec in model.inputs):
        _check_outputs(model.outputs)
        return True
    fixed = {_first(spec.shape) for spec in model.inputs} - {None}
    if len(fixed) > 1:
        shapes = ", ".join(f"{s.name} {format_shape(s.shape)}" for s in model.inputs)
        raise _unsuitable("the inputs differ in their first dimension", shapes)
    _check_opened(model, max_batch)
    return False


def with_open_batch(model: Model, max_batch: int) -> Model:
    """A model that takes any number of rows: itself, or one of `Model.reshape`.

    Raises
    ------
    InvalidArgumentError
        As `has_open_batch`.
    """
    return model if has_open_batch(model, max_batch) else model.reshape(_shapes(model.inputs, None))


def _check_opened(model: Model, max_batch: int) -> None:
    """`has_open_batch` of a model whose file has fixed the batch, without preparing anything."""
    try:
        source = model.handle.source
        # Tried with a batch that no file fixes by chance: a constant that happens to be the file's
        # batch shows as an error here, and not as wrong rows later.
        with_input_shapes(source, _shapes(model.inputs, max_batch + 1))
        opened = with_input_shapes(source, _shapes(model.inputs, None))
    except ArmpyError as error:
        raise InvalidArgumentError(
            f"the model's batch is fixed, and cannot be changed: {error}", where="Batcher"
        ) from error
    names = opened.output_names
    _check_outputs([TensorSpec(n, v.info) for n, v in zip(names, opened.outputs, strict=True)])


def _shapes(specs: Sequence[TensorSpec], batch: int | None) -> dict[str, Shape]:
    """The inputs' shapes with another batch."""
    return {spec.name: (batch, *(spec.shape or ())[1:]) for spec in specs}


def _check_outputs(specs: Sequence[TensorSpec]) -> None:
    """Check that every output may have a row for each item."""
    for spec in specs:
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
) -> tuple[dict[str, Array], bool]:
    """Check one item's inputs, so that nothing is wrong with them once they are in a batch.

    Parameters
    ----------
    specs : sequence of TensorSpec
        The model's inputs.
    quantize : bool
        Whether real numbers are quantised.

    Returns
    -------
    dict of str to ndarray
        One row of each input, without the batch dimension.
    bool
        Whether they came with one of 1.

    Raises
    ------
    InvalidArgumentError
        If names, types or shapes do not fit the model.
    """
    by_name = as_dict("inputs", inputs)
    names = [spec.name for spec in specs]
    if by_name.keys() != set(names):
        missing = [name for name in names if name not in by_name]
        extra = [str(name) for name in by_name if name not in names]
        raise InvalidArgumentError(
            "the inputs are not the model's",
            expected=", ".join(names),
            actual="; ".join(
                [f"missing {name!r}" for name in missing] + [f"unknown {n!r}" for n in extra]
            ),
        )
    arrays, with_axis = {}, set()
    for spec in specs:
        array, has_axis = _row(spec, by_name[spec.name], quantize)
        arrays[spec.name] = array
        with_axis.add(has_axis)
    if len(with_axis) > 1:
        raise InvalidArgumentError(
            "some inputs have a batch dimension of 1, and others none",
            where="Batcher",
            fix="Give all of them with it, or without",
        )
    return arrays, with_axis == {True}


def _row(spec: TensorSpec, argument: object, quantize: bool) -> tuple[Array, bool]:
    """One input of an item, without the batch dimension, and whether it came with one."""
    row = (spec.shape or ())[1:]
    shape = row if isinstance(argument, (bytes, bytearray, memoryview)) else None
    array = as_input(spec.name, spec.info.with_shape(shape), argument, quantize=quantize)
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
    """Items as one batch, filled up to a size."""
    batch = {}
    for name, first in items[0].arrays.items():
        rows = np.empty((size, *first.shape), first.dtype)
        for index, item in enumerate(items):
            rows[index] = item.arrays[name]
        batch[name] = fill_up(rows, len(items))
    return batch


def answers(items: Sequence[Item], size: int, outputs: Answer) -> list[Answer]:
    """Each item's row of every output, in memory of its own.

    Raises
    ------
    InvalidArgumentError
        If an output has not as many rows as the batch.
    """
    check_rows(outputs, size)
    # Copies: a view would keep the whole batch alive, and let callers see each other's rows.
    return [
        {
            name: array[index : index + 1].copy() if item.keeps_axis else array[index].copy()
            for name, array in outputs.items()
        }
        for index, item in enumerate(items)
    ]


def check_rows(outputs: Answer, size: int) -> None:
    """Check that every output has as many rows as were run."""
    for name, array in outputs.items():
        if array.ndim == 0 or array.shape[0] != size:
            raise _unsuitable(
                f"output '{name}' has not as many rows as the inputs", format_shape(array.shape)
            )

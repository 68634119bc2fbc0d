"""Row models: models that answer any number of rows, so many at once."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy

import numpy as np

from armpy import Model
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.ops.operation import Array
from armpy.tensor import format_shape
from armpy_serving.batching.rows import has_open_batch
from armpy_serving.filling import fill_up
from armpy_serving.prediction.columns import Column, cast_rows

MOST_ROWS = 32
"""Rows that are executed at once, if nothing is said: more of them are hardly any faster."""

MOST_BYTES = 16 << 20
"""Default limit of the inputs and outputs of one execution."""


def with_fixed_rows(model: Model, max_rows: int | None) -> Model:
    """The model for a fixed number of rows, where it has an open one or takes one row alone.

    Returns
    -------
    Model
        `model` itself if the file fixes several rows, if it can only be run row by row, if the
        shape of a row is open, or if it was compiled before.

    Raises
    ------
    InvalidArgumentError
        If rows cannot be separated: an input has no first dimension, or there is state.
    """
    fixed = _first_dimensions(model)
    # A program for one shape is not compiled for another: that would be done by each
    # process, and the weights packed again.
    if model.is_light or fixed - {1} or _has_open_rows(model):
        return model
    rows = max_rows or _suitable_rows(model)
    if rows > 1:
        try:
            has_open_batch(model, rows)  # raises where it can be opened by no means
        except InvalidArgumentError:
            rows = 1  # a layer was made for one row: they go one by one
    if rows == 1 and fixed == {1}:
        return model
    return model.reshape({s.name: (rows, *(s.shape or ())[1:]) for s in model.inputs})


def _first_dimensions(model: Model) -> set[int]:
    """Numbers of rows that the inputs are fixed to: none, or one; raises if there are no rows."""
    for spec in model.inputs:
        if not spec.shape:
            raise _unsuitable(f"input '{spec.name}' has no first dimension", str(spec.info))
    if not model.is_light and model.graph.variables:
        raise _unsuitable("the model has state, which would go from row to row", model.title)
    fixed = {spec.shape[0] for spec in model.inputs if spec.shape and spec.shape[0] is not None}
    if len(fixed) > 1:
        shapes = ", ".join(f"{s.name} {format_shape(s.shape)}" for s in model.inputs)
        raise _unsuitable("the inputs differ in their first dimension", shapes)
    return fixed


def _has_open_rows(model: Model) -> bool:
    """Return whether the shape of a row is known only when it comes."""
    return any(None in (spec.shape or ())[1:] for spec in model.inputs)


def _suitable_rows(model: Model) -> int:
    """A power of two of rows, whose inputs and outputs take no more than is usual."""
    sizes = [
        math.prod(n or 1 for n in (spec.shape or ())[1:]) * spec.data_type.size_bytes
        for spec in (*model.inputs, *model.outputs)
    ]
    most = MOST_BYTES // max(1, sum(sizes))
    return int(2 ** math.floor(math.log2(max(1, min(most, MOST_ROWS)))))


def _unsuitable(reason: str, actual: str) -> InvalidArgumentError:
    """The error for a model that tables cannot be run through."""
    return InvalidArgumentError(
        f"the model cannot be run on a table's rows: {reason}",
        where="Predictor",
        actual=actual,
        fix="Call the model itself",
    )


class RowModel:
    """A model that answers any number of rows.

    Parameters
    ----------
    model : Model
        Model as `with_fixed_rows` gives it.
    max_rows : int, optional
        The most rows at once, where the model leaves them open.
    keep : object, optional
        Held as long as this: the owner of the model's memory.

    Notes
    -----
    Several threads may run it; each call has arrays of its own.
    """

    def __init__(self, model: Model, max_rows: int | None, keep: object = None) -> None:
        self.model = model
        self.inputs, self.outputs = model.inputs, model.outputs
        self._keep = keep
        fixed = _first_dimensions(model)
        self._is_fixed = bool(fixed)
        self._rows = fixed.pop() if fixed else self._open_rows(max_rows)
        # By what the file says and not by what comes: one found object would look like one row.
        self._has_rows = {
            spec.name: self._rows != 1 or not spec.shape or spec.shape[0] in (None, 1)
            for spec in self.outputs
        }

    def _open_rows(self, max_rows: int | None) -> int:
        """The most rows of a model that leaves them open."""
        prepared = [shape[0] for shape in self.model.default_shapes if shape]
        if self.model.is_light and prepared and prepared[0] is not None:
            self._is_fixed = True  # compiled for these alone
            return prepared[0]
        return max_rows or _suitable_rows(self.model)

    @property
    def rows(self) -> int:
        """Rows that are executed at once."""
        return self._rows

    def run(
        self,
        taken: Mapping[str, Column],
        names: Mapping[str, str],
        num_rows: int,
        ends_s: float | None = None,
    ) -> dict[str, Array]:
        """Run all rows of a table.

        Parameters
        ----------
        taken : mapping of str to ndarray
            Columns by tensor; they are read only.
        names : mapping of str to str
            Names of the columns, for messages.
        ends_s : float, optional
            Until when it may take, by `time.perf_counter`.

        Returns
        -------
        dict of str to ndarray, shape (num_rows, ...)
            Outputs in memory of their own.

        Raises
        ------
        InvalidArgumentError
            If a column does not fit, or an output has not as many rows.
        ExecutionTimeoutError
            If it takes longer.
        ArmpyError
            As of `Model.run`; columns and rows are named before its place.
        """
        if not num_rows:
            return self._empty()
        results: dict[str, Array] = {}
        for begin, end in self._pieces(num_rows):
            inputs = {
                spec.name: self._piece(spec, names, taken[spec.name][begin:end], begin)
                for spec in self.inputs
            }
            left_s = None if ends_s is None else max(0.0, ends_s - time.perf_counter())
            try:
                answers = self.model.run(inputs, deadline_s=left_s)
            except ArmpyError as error:
                columns = [names.get(spec.name, spec.name) for spec in self.inputs]
                raise _of_rows(error, columns, begin, end) from error
            for name, array in answers.items():
                part = self._answers(name, array, end - begin)
                if name not in results:
                    results[name] = np.empty((num_rows, *part.shape[1:]), part.dtype)
                elif results[name].shape[1:] != part.shape[1:]:
                    raise _ragged(name, results[name].shape[1:], begin, part.shape[1:])
                results[name][begin:end] = part
        return results

    def _pieces(self, num_rows: int) -> Iterator[tuple[int, int]]:
        """Return the bounds of pieces of so many rows."""
        for begin in range(0, num_rows, self._rows):
            yield begin, min(begin + self._rows, num_rows)

    def _piece(
        self, spec: TensorSpec, names: Mapping[str, str], values: Column, begin: int
    ) -> Column:
        """Rows of one execution, filled up."""
        column = names.get(spec.name, spec.name)
        rows = cast_rows(spec, column, values, begin, real=self.model.quantize_inputs)
        if not self._is_fixed or len(rows) == self._rows:
            return rows
        batch = np.empty((self._rows, *rows.shape[1:]), rows.dtype)
        batch[: len(rows)] = rows
        return fill_up(batch, len(rows))

    def _answers(self, name: str, array: Array, num_rows: int) -> Array:
        """The rows of an output that were asked for."""
        if not self._has_rows[name]:
            return array[np.newaxis]
        whole = self._rows if self._is_fixed else num_rows
        if not array.ndim or array.shape[0] != whole:
            raise _unsuitable(
                f"output '{name}' has not as many rows as the inputs",
                f"{format_shape(array.shape)} of {whole} rows",
            )
        return array[:num_rows]

    def _empty(self) -> dict[str, Array]:
        """Answers to no rows; of dimensions that are not known, 0."""
        return {
            spec.name: np.empty((0, *self._row_shape(spec)), self._dtype(spec))
            for spec in self.outputs
        }

    def _row_shape(self, spec: TensorSpec) -> tuple[int, ...]:
        shape = tuple([n or 0 for n in spec.shape or ()])
        return shape[1:] if self._has_rows[spec.name] else shape

    def _dtype(self, spec: TensorSpec) -> np.dtype[np.generic]:
        """The type of an answer."""
        if self.model.dequantize_outputs and spec.data_type.is_quantized:
            return np.dtype(np.float32)
        return spec.data_type.dtype


def _of_rows(error: ArmpyError, columns: Sequence[str], begin: int, end: int) -> ArmpyError:
    # A copy: a backend may raise the same error again for other rows.
    row_error = copy(error)
    kind = "column" if len(columns) == 1 else "columns"
    where = f"{kind} {', '.join(map(repr, columns))}, rows {begin} to {end - 1}"
    row_error.where = f"{where}, {error.where}" if error.where else where
    return row_error


def _ragged(
    name: str, first: tuple[int, ...], begin: int, other: tuple[int, ...]
) -> InvalidArgumentError:
    """The error for answers that are not a table."""
    return InvalidArgumentError(
        f"output '{name}' has rows of different shapes",
        where="Predictor",
        expected=format_shape(first),
        actual=f"{format_shape(other)} from row {begin} on",
        fix="Choose outputs of one shape with output_columns",
    )

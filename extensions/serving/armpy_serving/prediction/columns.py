"""Columns: what tables hold, as rows that a model takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.tensor import format_shape

Column: TypeAlias = npt.NDArray[Any]  # Any: of numbers, of lists, of bytes

_MEND = "Drop or mend such rows before"


def read_columns(
    batch: object, specs: Sequence[TensorSpec], names: Mapping[str, str]
) -> tuple[dict[str, Column], dict[str, object], int]:
    """Divide a batch into what a model takes and the rest.

    Parameters
    ----------
    batch : mapping of str to array_like
        Columns of as many rows each.
    specs : sequence of TensorSpec
        The model's inputs.
    names : mapping of str to str
        The column of each tensor; those that are missing are called as the tensor.

    Returns
    -------
    taken : dict of str to ndarray
        Taken columns by tensor.
    others : dict of str to object
        Other columns by name, as they came.
    num_rows : int

    Raises
    ------
    InvalidArgumentError
        If a column is missing, or they differ in their number of rows.
    """
    if not hasattr(batch, "keys") or not hasattr(batch, "__getitem__"):
        raise InvalidArgumentError(
            "the batch is not a table of columns",
            where="Predictor",
            expected="a mapping of names to arrays",
            actual=type(batch).__name__,
            fix="With Ray Data, ask for batch_format='numpy'",
        )
    columns = {str(name): batch[name] for name in batch.keys()}  # noqa: SIM118 - DataFrames as well
    wanted = {spec.name: names.get(spec.name, spec.name) for spec in specs}
    missing = [column for column in wanted.values() if column not in columns]
    if missing:
        raise InvalidArgumentError(
            f"columns are missing: {', '.join(map(repr, missing))}",
            where="Predictor",
            expected=", ".join(f"'{column}'" for column in wanted.values()),
            actual=", ".join(f"'{column}'" for column in columns) or "no columns",
            fix="Say which column is which input: input_columns={'column': 'tensor'}",
        )
    counts = {column: _length(column, values) for column, values in columns.items()}
    used = {tensor: _array(column, columns[column]) for tensor, column in wanted.items()}
    if len({*counts.values()}) > 1:
        raise InvalidArgumentError(
            "the columns differ in their number of rows",
            where="Predictor",
            actual=", ".join(f"'{name}' has {count}" for name, count in counts.items()),
        )
    others = {name: values for name, values in columns.items() if name not in wanted.values()}
    return used, others, next(iter(counts.values()))


def _length(name: str, column: Any) -> int:  # Any: whatever the engine has for columns
    """The number of rows of a column."""
    try:
        return len(column)
    except TypeError as error:
        raise InvalidArgumentError(
            "the column has no rows",
            where=f"column '{name}'",
            expected="an array of one dimension at least",
            actual=type(column).__name__,
        ) from error


def _array(name: str, column: object) -> Column:
    """A column as an array, of objects where its rows have to be looked at one by one."""
    # NumPy would take bytes for texts, whose trailing zeros it cuts, and drop masks.
    if isinstance(column, list | tuple) and any(
        _is_bytes(row) or _is_masked(row) for row in column
    ):
        return np.fromiter(column, object, len(column))
    if _is_masked(column):
        masked = np.ma.getmaskarray(column).reshape(len(column), -1).any(axis=1)
        raise InvalidArgumentError(
            "the mask would be lost",
            where=f"column '{name}', row {int(masked.argmax())}",
            expected="no masked elements",
            actual=f"{int(masked.sum())} of {len(column)} rows with some",
            fix="Drop such rows, or fill them with numpy.ma.filled",
        )
    values = np.asarray(column)
    if values.dtype.kind == "S":
        raise InvalidArgumentError(
            "NumPy has cut trailing zeros of the rows, which are bytes",
            where=f"column '{name}'",
            expected="dtype object",
            actual=f"dtype {values.dtype}",
            fix="Make the column with dtype=object, or give a list of bytes",
        )
    return values


def _is_masked(values: object) -> TypeGuard[np.ma.MaskedArray[Any, Any]]:
    """Return whether something is masked in an array of a column or row."""
    return isinstance(values, np.ma.MaskedArray) and bool(np.ma.is_masked(values))


def _is_bytes(row: object) -> TypeGuard[bytes | bytearray | memoryview]:
    # Views of other formats say what their elements are.
    return isinstance(row, bytes | bytearray) or (isinstance(row, memoryview) and row.format == "B")


def cast_rows(spec: TensorSpec, column: str, values: Column, begin: int, *, real: bool) -> Column:
    """Rows of a column as a tensor, of its type and shape.

    Parameters
    ----------
    spec : TensorSpec
        Tensor whose first dimension is the rows.
    column : str
        Name for messages, as `begin` is.
    values : ndarray, of rows of its shape, flat rows, or objects
    begin : int
        The number of the first row.
    real : bool
        Whether the model quantises real numbers.

    Returns
    -------
    ndarray, shape (rows, ...), dtype of the tensor (float32 where the model quantises)
        Over the memory of `values` wherever possible.

    Raises
    ------
    InvalidArgumentError
        If something would be lost, or shapes do not fit.
    """
    where = f"column '{column}', rows {begin} to {begin + len(values) - 1}"
    if values.dtype == object:
        values = _stacked(spec, values, column, begin)
    values = _shaped(spec, values, where)
    dtype = np.dtype(spec.data_type.dtype)
    if values.dtype == dtype:
        return values
    if spec.data_type.is_quantized and real and values.dtype.kind == "f":
        values = _cast(spec, values, np.dtype(np.float32), where)
        _check_finite(spec, values, column, begin)
        return values
    return _cast(spec, values, dtype, where)


def _stacked(spec: TensorSpec, values: Column, column: str, begin: int) -> Column:
    """Rows that are objects, lists or bytes, as one array."""
    rows: list[Column] = []
    for number, value in enumerate(values, begin):
        try:
            row = _row(spec, value)
        except (TypeError, ValueError) as error:
            raise _bad_row(spec, column, number, str(error)) from error
        if row.dtype == object or row.dtype.kind not in "biufc":
            raise _bad_row(spec, column, number, f"{type(value).__name__} {value!r:.40}")
        if rows and row.shape != rows[0].shape:
            actual = f"{format_shape(row.shape)}, where row {begin} has "
            raise _bad_row(spec, column, number, actual + format_shape(rows[0].shape))
        rows.append(row)
    return np.stack(rows)


def _row(spec: TensorSpec, value: object) -> Column:
    """One row; nested lists come as objects in objects."""
    if _is_bytes(value):
        return np.frombuffer(value, spec.data_type.dtype)
    if _is_masked(value):
        raise ValueError("masked elements")
    row = np.asarray(value)
    return np.array(row.tolist()) if row.dtype == object and row.ndim else row


def _bad_row(spec: TensorSpec, column: str, number: int, actual: str) -> InvalidArgumentError:
    """The error for a row that cannot be part of an array."""
    return InvalidArgumentError(
        "a row is not like the tensor",
        where=f"column '{column}', row {number}",
        expected=f"elements of {spec.info}",
        actual=actual,
        fix=_MEND,
    )


def _shaped(spec: TensorSpec, values: Column, where: str) -> Column:
    """Rows of the tensor's shape; flat ones are folded where only one way is possible."""
    row = (spec.shape or ())[1:]
    actual = values.shape[1:]
    if len(actual) == len(row) and all(
        wanted in (None, size) for wanted, size in zip(row, actual, strict=True)
    ):
        return values
    known = [size for size in row if size is not None]
    is_flat = len(actual) < 2 and len(known) == len(row)
    if is_flat and math.prod(actual) == math.prod(known):
        return values.reshape(len(values), *known)
    raise InvalidArgumentError(
        "the rows are of another shape",
        where=where,
        expected=f"rows of {format_shape(row)} for input '{spec.name}', or the same flat",
        actual=f"{len(values)} rows of {format_shape(actual)}",
        fix="Resize or reshape the rows before they are passed",
    )


def _cast(spec: TensorSpec, values: Column, dtype: np.dtype[Any], where: str) -> Column:
    """Elements of another type, if no value is lost; real numbers are rounded to floats."""
    kinds = values.dtype.kind + dtype.kind
    if values.dtype.newbyteorder("=") == dtype:
        return values.astype(dtype)
    if kinds[0] == "f" and dtype.kind == "f":
        # Tables have 64 bits for every real number, whatever its type: rounding is right.
        with np.errstate(over="ignore"):
            cast_values = values.astype(dtype)
        if np.array_equal(np.isfinite(cast_values), np.isfinite(values)):
            return cast_values
    elif kinds[0] in "biu" and kinds[1] in "iuf":
        cast_values = values.astype(dtype)
        # Back again: wrapped integers, and those that a float has no room for, are others then.
        if np.array_equal(cast_values.astype(values.dtype), values) and _same_signs(
            cast_values, values
        ):
            return cast_values
    raise InvalidArgumentError(
        "the column's type is not the tensor's, and its values do not fit",
        where=where,
        expected=f"{dtype} for input '{spec.name}'",
        actual=f"{values.dtype}{_span(values)}",
        fix=_fix(spec, values, dtype),
    )


def _check_finite(spec: TensorSpec, values: Column, column: str, begin: int) -> None:
    """Check numbers that are to be quantised here, where their row is known."""
    finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not finite.all():
        raise InvalidArgumentError(
            "a number cannot be quantised",
            where=f"column '{column}', row {begin + int(finite.argmin())}",
            expected=f"finite numbers for input '{spec.name}'",
            actual="NaN or infinity",
            fix=_MEND,
        )


def _same_signs(cast_values: Column, values: Column) -> bool:
    """Return whether no number has become negative, or ceased to be."""
    return bool(np.array_equal(cast_values < 0, values < 0)) if values.dtype.kind != "b" else True


def _span(values: Column) -> str:
    if not values.size or values.dtype.kind not in "iuf":
        return ""
    return f" of {values.min()} to {values.max()}"


def _fix(spec: TensorSpec, values: Column, dtype: np.dtype[Any]) -> str:
    """Advice for a column that does not fit."""
    if values.dtype.kind == dtype.kind == "f":
        return f"{dtype} has no numbers so large. {_MEND}"
    if spec.data_type.is_quantized and values.dtype.kind == "f":
        return "Give quantize_inputs=True to have real numbers quantised"
    return f"Convert the column to {np.dtype(spec.data_type.dtype)} before"

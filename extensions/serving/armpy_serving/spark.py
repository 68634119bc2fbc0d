"""Spark: models as functions of columns. Needs the extra ``spark``, and Java."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql import types

from armpy.core.arguments import check_whole
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.ops.operation import Array
from armpy_serving.predictor import Predictor

_TYPES = {
    "bool": types.BooleanType,
    "int8": types.ByteType,
    "int16": types.ShortType,
    "int32": types.IntegerType,
    "int64": types.LongType,
    # Spark's whole numbers have signs: the next larger ones hold those without.
    "uint8": types.ShortType,
    "uint16": types.IntegerType,
    "uint32": types.LongType,
    "float16": types.FloatType,
    "float32": types.FloatType,
    "float64": types.DoubleType,
}


def predict_udf(model: object, *, batch_size: int = 1024, **arguments: Any) -> Any:
    """A function of Spark's columns that runs a model on every row.

    Parameters
    ----------
    model : path or bytes-like
        Small, or on every node at the same path, or sent there by `SparkContext.addFile`.
    batch_size : int
        Rows of each call.
    **arguments
        Arguments of `armpy_serving.Predictor`; ``input_columns`` has no meaning, as columns are
        given in order. ``output_columns`` names the fields where there are several outputs.

    Returns
    -------
    callable
        Function that takes a column for each input, in the model's order: arrays of as many numbers
        as a row has, or numbers. Its result is an array of a row's numbers, or a number where there
        is one; where the model has several outputs, a struct of these.

    Raises
    ------
    InvalidArgumentError
        If an argument cannot be used, or the model's rows are of no fixed shape or of a type that
        Spark does not have.
    ArmpyError
        As `armpy.load`: the model is loaded here as well, for its inputs and outputs.

    Notes
    -----
    The type of the result and the shapes of inputs come from the model. Spark itself stacks the
    rows of a batch: it fails at nulls and at rows of other lengths, and nulls within an array
    become NaN. Drop them before.

    Workers of Spark are kept, and the model with them; a row that is run again, as its worker died,
    has the same answer.

    Examples
    --------
    >>> scores = armpy_serving.spark.predict_udf("model.tflite")    # doctest: +SKIP
    >>> table.withColumn("scores", scores("pixels"))                # doctest: +SKIP
    """
    check_whole(batch_size, "predict_udf: batch_size", least=1)
    predictor = Predictor(model, **arguments)
    rows = predictor.prepare()
    chosen = arguments.get("output_columns") or {spec.name: spec.name for spec in rows.outputs}
    specs = {spec.name: spec for spec in rows.outputs}
    outputs = {column: specs[tensor] for column, tensor in chosen.items()}
    shapes = [_row_shape(spec) for spec in rows.inputs]
    real = rows.model.dequantize_outputs
    return predict_batch_udf(
        _PredictFactory(predictor, [spec.name for spec in rows.inputs], [*outputs]),
        return_type=_return_type(outputs, real),
        batch_size=batch_size,
        # Of a row of one number, Spark makes no array.
        input_tensor_shapes=[None if math.prod(shape) == 1 else [*shape] for shape in shapes],
    )


class _PredictFactory:
    """Factory of what a worker of Spark calls for each batch."""

    def __init__(self, predictor: Predictor, inputs: list[str], outputs: list[str]) -> None:
        self._predictor = predictor
        self._inputs = inputs
        self._outputs = outputs

    def __call__(self) -> Callable[..., Array | dict[str, Array]]:
        """The function, with the model loaded."""
        self._predictor.prepare()
        return self._predict

    def _predict(self, *arrays: Array) -> Array | dict[str, Array]:
        """Answer a batch."""
        answers = self._predictor(dict(zip(self._inputs, arrays, strict=True)))
        flat = {name: _flat(answers[name]) for name in self._outputs}
        return flat if len(flat) > 1 else flat[self._outputs[0]]


def _flat(answers: Array) -> Array:
    """Answers as Spark has them: rows of numbers, or numbers."""
    size = math.prod(answers.shape[1:])
    if answers.dtype == np.float16:
        answers = answers.astype(np.float32)
    return answers.reshape(len(answers)) if size == 1 else answers.reshape(len(answers), size)


def _row_shape(spec: TensorSpec) -> tuple[int, ...]:
    row = (spec.shape or (None, None))[1:]
    known = tuple([size for size in row if size is not None])
    if len(known) < len(row):
        raise InvalidArgumentError(
            f"the rows of '{spec.name}' are of no fixed shape",
            where="predict_udf",
            actual=str(spec.info),
            fix="Fix them with Model.reshape, and save the model",
        )
    return known


def _return_type(outputs: Mapping[str, TensorSpec], real: bool) -> Any:  # Any: Spark's own
    kinds = {name: _type(spec, real) for name, spec in outputs.items()}
    if len(kinds) == 1:
        return next(iter(kinds.values()))
    return types.StructType([types.StructField(name, kind) for name, kind in kinds.items()])


def _type(spec: TensorSpec, real: bool) -> Any:  # Any: Spark's own
    """The type of one output's rows."""
    dtype = "float32" if real and spec.data_type.is_quantized else spec.data_type.dtype.name
    if dtype not in _TYPES:
        raise InvalidArgumentError(
            f"Spark has no type for output '{spec.name}'",
            where="predict_udf",
            expected=", ".join(_TYPES),
            actual=dtype,
        )
    kind = _TYPES[dtype]()
    # One answer for several rows has no row of its own: what a model says of all has none.
    return kind if math.prod(_row_shape(spec)) == 1 else types.ArrayType(kind)

"""Predictor: one picklable callable that runs tables through a model, for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from armpy.core.arguments import check_whole
from armpy.errors import InvalidArgumentError
from armpy_serving.prediction.columns import read_columns
from armpy_serving.prediction.model_source import ModelSource
from armpy_serving.prediction.process_models import process_models

if TYPE_CHECKING:
    from armpy.execution.arrays.tensor_spec import TensorSpecs
    from armpy_serving.prediction.row_model import RowModel


class Predictor:
    """Answers batches of rows, in any process that it is sent to.

    Parameters
    ----------
    model : path or bytes-like
        Model as for `armpy.load`. A path is small to send, and has to lead to the same file on
        every node; bytes are sent along, and written once per node.
    input_columns : mapping of str to str, optional
        The input that each column is for: ``{"pixels": "image"}``. Other inputs are columns of
        their own names.
    output_columns : mapping of str to str, optional
        The output that each column is made of; all of them, by their names, if left out.
    max_rows : int, optional
        The most rows that are executed at once. Up to 32, as long as their inputs and outputs take
        no more than 16 MiB, if left out. A file that fixes several rows has the last word.
    num_threads : int, optional
        Number of threads; by default, the engine's assignment to the process; see
        `armpy_serving.prediction.thread_budget.assigned_threads`.
    keep_inputs : bool
        Whether the columns that were read are handed on as well.
    **options
        Further ones of `armpy.load`, such as ``backends`` and ``quantize_inputs``.

    Raises
    ------
    InvalidArgumentError
        If an argument cannot be used.
    ParserError
        If the file cannot be read.

    Notes
    -----
    Nothing is loaded before the first call in a process, or `prepare`. The first process of a node
    compiles the model into a file, under a lock; all of them map that file, so that the weights are
    in the node's memory once. Threads may call it side by side.

    Rows are run in pieces of one size: a piece is a part of the batch, in place where type and
    layout allow it, and the last one is filled up with its first row. Batches are never written to.

    Columns may hold arrays, flat rows, lists or bytes. 64-bit real numbers, which tables have for
    all, are rounded to the model's type; whole numbers are taken if each of them fits; all else
    is an error.

    Examples
    --------
    >>> predictor = armpy_serving.Predictor("model.tflite", num_threads=1)  # doctest: +SKIP
    >>> predictor({"image": images, "id": ids})["scores"]                   # doctest: +SKIP
    """

    def __init__(
        self,
        model: object,
        *,
        input_columns: Mapping[str, str] | None = None,
        output_columns: Mapping[str, str] | None = None,
        max_rows: int | None = None,
        num_threads: int | None = None,
        keep_inputs: bool = False,
        **options: Any,  # Any: as `armpy.load` takes them
    ) -> None:
        if max_rows is not None:
            check_whole(max_rows, "Predictor: max_rows", least=1, most=1 << 20)
        self._source = ModelSource(model, max_rows, {"num_threads": num_threads, **options})
        self._columns = _turned(input_columns)
        self._output_columns = None if output_columns is None else dict(output_columns)
        self._keep_inputs = keep_inputs

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a batch.

        Parameters
        ----------
        batch : mapping of str to array_like, or DataFrame
            Columns, of one row for each item.

        Returns
        -------
        dict of str to ndarray
            Columns that the model does not take, as they came, and its outputs, of as many rows.

        Raises
        ------
        InvalidArgumentError
            If a column is missing or does not fit.
        ArmpyError
            As `armpy.load`, when the model is made.
        """
        rows = self.prepare()
        used, others, num_rows = read_columns(batch, rows.inputs, self._columns)
        if self._keep_inputs:
            others = {**{self._columns.get(n, n): a for n, a in used.items()}, **others}
        return {**others, **self._named(rows.run(used, self._columns, num_rows), others)}

    def prepare(self) -> RowModel:
        """Make the model in this process, unless it is there: errors come before the first batch.

        Raises
        ------
        ArmpyError
            As `armpy.load`.
        """
        rows = process_models.get(self._source.key, self._source.load)
        self._check_names("input", rows.inputs, self._columns)
        if self._output_columns is not None:
            self._check_names("output", rows.outputs, self._output_columns.values())
        return rows

    def _check_names(self, kind: str, specs: TensorSpecs, columns: Any) -> None:  # Any: iterable
        """Check that the model has the tensors that columns are for."""
        known = [spec.name for spec in specs]
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise InvalidArgumentError(
                f"there is no {kind} {', '.join(map(repr, unknown))}",
                where=f"Predictor: {kind}_columns",
                expected=", ".join(map(repr, known)),
                fix="Columns come first: {'column': 'tensor'}",
            )

    def _named(self, results: Mapping[str, Any], others: Mapping[str, object]) -> dict[str, Any]:
        """Outputs by their columns; none may take the place of one that is handed on."""
        names = self._output_columns
        columns = results if names is None else {c: results[t] for c, t in names.items()}
        if doubled := [column for column in columns if column in others]:
            raise InvalidArgumentError(
                f"the batch has columns {', '.join(map(repr, doubled))} already",
                where="Predictor",
                fix="Name outputs with output_columns={'column': 'tensor'}",
            )
        return dict(columns)

    @property
    def inputs(self) -> TensorSpecs:
        """The model's inputs; their first dimension is the rows that are executed at once."""
        return self.prepare().inputs

    @property
    def outputs(self) -> TensorSpecs:
        """The model's outputs."""
        return self.prepare().outputs

    def __repr__(self) -> str:
        source = self._source
        return f"Predictor({source.path or f'model of digest {source.digest[:12]}'})"


def _turned(columns: Mapping[str, str] | None) -> dict[str, str]:
    """The column of each tensor, of the tensor of each column."""
    columns_by_name = columns or {}
    turned = {tensor: column for column, tensor in columns_by_name.items()}
    if len(turned) < len(columns_by_name):
        raise InvalidArgumentError(
            "two columns are for one input",
            where="Predictor: input_columns",
            actual=str(columns_by_name),
        )
    return turned

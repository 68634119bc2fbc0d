"""Served replicas: a model with its batcher, as one replica of a deployment has it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from armpy import load
from armpy.errors import ModelUnavailableError
from armpy.execution import deadline_in
from armpy.execution.calls.run import as_dict
from armpy.ops.operation import Array
from armpy_serving.batching.batcher import Batcher
from armpy_serving.batching.rows import read_item
from armpy_serving.health import run_ahead
from armpy_serving.metrics import ModelMetrics
from armpy_serving.prediction.row_model import RowModel, with_fixed_rows
from armpy_serving.requests import InferenceRequest
from armpy_serving.served_model import ServedModel

CHECK_WAIT_S = 20.0
"""Time that a check waits for a trial; Serve itself gives a check 30 s."""


class ServedReplica:
    """A model that answers requests, single rows together with others'.

    Parameters
    ----------
    max_batch : int
        1 runs each request by itself.
    options : mapping of str to object
        Options of `armpy.load`.
    metrics : ModelMetrics, optional
        Metrics of `ServedModel`.

    Raises
    ------
    ArmpyError
        As `armpy.load`; InvalidArgumentError if rows cannot be run together.
    """

    def __init__(
        self,
        path: str,
        name: str,
        max_batch: int,
        max_wait_ms: float,
        options: Mapping[str, Any],
        metrics: ModelMetrics | None = None,
    ) -> None:
        self._model = load(path, **options)
        run_ahead(self._model)
        self._batcher = None
        self._max_batch = max_batch
        if max_batch > 1:
            self._batcher = Batcher(self._model, max_batch, max_wait_ms, when_full="error")
        # One thread, as executions use the replica's processors: the next table waits for its turn.
        self._tables = ThreadPoolExecutor(1, "armpy-tables")
        self.served = ServedModel(self._model, name, "", metrics, self._run)

    async def run(
        self, inputs: Mapping[str, Array], request: InferenceRequest | None = None
    ) -> dict[str, Array]:
        """Run one request, beside the event loop.

        Notes
        -----
        The request is queued before this first waits, and `close` waits for all queued ones:
        replacing a replica in between loses no answer.
        """
        asked = request or InferenceRequest(inputs, {})
        return await self.served.run_async(inputs, asked.datatypes, asked.outputs, asked.deadline_s)

    async def _run(
        self, inputs: Mapping[str, Array], deadline_s: float | None = None
    ) -> dict[str, Array]:
        """Run few rows with others', many by themselves, all else as the model takes it."""
        self._check_open()
        arrays = {n: np.atleast_1d(array) for n, array in as_dict("inputs", inputs).items()}
        counts = {len(array) for array in arrays.values()}
        if self._batcher is None or len(counts) != 1:
            return await self._model.run_async(inputs, deadline_s=deadline_s)
        num_rows = counts.pop()
        if 0 < num_rows < self._max_batch:
            return await self._run_together(self._batcher, arrays, num_rows, deadline_s)
        # They fill batches by themselves, and would take the room that single rows of others need.
        ends_s = deadline_in(deadline_s)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._tables, self._run_table, arrays, num_rows, ends_s)

    async def _run_together(
        self,
        batcher: Batcher,
        arrays: Mapping[str, Array],
        num_rows: int,
        deadline_s: float | None,
    ) -> dict[str, Array]:
        """Run rows one by one, in batches with those of other requests."""
        tasks = [
            asyncio.ensure_future(
                batcher.run_async(
                    {name: array[row : row + 1] for name, array in arrays.items()},
                    deadline_s=deadline_s,
                )
            )
            for row in range(num_rows)
        ]
        try:
            answers = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:  # the other rows' answers are not used
                task.cancel()
            raise
        return {name: np.concatenate([a[name] for a in answers]) for name in answers[0]}

    def _run_table(
        self, arrays: Mapping[str, Array], num_rows: int, ends_s: float | None
    ) -> dict[str, Array]:
        """Run many rows, in a thread of tables."""
        # As strict as the batcher is with its rows: a table of Predictor's may be of other types.
        row = {
            name: array[:1] if num_rows else np.zeros((1, *array.shape[1:]), array.dtype)
            for name, array in arrays.items()
        }
        read_item(self._model.inputs, row, self._model.quantize_inputs)
        return self._rows.run(arrays, {}, num_rows, ends_s)

    @cached_property
    def _rows(self) -> RowModel:
        """The model for tables; made by the first one, as many replicas never get any."""
        rows = with_fixed_rows(self._model, self._max_batch)
        return RowModel(rows, self._max_batch, self._model)

    def _check_open(self) -> None:
        """Check that the model can be used."""
        if self._model.is_closed or (self._batcher is not None and self._batcher.is_closed):
            raise ModelUnavailableError("the model was closed", where=self.served.name)

    async def check(self, wait_s: float = CHECK_WAIT_S) -> None:
        """Check that it answers: by its latest answers, else by a run with zeros.

        Raises
        ------
        ModelUnavailableError
            If it cannot answer; see `ModelHealth`.
        """
        self._check_open()
        problem = await asyncio.to_thread(self.served.health.problem, wait_s)
        if problem:
            raise ModelUnavailableError(problem, where=self.served.name)

    def close(self) -> None:
        """Wait until all that is in line has its answer, and unload the model."""
        if self._batcher is not None:
            self._batcher.close()
        self._tables.shutdown()
        self._model.close()

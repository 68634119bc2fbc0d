"""Served replicas: a model with its batcher, as one replica of a deployment has it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armpy.errors import InvalidArgumentError, ModelUnavailableError
from armpy.model.load import load
from armpy.ops.operation import Array
from armpy.serving.batching.batcher import Batcher
from armpy.serving.requests import InferenceRequest
from armpy.serving.served_model import ServedModel

HEALTH_DEADLINE_S = 30.0
"""How long one row may take by which a replica shows that it is alive."""


class ServedReplica:
    """A model that answers requests, single rows together with others'.

    Parameters
    ----------
    path : str
    name : str
    max_batch : int
        1 runs each request by itself.
    max_wait_ms : float
    options : mapping of str to object
        Of `armpy.load`.

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
    ) -> None:
        self._model = load(path, **options)
        self._batcher = None
        if max_batch > 1:
            self._batcher = Batcher(self._model, max_batch, max_wait_ms, when_full="error")
        self.served = ServedModel(self._model, name)
        self.data_types = {spec.name: spec.data_type for spec in self._model.outputs}
        self._has_answered = False

    async def run(
        self, inputs: Mapping[str, Array], request: InferenceRequest | None = None
    ) -> dict[str, Array]:
        """Run one request, beside the event loop.

        Notes
        -----
        It is in line before this first waits, and `close` waits for all that are: whoever takes a
        replica's place in between costs none its answer.
        """
        request = request or InferenceRequest(inputs, {})
        rows = {len(np.atleast_1d(array)) for array in inputs.values()}
        if self._batcher is not None and len(rows) == 1 and rows != {0}:
            self._check_outputs(request.outputs)
            # Each by itself: rows of several requests share a batch, however many each of them has.
            answers = await asyncio.gather(
                *[
                    self._batcher.run_async(
                        {name: np.atleast_1d(a)[row : row + 1] for name, a in inputs.items()},
                        deadline_s=request.deadline_s,
                    )
                    for row in range(rows.pop())
                ]
            )
            names = request.outputs or tuple(self.data_types)
            results = {n: np.concatenate([answer[n] for answer in answers]) for n in names}
        else:
            results = await self.served.run_async(
                inputs, request.datatypes, request.outputs, request.deadline_s
            )
        self._has_answered = True
        return results

    def _check_outputs(self, names: Sequence[str]) -> None:
        """Check that the model has what is asked for."""
        if unknown := [name for name in names if name not in self.data_types]:
            raise InvalidArgumentError(
                "the model has no such output",
                where=f"model '{self.served.name}'",
                expected=", ".join(self.data_types),
                actual=", ".join(map(repr, unknown)),
            )

    async def check(self) -> None:
        """Check that it answers: by what it has answered since the last time, else by a row.

        Raises
        ------
        ModelUnavailableError
            If the model was closed.
        ArmpyError
            What running it raises.
        """
        if self._model.is_closed or (self._batcher is not None and self._batcher.is_closed):
            raise ModelUnavailableError("the model was closed", where=self.served.name)
        if self._has_answered:
            self._has_answered = False
            return
        shapes = [spec.shape or () for spec in self._model.inputs]
        zeros = {
            spec.name: np.zeros([n or 1 for n in shape], spec.data_type.dtype)
            for spec, shape in zip(self._model.inputs, shapes, strict=True)
        }
        await self._model.run_async(zeros, deadline_s=HEALTH_DEADLINE_S)

    def close(self) -> None:
        """Wait until all that is in line has its answer, and unload the model."""
        if self._batcher is not None:
            self._batcher.close()
        self._model.close()

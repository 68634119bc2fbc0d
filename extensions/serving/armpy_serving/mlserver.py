"""Serving with MLServer: models of armpy as its runtimes.

Notes
-----
For MLServer 1.7, with uvloop below 0.22, without which it starts no workers. It has no bytes over
HTTP, and answers data that do not fit their shape with 500 and plain text before armpy sees them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import mlserver
from mlserver.errors import MLServerError
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor, ResponseOutput
from mlserver.utils import get_model_uri

import armpy
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy_serving import requests
from armpy_serving.contents import Array, array_of_bytes, array_of_numbers, numbers_of
from armpy_serving.health import run_ahead
from armpy_serving.protocol import tensor_metadata
from armpy_serving.served_model import ServedModel
from armpy_serving.status import status_of

READY_WAIT_S = 0.1
"""Time that a request for readiness waits for a trial of the model, and others with it."""


class ArmpyRuntime(mlserver.MLModel):
    """A model of armpy in MLServer.

    Notes
    -----
    ``model-settings.json`` names it as ``implementation``, the file as ``parameters.uri``, and
    options of `armpy.load` as ``parameters.extra``.
    """

    async def load(self) -> bool:
        """Load the file."""
        parameters = self.settings.parameters
        options = (parameters and parameters.extra) or {}
        model = await asyncio.to_thread(armpy.load, await get_model_uri(self.settings), **options)
        self.served = ServedModel(model, self.name, self.version or "")
        await asyncio.to_thread(run_ahead, model)
        self.inputs = [MetadataTensor(**tensor_metadata(spec).document()) for spec in model.inputs]
        self.outputs = [
            MetadataTensor(**tensor_metadata(spec).document()) for spec in model.outputs
        ]
        return True

    @property
    def ready(self) -> bool:
        """Return whether requests can be answered; MLServer asks for readiness by it.

        It asks models of its own process, with ``parallel_workers: 0``, not those of its workers,
        and refuses all requests by 400 while it is false, so that one failed request, which may
        have been at fault itself, is not enough.
        """
        return self._is_loaded and not (
            hasattr(self, "served") and self.served.health.problem(READY_WAIT_S, needs_trial=True)
        )

    @ready.setter
    def ready(self, is_loaded: bool) -> None:
        self._is_loaded = is_loaded

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer a request."""
        parameters = payload.parameters.model_dump() if payload.parameters else {}
        try:
            outputs = await self.served.run_async(
                _arrays_of(payload.inputs),
                {tensor.name: tensor.datatype for tensor in payload.inputs},
                [output.name for output in payload.outputs or ()],
                requests.InferenceRequest({}, {}, parameters=parameters).deadline_s,
            )
            outputs_sent = [self._output(name, array) for name, array in outputs.items()]
        except ArmpyError as error:
            raise MLServerError(str(error), status_of(error).http) from error
        return InferenceResponse(
            id=payload.id, model_name=self.name, model_version=self.version, outputs=outputs_sent
        )

    async def unload(self) -> bool:
        """Close the model."""
        await asyncio.to_thread(self.served.model.close)
        return True

    def _output(self, name: str, array: Array) -> ResponseOutput:
        datatype = self.served.output_datatypes[name]
        data = numbers_of(name, array)
        return ResponseOutput(name=name, shape=[*array.shape], datatype=datatype, data=data)


def _arrays_of(tensors: Sequence[Any]) -> dict[str, Array]:  # Any: MLServer's
    """Inputs' arrays by name."""
    arrays: dict[str, Array] = {}
    for tensor in tensors:
        if tensor.name in arrays:
            raise InvalidArgumentError("an input comes twice", where=f"input '{tensor.name}'")
        arrays[tensor.name] = _array_of(tensor)
    return arrays


def _array_of(tensor: Any) -> Array:  # Any: MLServer's
    """An input's array."""
    data = tensor.data.root
    if tensor.datatype == "BYTES" and isinstance(data, list):  # MLServer has taken them apart
        return array_of_numbers(tensor.name, tensor.datatype, tensor.shape, data)
    if isinstance(data, list) and len(data) == 1 and isinstance(data[0], bytes):
        data = data[0]  # raw contents of gRPC
    if isinstance(data, bytes):
        return array_of_bytes(tensor.name, tensor.datatype, tensor.shape, data)
    return array_of_numbers(tensor.name, tensor.datatype, tensor.shape, data)

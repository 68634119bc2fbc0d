"""Models of armpy as KServe has models."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import kserve
from kserve.errors import InvalidInput
from kserve.protocol.infer_type import (
    InferInput,
    InferOutput,
    InferRequest,
    InferResponse,
    to_http_parameters,
)

import armpy
from armpy import Model
from armpy.errors import ModelUnavailableError, QueueFullError
from armpy.execution import Runtime, RuntimeOptions, TensorSpec
from armpy_serving.contents import Array, array_of_bytes, array_of_numbers, check_json
from armpy_serving.health import HealthRules, run_ahead, zero_inputs
from armpy_serving.kserve.errors import kserve_error
from armpy_serving.kserve.messages import answer_of
from armpy_serving.metrics import ModelMetrics
from armpy_serving.protocol import tensor_metadata
from armpy_serving.requests import InferenceRequest, check_output
from armpy_serving.served_model import ServedModel


class ArmpyModel(kserve.Model):
    """A model of armpy for KServe's servers.

    Parameters
    ----------
    name : str
        Name that clients use.
    source : path
        A model file.
    options : mapping of str to object, optional
        Options for `armpy.load`. In place of ``runtime``, ``runtime_options`` are those of a
        runtime that is made for the model, and closed with it.
    max_waiting : int
        Maximum number of requests that wait or run; further ones get status 503.
    rules : HealthRules, optional
        Rules by which the model is ready.
    short_run_s : float
        Runs that take less are a thread pool's, which takes half of what `armpy.Model.run_async`
        takes besides the run; but they cannot be stopped.

    Notes
    -----
    Nothing is computed on the event loop. Pickled, as for KServe's worker processes, it is a
    recipe, and loads again.

    Examples
    --------
    >>> model = ArmpyModel("digits", "digits.tflite")   # doctest: +SKIP
    >>> model.load()                                    # doctest: +SKIP
    >>> kserve.ModelServer().start([model])             # doctest: +SKIP
    """

    def __init__(
        self,
        name: str,
        source: str | Path,
        options: Mapping[str, object] | None = None,
        *,
        max_waiting: int = 1024,
        rules: HealthRules | None = None,
        short_run_s: float = 0.01,
    ) -> None:
        super().__init__(name)
        self.ready: bool = False
        self.source = Path(source)
        self.options = dict(options or {})
        self.max_waiting = max_waiting
        self.rules = rules or HealthRules()
        self.short_run_s = short_run_s
        self.metrics = ModelMetrics(name)
        self.successor: ArmpyModel | None = None
        self._short_bytes = -1
        self._pool: ThreadPoolExecutor | None = None
        self._served: ServedModel | None = None
        self._closing = ExitStack()
        self._running = 0

    @property
    def served(self) -> ServedModel:
        """The model, loaded.

        Raises
        ------
        ModelUnavailableError
            If it is not.
        """
        served = self._served
        if served is None or not self.ready:
            raise ModelUnavailableError(
                "the model is not loaded",
                where=f"model '{self.name}'",
                fix="Load it (/v2/repository/models/NAME/load), or send the request again later",
            )
        return served

    def load(self) -> bool:
        """Load the file, and run the model once if a shape is known for each input.

        Raises
        ------
        ArmpyError
            If it cannot be loaded.

        Notes
        -----
        A plain KServe also calls this for a model that is not healthy, which changes nothing.
        """
        if self._served is not None and self.ready:
            return True
        begin_s = time.perf_counter()
        runtime_options = self.options.get("runtime_options")
        runtime = Runtime(runtime_options) if isinstance(runtime_options, RuntimeOptions) else None
        options = {
            name: value for name, value in self.options.items() if value is not runtime_options
        }
        self._closing = ExitStack()
        if runtime is not None:
            self._closing.enter_context(runtime)
        model = self._closing.enter_context(
            armpy.load(self.source, runtime=runtime, **options)  # type: ignore[arg-type]  # by name
        )
        self._short_bytes = _short_bytes(model, self.short_run_s)
        self._pool = self._closing.enter_context(ThreadPoolExecutor(os.cpu_count()))
        self._served = ServedModel(model, self.name, metrics=self.metrics, rules=self.rules)
        self.metrics.loaded(time.perf_counter() - begin_s)
        self.ready = True
        return True

    async def healthy(self) -> bool:
        """Return whether requests can be answered; see `problem`."""
        return not await self.problem()

    async def problem(self) -> str:
        """Reason why requests cannot be answered; empty if they can."""
        served = self._served
        if served is None or not self.ready:
            return "the model is not loaded"
        # A plain KServe asks before each request: no thread is needed as long as nothing is wrong.
        return served.health.problem(0.0) and await asyncio.to_thread(served.health.problem)

    def start(self) -> None:
        """Nothing: KServe's would call a model ready that is not."""

    def stop(self) -> None:
        """Take no more requests, and close the model when those that run are answered."""
        self.ready = False
        self._close_if_idle()

    def get_input_types(self) -> list[dict[str, object]]:
        """Metadata of the inputs in the protocol's words."""
        return [_plain_metadata(spec) for spec in self.served.model.inputs]

    def get_output_types(self) -> list[dict[str, object]]:
        """Metadata of the outputs in the protocol's words."""
        return [_plain_metadata(spec) for spec in self.served.model.outputs]

    async def infer(self, request: InferenceRequest) -> tuple[ServedModel, dict[str, Array]]:
        """Run a request; cancelling the task stops the run.

        Returns
        -------
        ServedModel
            The one that has run it: this model's, or that of the one in its place.
        dict of str to ndarray

        Raises
        ------
        ArmpyError
            As `ServedModel.run` does, and if too many wait.
        """
        with self.place():
            return await self.infer_in_place(request)

    async def infer_in_place(
        self, request: InferenceRequest
    ) -> tuple[ServedModel, dict[str, Array]]:
        """`infer` a request that has its place already."""
        if self.successor is not None:  # it was on its way when the model was replaced
            return await self.successor.infer(request)
        served = self.served
        return served, await self._run(served, request)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Keep one of the places of `max_waiting`, from before a request's body is read.

        Raises
        ------
        QueueFullError
            If there is none.
        """
        if self._running >= self.max_waiting:
            self.metrics.requested("UNAVAILABLE")
            raise QueueFullError(
                "too many requests wait",
                where=f"model '{self.name}'",
                expected=f"at most {self.max_waiting}",
                fix="Send the request again later, or start more servers",
            )
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self.ready:
                self._close_if_idle()

    async def predict(
        self,
        payload: InferRequest | dict[str, object],
        headers: dict[str, str] | None = None,
        response_headers: dict[str, str] | None = None,
    ) -> Any:  # Any: KServe's answer, or gRPC's
        """Answer a request that KServe has read.

        Raises
        ------
        Exception
            One that KServe knows, or Starlette, for each of armpy's errors; see `kserve_error`.
        """
        if not isinstance(payload, InferRequest):
            raise InvalidInput("Models of armpy speak version 2 of the protocol: /v2/models")
        try:
            request = _request_of(payload)
            served, outputs = await self.infer(request)
            if payload.from_grpc is True:
                return answer_of(served, request, outputs, raw=payload.use_binary_outputs)
            return _response_of(served, payload, request, outputs)
        except Exception as error:
            raise kserve_error(error, is_grpc=payload.from_grpc is True) from error

    def __getstate__(self) -> dict[str, object]:
        """Return the recipe that another process loads it by."""
        return self.__dict__ | {
            "_served": None,
            "_closing": None,
            "_pool": None,
            "_running": 0,
            "metrics": None,
        }

    def __setstate__(self, state: dict[str, object]) -> None:
        """Load it again, if it was loaded."""
        self.__dict__.update(state)
        self.metrics = ModelMetrics(self.name)
        if self.ready:
            self.load()

    async def _run(self, served: ServedModel, request: InferenceRequest) -> dict[str, Array]:
        """Run a request, in the way that costs least."""
        if request.deadline_s is None and self._is_short(request.inputs):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._pool, served.run, request.inputs, request.datatypes, request.outputs
            )
        return await served.run_async(
            request.inputs, request.datatypes, request.outputs, request.deadline_s
        )

    def _is_short(self, inputs: Mapping[str, Array]) -> bool:
        """Return whether a run is so short that it need not be stoppable."""
        return sum(array.nbytes for array in inputs.values()) <= self._short_bytes

    def _close_if_idle(self) -> None:
        """Close a stopped model without requests; on a thread, as it may take its time."""
        served = self._served
        if served is not None and not self._running:
            self._served = None
            threading.Thread(target=self._closing.close, name=f"close {self.name}").start()


def _short_bytes(model: Model, short_run_s: float) -> int:
    """Bytes of inputs up to which runs are short; the model is run with its default shapes."""
    if not run_ahead(model):
        return -1
    zeros = zero_inputs(model)
    begin_s = time.perf_counter()
    model.run(zeros)
    if time.perf_counter() - begin_s >= short_run_s:
        return -1
    # Of some rows more than the default's, too.
    return 4 * sum(array.nbytes for array in zeros.values())


def _plain_metadata(spec: TensorSpec) -> dict[str, object]:
    """Metadata without parameters, for which gRPC's message has no place."""
    metadata = tensor_metadata(spec)
    return {"name": metadata.name, "datatype": metadata.datatype, "shape": [*metadata.shape]}


def _request_of(payload: InferRequest) -> InferenceRequest:
    """The request in armpy's words."""
    wanted = payload.request_outputs or ()
    all_binary = bool(payload.use_binary_outputs)
    for output in wanted:
        check_output(output.name, to_http_parameters(output.parameters or {}))
    return InferenceRequest(
        {tensor.name: _array_of(tensor) for tensor in payload.inputs},
        {tensor.name: tensor.datatype for tensor in payload.inputs},
        tuple(output.name for output in wanted),
        frozenset(
            output.name
            for output in wanted
            if (all_binary if output.binary_data is None else output.binary_data)
        ),
        all_binary and not wanted,
        payload.id or "",
        to_http_parameters(payload.parameters or {}),
    )


def _response_of(
    served: ServedModel,
    payload: InferRequest,
    request: InferenceRequest,
    outputs: Mapping[str, Array],
) -> InferResponse:
    """Convert an answer to KServe's response over HTTP."""
    datatypes = served.output_datatypes
    for name, array in outputs.items():
        if not (request.all_binary or name in request.binary_outputs):
            check_json(name, array)
    return InferResponse(
        payload.id or "",
        served.name,
        [
            InferOutput(name, [*array.shape], datatypes[name], array)
            for name, array in outputs.items()
        ],
        use_binary_outputs=payload.use_binary_outputs,
        requested_outputs=payload.request_outputs,
    )


def _array_of(tensor: InferInput) -> Array:
    """An input's array, not rounded, as KServe's own ``as_numpy`` would make it."""
    # Bytes are there alone of requests over gRPC: of others KServe has made numbers.
    raw = tensor._raw_data
    if raw is not None:
        return array_of_bytes(tensor.name, tensor.datatype, tensor.shape, raw)
    return array_of_numbers(tensor.name, tensor.datatype, tensor.shape, tensor.data)

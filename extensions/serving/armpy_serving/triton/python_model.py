"""Model that Triton's Python backend calls."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from armpy import Model
from armpy.errors import (
    ExecutionCancelledError,
    ExecutionTimeoutError,
    LayerValidationError,
    ModelUnavailableError,
)
from armpy.execution import TensorSpec
from armpy_serving.contents import Array
from armpy_serving.health import ModelHealth, has_state
from armpy_serving.metrics import ModelMetrics
from armpy_serving.status import status_of, text_of
from armpy_serving.triton.batches import TritonCall, count_rows, divided, groups_of, joined
from armpy_serving.triton.metrics_reporter import MetricsReporter
from armpy_serving.triton.settings import InstanceSettings, check_config, threads_per_instance
from armpy_serving.triton.tensors import array_of, tensor_of
from armpy_serving.triton.version_file import version_folder

LOOKS_FROM_S = 0.002
"""Time from which it is asked whether a request is still wanted, which takes a message."""

WATCHES_FROM_S = 0.1
"""Time from which it is asked while the model runs, too."""

WATCHES_EVERY_S = 0.02


class TritonModel:
    """A model as an instance of the server's has it.

    Notes
    -----
    `initialize`, `execute`, `is_ready` and `finalize` are the server's words, which calls them on
    one thread. All requests of one `execute` run as one batch as far as their shapes are equal; if
    a batch fails, its requests run one by one, so that each gets its own answer or error. A model
    with state begins each request with its initial one.

    Examples
    --------
    >>> from armpy_serving.triton import TritonModel as TritonPythonModel  # doctest: +SKIP
    """

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the model for each size of a batch, and run it once.

        Parameters
        ----------
        args : mapping of str to str
            Arguments as the server gives them.

        Raises
        ------
        InvalidArgumentError
            If the configuration, which is one for all versions, is not this model's.
        """
        begin_s = time.perf_counter()
        config = json.loads(args["model_config"])
        self._is_batched = config.get("max_batch_size", 0) > 0
        folder = version_folder(args)
        settings = InstanceSettings.of(folder)
        num_threads = threads_per_instance(config)
        self._sizes = settings.sizes
        # One for each size of a batch: a compiled model runs at once with the shapes that it was
        # made for, and all instances map it. 0 stands for shapes as they come.
        self._models = {n: settings.load(folder, n, num_threads) for n in self._sizes or (0,)}
        model = next(iter(self._models.values()))
        check_config(config, model, folder)
        self._inputs = {spec.name: spec for spec in model.inputs}
        self._outputs = {spec.name: spec for spec in model.outputs}
        self._row_ranks = {s.name: self._row_rank(s) for s in model.inputs}
        self._scalars = {s.name for s in model.outputs if self._row_rank(s) is not None}
        for sized_model in self._models.values():
            _warm_up(sized_model)
        self._has_state = has_state(model)
        # How long the model took last, which decides what is worth while beside it.
        self._last_s = 0.0
        self.metrics = ModelMetrics(args["model_name"], args["model_version"])
        self._healths = {size: ModelHealth(sized) for size, sized in self._models.items()}
        self.metrics.healths = tuple(self._healths.values())
        self.metrics.loaded(time.perf_counter() - begin_s)
        name = args.get("model_instance_name", args["model_name"])
        self._reporter = MetricsReporter(self.metrics, name)
        self._reporter.start()

    def execute(self, requests: Sequence[Any]) -> list[Any]:  # Any: of the server's module
        """Answer requests, each by its outputs or its error.

        Returns
        -------
        list of pb_utils.InferenceResponse
            Answers in the requests' order.
        """
        answers: list[Any] = [None] * len(requests)
        calls = []
        for index, request in enumerate(requests):
            try:
                calls.append(self._read(index, request))
            except Exception as error:  # noqa: BLE001 - the answer of this request alone
                answers[index] = self._refusal(error)
        # Without a batch, arrays have no rows that could be joined.
        groups = groups_of(calls) if self._is_batched else [[call] for call in calls]
        for group in groups:
            self._answer(self._wanted(group, answers), answers)
        return answers

    def is_ready(self) -> bool:
        """Return whether requests can be answered."""
        return not any(health.problem() for health in self._healths.values())

    def finalize(self) -> None:
        """Unload the model."""
        self._reporter.stop()
        for model in self._models.values():
            model.close()

    def _row_rank(self, spec: TensorSpec) -> int | None:
        """A tensor's rank, if the server counts one more: it knows of no scalars."""
        rank = len(spec.shape or ())
        return rank if rank == int(self._is_batched) else None

    def _read(self, index: int, request: Any) -> TritonCall:  # Any: of the server's module
        """A request's arrays, without a copy."""
        inputs = {}
        for tensor in request.inputs():
            name = tensor.name()
            inputs[name] = array_of(tensor, self._inputs[name], self._row_ranks[name])
        timeout_us = request.timeout()
        timeout_s = timeout_us / 1e6 if timeout_us else None
        return TritonCall(
            index, request, inputs, count_rows(inputs) if self._is_batched else 1, timeout_s
        )

    def _wanted(self, group: list[TritonCall], answers: list[Any]) -> list[TritonCall]:
        """Requests whose callers still wait, as far as it is worth while to ask."""
        if self._last_s < LOOKS_FROM_S:
            return group
        wanted = []
        for call in group:
            if call.request.is_cancelled():
                answers[call.index] = self._refusal(_given_up())
            else:
                wanted.append(call)
        return wanted

    def _answer(self, group: Sequence[TritonCall], answers: list[Any]) -> None:
        """Run a group and put its answers to their places."""
        if not group:
            return
        begin_s = time.perf_counter()
        try:
            inputs = joined(group, self._sizes) if self._is_batched else group[0].inputs
            outputs = self._run(group, inputs)
            results = divided(group, inputs, outputs) if self._is_batched else [outputs]
        except Exception as error:  # noqa: BLE001 - each gets its own
            if len(group) == 1:
                answers[group[0].index] = self._refusal(error)
                return
            for call in group:
                self._answer([call], answers)
            return
        took_s = self._last_s = time.perf_counter() - begin_s
        self.metrics.executed(sum(call.rows for call in group), took_s)
        for call, result in zip(group, results, strict=True):
            answers[call.index] = self._response(call, result, took_s)

    def _run(self, group: Sequence[TritonCall], inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model, as long as a client waits for it."""
        size = next(iter(inputs.values())).shape[0] if self._sizes else 0
        model = self._models[size]
        with self._healths[size].watched():
            return self._run_with(model, group, inputs)

    def _run_with(
        self, model: Model, group: Sequence[TritonCall], inputs: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Run the model of a size."""
        if self._has_state:
            model.reset_state()
        if self._last_s < WATCHES_FROM_S and all(call.timeout_s is None for call in group):
            return model.run(inputs)
        timeouts_s = [call.timeout_s for call in group if call.timeout_s is not None]
        deadline_s = max(timeouts_s) if len(timeouts_s) == len(group) else None
        # Copies: a run that cannot be stopped at once still reads these after the server has reused
        # its memory.
        own = {name: np.array(array) for name, array in inputs.items()}
        future = model.start(own, deadline_s=deadline_s)
        while not wait([future], WATCHES_EVERY_S).done:
            if all(call.request.is_cancelled() for call in group):
                future.cancel()
                raise _given_up()
        return future.result()

    def _response(self, call: TritonCall, outputs: Mapping[str, Array], took_s: float) -> Any:
        """The answer of a request, unless it comes too late."""
        if call.timeout_s is not None and took_s > call.timeout_s:
            return self._refusal(
                ExecutionTimeoutError("the request's time was over", where="request")
            )
        limit_bytes = next(iter(self._models.values())).memory_limit_bytes
        try:
            tensors = [
                tensor_of(name, array, self._outputs[name], name in self._scalars, limit_bytes)
                for name, array in outputs.items()
            ]
        except MemoryError as error:
            return self._refusal(error)
        self.metrics.requested()
        return pb_utils.InferenceResponse(output_tensors=tensors)

    def _refusal(self, error: Exception) -> Any:  # Any: of the server's module
        """The answer that is an error, with its code."""
        if any(model.is_closed for model in self._models.values()):
            error = ModelUnavailableError("the model is not loaded any more")
        status = status_of(error)
        self.metrics.requested(status.grpc)
        if status.http == 500:
            pb_utils.Logger.log_error(f"{type(error).__name__}: {error}")
        code = getattr(pb_utils.TritonError, status.triton)
        return pb_utils.InferenceResponse(
            output_tensors=[], error=pb_utils.TritonError(text_of(error), code)
        )


def _given_up() -> ExecutionCancelledError:
    """The error for a request whose caller has gone."""
    return ExecutionCancelledError("the request was cancelled", where="request")


def _warm_up(model: Model) -> None:
    """Run once, so that no request waits for a preparation."""
    if any(shape is None for shape in model.default_shapes):
        return
    try:
        model.warm_up()
    except LayerValidationError as error:
        # Where dimensions are open, the file's own may only stand for "any".
        if all(None not in (spec.shape or ()) for spec in model.inputs):
            raise
        pb_utils.Logger.log_info(f"not run ahead of requests: {error}")

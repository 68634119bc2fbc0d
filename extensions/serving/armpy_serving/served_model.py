"""Served models: requests in, answers out, with each error's status, and all of it counted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from armpy import Model
from armpy.errors import InvalidArgumentError, ModelUnavailableError, did_you_mean
from armpy_serving.contents import Array
from armpy_serving.health import HealthRules, ModelHealth, check_model
from armpy_serving.metrics import ModelMetrics
from armpy_serving.protocol import datatype_of, model_metadata
from armpy_serving.requests import InferenceRequest, read_request, write_answer
from armpy_serving.status import status_of, text_of


class ServedModel:
    """A model as servers call it.

    Parameters
    ----------
    model : Model
        Used by several threads, and not closed.
    name, version : str
        Name and version that clients use.
    metrics : ModelMetrics, optional
        Metrics of a model in whose place it comes, which go on.
    run_async : callable, optional
        Runs what `run_async` is asked for, in place of the model's own: ``(inputs, deadline_s=)``.
    rules : HealthRules, optional
        Rules by which it counts as able to answer.

    Examples
    --------
    >>> served = ServedModel(armpy.load("digits.tflite"), "digits")          # doctest: +SKIP
    >>> status, body, json_length = served.answer(request_body)              # doctest: +SKIP
    """

    def __init__(
        self,
        model: Model,
        name: str,
        version: str = "",
        metrics: ModelMetrics | None = None,
        run_async: Callable[..., Coroutine[Any, Any, dict[str, Array]]] | None = None,
        rules: HealthRules | None = None,
    ) -> None:
        check_model(model, "ServedModel")
        self.model = model
        self._run_async = run_async or model.run_async
        self.name = name
        self.version = version
        self.memory_limit_bytes = model.memory_limit_bytes
        self.health = ModelHealth(model, rules)
        self.metrics = metrics or ModelMetrics(name, version)
        self.metrics.healths = (self.health,)
        self._datatypes = {spec.name: datatype_of(spec.data_type) for spec in model.inputs}
        self.output_datatypes = {spec.name: datatype_of(spec.data_type) for spec in model.outputs}
        self._data_types = {spec.name: spec.data_type for spec in model.outputs}

    @property
    def metadata(self) -> dict[str, object]:
        """Metadata in the protocol's words, as JSON has them."""
        versions = [self.version] if self.version else []
        return model_metadata(self.name, self.model.inputs, self.model.outputs, versions=versions)

    def read(
        self, body: bytes | bytearray | memoryview, header_length: int | None = None
    ) -> InferenceRequest:
        """Read a request's body, and count it if it cannot be read; see `read_request`."""
        with self.metrics.reading():
            return read_request(body, header_length)

    def written(
        self, request: InferenceRequest, outputs: Mapping[str, Array]
    ) -> tuple[bytes, int | None]:
        """The body of a request's answer; see `write_answer`."""
        return write_answer(
            request,
            outputs,
            self._data_types,
            self.name,
            self.version,
            self.memory_limit_bytes,
        )

    def run(
        self,
        inputs: Mapping[str, Array],
        datatypes: Mapping[str, str] | None = None,
        outputs: Sequence[str] = (),
        deadline_s: float | None = None,
    ) -> dict[str, Array]:
        """Run a request.

        Parameters
        ----------
        datatypes : mapping of str to str, optional
            Types of the inputs in the request, which have to be the actual ones.
        outputs : sequence of str
            Outputs that are wanted; all if empty.
        deadline_s : float, optional
            Time limit.

        Raises
        ------
        InvalidArgumentError
            If inputs or outputs are not the model's.
        ModelUnavailableError
            If the model was closed.
        ExecutionTimeoutError
            If it takes longer.
        """
        with self._counted(datatypes, outputs):
            results = self.model.run(inputs, deadline_s=deadline_s)
        return {name: results[name] for name in outputs} if outputs else results

    async def run_async(
        self,
        inputs: Mapping[str, Array],
        datatypes: Mapping[str, str] | None = None,
        outputs: Sequence[str] = (),
        deadline_s: float | None = None,
    ) -> dict[str, Array]:
        """`run` beside an event loop; cancelling the task stops the run."""
        with self._counted(datatypes, outputs):
            results = await self._run_async(inputs, deadline_s=deadline_s)
        return {name: results[name] for name in outputs} if outputs else results

    def answer(
        self, body: bytes | bytearray | memoryview, header_length: int | None = None
    ) -> tuple[int, bytes, int | None]:
        """Answer the body of an HTTP request, be it with an error.

        Parameters
        ----------
        header_length : int, optional
            Value of the header ``Inference-Header-Content-Length``.

        Returns
        -------
        int
            The status of HTTP.
        bytes
        int or None
            Value of that header for the answer; None if the answer is JSON alone.
        """
        try:
            request = self.read(body, header_length)
            results = self.run(
                request.inputs, request.datatypes, request.outputs, request.deadline_s
            )
            return 200, *self.written(request, results)
        except Exception as error:  # noqa: BLE001 - the client gets it, and it is counted
            return status_of(error).http, json.dumps({"error": text_of(error)}).encode(), None

    @contextmanager
    def _counted(
        self, datatypes: Mapping[str, str] | None, outputs: Sequence[str]
    ) -> Iterator[None]:
        """Check a request's fields and count its outcome."""
        begin_s = time.perf_counter()
        self.metrics.began()
        try:
            self._check(datatypes or {}, outputs)
            try:
                with self.health.watched():
                    yield
            except InvalidArgumentError as error:
                if self.model.is_closed:
                    raise self._unavailable() from error
                if error.argument is None:  # about the inputs, with a fix for Python
                    error.fix = (
                        "Send the inputs that the model's metadata name (GET /v2/models/NAME)"
                    )
                raise
        except BaseException as error:
            self.metrics.requested(status_of(error).grpc)
            raise
        finally:
            self.metrics.began(-1)
        self.metrics.requested()
        self.metrics.executed(1, time.perf_counter() - begin_s)

    def _check(self, datatypes: Mapping[str, str], outputs: Sequence[str]) -> None:
        """Check datatypes and names; the model checks all else of the inputs."""
        for name, datatype in datatypes.items():
            expected = self._datatypes.get(name, datatype)
            if datatype != expected:
                raise InvalidArgumentError(
                    "the datatype is not the model's",
                    where=f"input '{name}'",
                    expected=expected,
                    actual=datatype,
                )
        for name in outputs:
            if name not in self._data_types:
                raise InvalidArgumentError(
                    "the model has no such output",
                    where=f"model '{self.name}'",
                    expected=", ".join(self._data_types),
                    actual=repr(name),
                    fix=did_you_mean(name, self._data_types, "Leave outputs out for all of them"),
                )

    def _unavailable(self) -> ModelUnavailableError:
        return ModelUnavailableError(
            "the model is not loaded any more",
            where=f"model '{self.name}'",
            fix="Send the request again, to another version or server",
        )

"""Trials of models in another process, for engines that end theirs on some models."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from armpy.errors import DeadObjectError, UnimplementedError
from armpy.tensor import TensorInfo
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.backend.options import OptionValue
    from armpy.core.processes.worker import Worker

_HANDLER = "armpy.backend.hosting.trials:Trial"
_IDLE_S = 10.0
"""Time without models after which the process ends."""
_TIMEOUT_S = 600.0
"""Longest time for one model, without the time that the process waits for a processor."""


class Trials:
    """A process that compiles and runs models; started when needed, and ended when idle."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._end_timer = threading.Timer(0, self._end)
        self._passed: set[bytes] = set()  # digests of models, with their backends and targets

    def require(
        self,
        backend_id: BackendId,
        engine: Any,  # an IEnginePrograms, whose module imports this one; pickled
        model: bytes,
        about: Mapping[str, OptionValue],  # as for `IEnginePrograms.compile`
        inputs: Sequence[TensorInfo],
        outputs: Sequence[TensorInfo],
    ) -> None:
        """Compile a model and run it on zeros, unless that has succeeded before.

        Raises
        ------
        ArmpyError
            If the engine refuses it.
        UnimplementedError
            If the process ends or hangs, or cannot be started.
        """
        from armpy.core.processes.worker import Worker  # noqa: PLC0415 - few engines need one

        digest = hashlib.sha256(model)
        digest.update(repr((backend_id, *about.items())).encode())
        with self._lock:
            if digest.digest() in self._passed:
                return
            self._end_timer.cancel()
            try:
                if self._worker is None or not self._worker.is_running:
                    self._worker = Worker(_HANDLER, where=backend_id)
            except OSError as error:
                text = f"no process can be started to try the model in: {error}"
                raise UnimplementedError(text, where=backend_id) from error
            worker = self._worker
            request = engine, model, dict(about), tuple(inputs), tuple(outputs)
            try:
                worker.request(request, timeout_s=_TIMEOUT_S, is_own_time=True)
            except DeadObjectError as error:
                text = f"the engine does not survive the model: {worker.reason}"
                raise UnimplementedError(text, where=backend_id) from error
            finally:
                self._end_timer = threading.Timer(_IDLE_S, self._end)
                self._end_timer.daemon = True
                self._end_timer.start()
            self._passed.add(digest.digest())

    def _end(self) -> None:
        """End the process until it is needed again."""
        with self._lock:
            if self._worker is not None:
                self._worker.stop()
                self._worker = None


TRIALS = Trials()
"""Those of all hosted backends."""


class Trial:
    """Handler that compiles and runs models in the process."""

    def answer(
        self,
        request: Any,  # the arguments of `Trials.require` but the first
        attachments: object,
    ) -> Mapping[str, object]:
        """Compile and run one."""
        engine, model, about, *sides = request
        inputs, outputs = ([info.data_type.zeros(info.known_shape) for info in x] for x in sides)
        engine.compile(model, about).execute(inputs, outputs)
        return {}

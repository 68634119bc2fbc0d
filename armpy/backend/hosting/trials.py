"""Trials of models in another process, for engines that end theirs on some models."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from armpy.errors import DeadObjectError, UnimplementedError
from armpy.tensor import TensorInfo
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.backend.hosting.engine import IEnginePrograms
    from armpy.backend.options import OptionValue
    from armpy.core.processes.worker import Worker

_HANDLER = "armpy.backend.hosting.trials:Trial"
_TIMEOUT_S = 600.0
"""Longest time for one model, without the time that the process waits for a processor."""


class Trials:
    """A process that compiles and runs models; started when it is needed, and after its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def require(
        self,
        backend_id: BackendId,
        engine: IEnginePrograms,  # importable by the name of its class
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
            if digest.digest() in _passed:
                return
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
            _passed.add(digest.digest())


_passed: set[bytes] = set()
"""Digests of models, with their backends and targets, that a process has run."""
_shared: WeakValueDictionary[str, Trials] = WeakValueDictionary()


def shared_trials() -> Trials:
    """Return the trials of all preparations under way; their process ends with the last one."""
    return _shared.setdefault("", Trials())


class Trial:
    """Handler that compiles and runs models in the process."""

    def answer(
        self,
        request: tuple[
            IEnginePrograms,
            bytes,
            Mapping[str, OptionValue],
            Sequence[TensorInfo],
            Sequence[TensorInfo],
        ],
        attachments: object,
    ) -> Mapping[str, object]:
        """Compile and run one."""
        engine, model, about, *sides = request
        inputs, outputs = ([info.data_type.zeros(info.known_shape) for info in x] for x in sides)
        engine.compile(model, about).execute(inputs, outputs)
        return {}

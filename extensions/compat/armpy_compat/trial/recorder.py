"""Record of one run of a program: its models, calls, answers, and what it lacked."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy.typing as npt

from armpy.core.resident_memory import resident_bytes
from armpy_compat.trial.values import Arrays, arrays_of, digest_of, shapes_of

MOST_CALLS = 10_000
"""Calls that are recorded one by one; of further ones, the number."""
MOST_BYTES = 256 << 20
"""Bytes of answers that are kept; of further ones, digests."""
_MOST_ERRORS = 20
_END_BYTES = 1 << 16

Values = Callable[..., object]
"""Values of a call by the object that is called, the result, and the call's arguments."""


class Recorder:
    """What a program does with an engine.

    Parameters
    ----------
    folder : str
        Folder for ``record.json`` and ``answers.bin``.
    began_s : float
        When the process was started, in seconds of `time.time`.

    Notes
    -----
    Times of calls are those of the engine alone. What the recorder itself takes, to copy and hash
    arrays, is subtracted from the times of the program. Forked children of the program, which share
    its open files, record nothing.
    """

    def __init__(self, folder: str, began_s: float) -> None:
        self._folder, self._began_s = folder, began_s
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._thread = threading.local()
        # Until exit, and without a buffer, which forked children would write, too.
        self._answers = open(os.path.join(folder, "answers.bin"), "wb", 0)  # noqa: SIM115
        self._num_bytes = 0
        self._placements: dict[int, Callable[[], object]] = {}
        self._indexes: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._models: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._num_unrecorded = 0
        self._aside_s = self._aside_processor_s = 0.0
        self._first_answer_s: float | None = None
        self._missing: list[str] = []
        self._errors: list[dict[str, str]] = []
        self.facts: dict[str, object] = {}
        """Further members of the record."""

    # What programs call.

    def watch_opening(
        self,
        owner: type,
        engine: str,
        source: Callable[..., object],
        placement: Callable[[Any], object],  # Any: an object of `owner`
        name: str = "__init__",
    ) -> None:
        """Record each model that a method opens.

        Parameters
        ----------
        owner : type
        engine : str
            Name of the engine for people.
        source : callable
            Path or bytes of the model by the method's arguments, without ``self``.
        placement : callable
            Where armpy placed the layers of an opened model. It fails on other engines.
        name : str
            A class method, which returns the opened model, unless it is ``__init__``.
        """
        original = getattr(owner, name)

        @wraps(original)
        def watched(*arguments: Any, **named: Any) -> Any:  # Any: the engine's own
            start = time.perf_counter()
            try:
                result = original(*arguments, **named)
            except Exception as error:
                self.add_error(f"{engine}, opening a model", error)
                raise
            took_s = time.perf_counter() - start
            opened = arguments[0] if name == "__init__" else result
            given = arguments[1:] if name == "__init__" else arguments
            with self._aside():
                model = guarded(source, *given, **named)
                self.add_model(opened, engine, model, took_s, placement)
            return result

        setattr(owner, name, watched if name == "__init__" else staticmethod(watched))

    def watch_call(
        self,
        owner: type,
        name: str,
        engine: str,
        inputs: Values | None,
        outputs: Values | None,
        model_of: Callable[..., object] = lambda instance, *_, **__: instance,
    ) -> None:
        """Record each call of a method.

        Parameters
        ----------
        inputs, outputs : callable, optional
            Values by the object, the result (None for inputs) and the arguments.
        model_of : callable
            The object that `add_model` was called with, by the same.
        """
        original = getattr(owner, name)

        @wraps(original)
        def watched(instance: Any, *arguments: Any, **named: Any) -> Any:  # Any: the engine's own
            if getattr(self._thread, "is_inside", False):
                return original(instance, *arguments, **named)
            with self._aside():
                given = _arrays(inputs, instance, None, arguments, named)
                before = None if given is None else digest_of(given)
                shapes = None if given is None else shapes_of(given)
            self._thread.is_inside = True
            start = time.perf_counter_ns()
            try:
                result = original(instance, *arguments, **named)
            except Exception as error:
                self.add_error(f"{engine}, {owner.__name__}.{name}", error)
                raise
            finally:
                took_ns = time.perf_counter_ns() - start
                self._thread.is_inside = False
            with self._aside():
                after = _arrays(outputs, instance, result, arguments, named)
                model = model_of(instance, result, *arguments, **named)
                self.add_call(model, took_ns / 1000, before, after, shapes)
            return result

        setattr(owner, name, watched)

    # What is recorded.

    def add_model(
        self,
        owner: object,
        engine: str,
        source: object,
        took_s: float,
        placement: Callable[[Any], object],  # Any: `owner`
    ) -> None:
        """Record a model that an object runs from now on."""
        with self._lock:
            name, content = _description(source)
            self._placements[len(self._models)] = partial(_of_living, ref(owner), placement)
            self._models.append(
                {
                    "name": name,
                    "content": content,
                    "engine": engine,
                    "opening_s": took_s,
                    "placement": "",
                }
            )
            self._indexes[owner] = len(self._models) - 1

    def share_model(self, owner: object, other: object) -> None:
        """Count calls of one object as those of the model of another."""
        with self._lock:
            if other in self._indexes:
                self._indexes[owner] = self._indexes[other]

    def add_call(
        self,
        owner: object,
        took_us: float,
        inputs: str | None,
        outputs: Arrays | None,
        shapes: str | None = None,
    ) -> None:
        """Record a call, with a digest of its inputs, its answers, and the shapes of its inputs."""
        if self._is_in_child():
            return
        with self._lock:
            if self._first_answer_s is None:
                self._first_answer_s = time.time() - self._began_s - self._aside_s
            if len(self._calls) >= MOST_CALLS:
                self._num_unrecorded += 1
                return
            index = self._indexes.get(owner, -1)
            if index in self._placements:
                # Some models are placed by the shapes of their first call.
                placement = guarded(self._placements.pop(index))
                self._models[index]["placement"] = "" if placement is None else str(placement)
            call: dict[str, Any] = {
                "model": index,
                "us": took_us,
                "inputs": inputs,
                "shapes": shapes,
            }
            if outputs is not None:
                call["outputs"] = digest_of(outputs)
                size = sum(array.nbytes for array in outputs)
                if self._num_bytes + size <= MOST_BYTES:
                    call["arrays"] = [self._keep(array) for array in outputs]
            self._calls.append(call)

    def _keep(self, array: npt.NDArray[Any]) -> tuple[str, tuple[int, ...], int]:
        """Write an array; its type, shape and place."""
        place = self._num_bytes
        self._answers.write(array.tobytes())
        self._num_bytes += array.nbytes
        return array.dtype.str, array.shape, place

    def add_error(self, where: str, error: Exception) -> None:
        """Record an error that a method of an engine raised."""
        with self._lock:
            text = {"where": where, "type": type(error).__name__, "text": str(error)}
            if len(self._errors) < _MOST_ERRORS and text not in self._errors:
                self._errors.append(text)

    def add_missing(self, name: str) -> None:
        """Record a name that the program asked for and the engine's modules lack."""
        with self._lock:
            if name not in self._missing:
                self._missing.append(name)

    def forget_missing(self, is_there: Callable[[str], bool]) -> None:
        """Leave out missing names that have turned out to be there, such as submodules."""
        self._missing = [name for name in self._missing if not is_there(name)]

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Count what a block takes as the recorder's own time: waiting in the main thread alone."""
        start, processor_start = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self._aside_processor_s += time.thread_time() - processor_start
            if threading.current_thread() is threading.main_thread():
                self._aside_s += time.perf_counter() - start

    def _is_in_child(self) -> bool:
        """Whether this is a forked child of the program."""
        return os.getpid() != self._process

    def write(self) -> None:
        """Write the record, unless this is a forked child of the program."""
        if self._is_in_child():
            return
        with self._lock:
            self._answers.close()
            program_s, processor_s = (
                float(str(self.facts.pop(name, 0.0))) for name in ("program_s", "processor_s")
            )
            record = {
                "version": 1,
                **self.facts,
                "program_s": max(0.0, program_s - self._aside_s),
                "processor_s": max(0.0, processor_s - self._aside_processor_s),
                "first_answer_s": self._first_answer_s,
                "peak_bytes": resident_bytes()[1],
                "models": self._models,
                "calls": self._calls,
                "num_unrecorded": self._num_unrecorded,
                "missing": self._missing,
                "errors": self._errors,
            }
        with open(os.path.join(self._folder, "record.json"), "w", encoding="utf-8") as file:
            json.dump(record, file)


def guarded(ask: Callable[..., object], *arguments: Any, **named: Any) -> Any:
    """Result of a function that looks into a program's objects; None if it fails."""
    try:
        return ask(*arguments, **named)
    except Exception:  # noqa: BLE001 - a recorder must never end the program that it watches
        return None


def _arrays(
    values: Values | None,
    instance: object,
    result: object,
    arguments: tuple[object, ...],
    named: dict[str, object],
) -> Arrays | None:
    """Arrays of a call; None if there are none to be had."""
    if values is None:
        return None
    return guarded(lambda: arrays_of(values(instance, result, *arguments, **named)))  # type: ignore[no-any-return]


def _of_living(owner: ref[object], ask: Callable[[object], object]) -> object:
    """Answer of a function about an object; None if the object is gone."""
    living = owner()
    return None if living is None else ask(living)


def _description(source: object) -> tuple[str, str]:
    """Name of a model for people, and a digest of its size, beginning and end."""
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        ends = data[:_END_BYTES] + data[-_END_BYTES:]
        return f"model of {len(data):,} bytes", _digest(len(data), ends)
    if not isinstance(source, str | os.PathLike):
        return "model", ""
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            ends = file.read(_END_BYTES)
            file.seek(max(0, size - _END_BYTES))
            return os.path.basename(path), _digest(size, ends + file.read(_END_BYTES))
    except OSError:
        return os.path.basename(path), ""


def _digest(size: int, ends: bytes) -> str:
    return blake2b(size.to_bytes(8, "little") + ends, digest_size=16).hexdigest()

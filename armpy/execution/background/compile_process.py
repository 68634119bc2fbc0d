"""The process that compiles for another one, and leaves its results on disk."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any, BinaryIO, NamedTuple

from armpy.compiler.placement import Placement
from armpy.core.file_ownership import cache_directory, make_own_folder
from armpy.core.processes.helper import end_with_owner, end_with_parent, start_sending
from armpy.errors import ArmpyError, BackendError, ParserError
from armpy.store.locks import locked
from armpy.types import BackendId

FAILED_TO_COMPILE = ("compilation", "preparation")
"""Codes of refusals by backends that had taken a layer before."""

_NICENESS = 10
_LOCK = "background.lock"
"""In armpy's cache directory. One process of a user's compiles in the background at a time: it has
all processors that are free, and those that wait for it find its results."""

_CHILD = """\
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from armpy.execution.background.compile_process import main
main(sys.stdin.buffer, int(sys.argv[1]))
"""

_BEAT = b"\0"
"""Written while the process compiles; a pickled answer does not begin with it."""
_BEAT_S = 1.0
_LONGEST_SILENCE_S = 30.0
"""How long a process is waited for that writes nothing, starting included: it is suspended."""
_END_S = 10.0
"""How long a process takes to end at most, once it has answered."""

_log = logging.getLogger("armpy.execution")
_turn = threading.Lock()


def _begin_anew() -> None:
    """Give a forked child a turn that no thread of the parent has."""
    global _turn  # noqa: PLW0603 - a lock cannot be reset
    _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@contextlib.contextmanager
def compile_turn() -> Iterator[None]:
    """Run a block while no other thread, nor, as far as that can be had, another process does."""
    with _turn:
        if why_not_elsewhere():
            yield
        else:
            with locked(Path(cache_directory()) / _LOCK):
                yield


class ChunkQueue(Queue[bytes]):
    """Queue of what a process writes."""


class CompileRequest(NamedTuple):
    """Request to compile in another process."""

    # Makes a model of it that waits for compilations; can be pickled.
    again: Callable[[], Any]  # Any: a model, of which this package knows nothing
    # One per input, where these are not the ones that the model is prepared for anyway.
    shapes: tuple[tuple[int, ...], ...] | None
    backends: tuple[BackendId, ...]  # whose code it is


class CompileOutcome(NamedTuple):
    """Outcome of a request to compile."""

    error: ArmpyError | None = None  # what compiling has raised
    unfit: str = ""  # why the process could not do it, though another one may; empty otherwise


class CompileProcess:
    """A process that compiles on request, at a lower priority, and ends with this one.

    It is a new interpreter, which imports neither ``__main__`` nor anything else of the
    application's. It ends with the application, even if a forked child of that goes on, and so do
    those that backends start in it.

    Raises OSError if no process can be started; pickle.PicklingError, TypeError, AttributeError if
    the request cannot be handed over.
    """

    def __init__(self, request: CompileRequest) -> None:
        message = pickle.dumps([*map(str, sys.path)]) + pickle.dumps(request)
        flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
        flags |= getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CHILD, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that the terminal's interrupts are the application's
            creationflags=flags,
        )
        self._message = message
        self._owner = os.getpid()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def outcome(self) -> CompileOutcome:
        """Hand the request over, and wait for the end, or until the process is suspended."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        chunks = ChunkQueue()
        answer, silence = b"", ""
        try:
            start_sending(process, self._message)
            about = process.stdout, chunks
            threading.Thread(target=_read_chunks, args=about, daemon=True).start()
            while chunk := chunks.get(timeout=_LONGEST_SILENCE_S):
                answer = (answer + chunk).lstrip(_BEAT)
        except (Empty, RuntimeError) as error:  # RuntimeError: the system has no more threads
            process.kill()
            silence = str(error) or f"it has not answered for {_LONGEST_SILENCE_S:g} s"
            text = "process %d, which compiles, is ended: %s; this process compiles"
            _log.warning(text, process.pid, silence)
        code = self._exit_code()
        with contextlib.suppress(OSError):  # it has ended before it had read all
            process.stdin.close()
        if silence:
            return CompileOutcome(unfit=f"process {process.pid} was ended: {silence}")
        if answer:
            kind, content = pickle.loads(answer)  # of armpy's own code
            fields = {kind: content} if kind else {}
            return CompileOutcome(**fields)
        return CompileOutcome(
            BackendError("the process that compiles has ended", actual=f"exit code {code}")
        )

    def _exit_code(self) -> int:
        """Return the exit code of the process once it has closed its output."""
        try:
            return self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()  # briefly: the system ends it, whatever it does

    def end(self) -> None:
        """End it, unless this one was forked from its owner; its compiled parts are kept."""
        if os.getpid() == self._owner:
            self._process.kill()


def why_not_elsewhere() -> str:
    """Why no other process can compile for this one; empty if one can."""
    name = os.path.basename(sys.executable or "").lower()
    # Applications that embed an interpreter would start themselves.
    if not name.startswith(("python", "pypy")) or getattr(sys, "frozen", False):
        return "the application can start no interpreter"
    try:
        folder = cache_directory()
        make_own_folder(folder)
    except (OSError, RuntimeError) as error:
        return f"nothing can be kept on disk: {error}"
    return "" if os.access(folder, os.W_OK) else f"nothing can be kept on disk: {folder}"


def main(stream: BinaryIO, owner: int) -> None:  # pragma: no cover - runs in the process
    """Carry out compilations, answer with the outcome, and end.

    Parameters
    ----------
    stream : binary stream
        Gives a `CompileRequest`, pickled, and ends with the application.
    owner : int
        Process id of the application.
    """
    end_with_parent(owner)
    with os.fdopen(os.dup(1), "wb") as results:
        # Whatever plugins print is not to be taken for the answer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _step_back()
        is_over = threading.Event()
        beating = threading.Thread(target=_beat, args=(results, is_over), daemon=True)
        beating.start()
        answer = pickle.dumps(_answer(stream, owner))
        is_over.set()
        beating.join()
        results.write(answer)
    os._exit(0)  # without waiting for the thread that reads


def _beat(results: BinaryIO, is_over: threading.Event) -> None:  # pragma: no cover - as above
    """Show that the process runs, until it has an answer."""
    with contextlib.suppress(OSError):  # the application has gone
        while not is_over.wait(_BEAT_S):
            results.write(_BEAT)
            results.flush()


def _read_chunks(stream: IO[bytes], chunks: ChunkQueue) -> None:
    """Read a pipe to its end, which is an empty chunk."""
    with stream:
        while chunk := os.read(stream.fileno(), 1 << 16):
            chunks.put(chunk)
    chunks.put(b"")


def _step_back() -> None:  # pragma: no cover - runs in the process
    """Let whatever else the user runs go first."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    # Linux weighs sessions against each other by this, if at all, and processes only within one.
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_NICENESS))


def _answer(stream: BinaryIO, owner: int) -> tuple[str, object]:  # pragma: no cover - as above
    """Return the result of the request: the name of a field of `CompileOutcome` and its value."""
    try:
        request: CompileRequest = pickle.load(stream)
    except Exception as error:  # noqa: BLE001 - whatever the application's own classes raise
        return "unfit", f"{type(error).__name__}: {error}"
    end_with_owner(stream, owner)
    try:
        problem = compile_now(request)
        return ("error", BackendError(problem)) if problem else ("", None)
    except ParserError as error:  # the application has parsed the file: it has changed since
        return "unfit", str(error)
    except Exception as error:  # noqa: BLE001 - worker boundary: it is the answer
        return "error", _portable(error)


def compile_now(request: CompileRequest) -> str:
    """Carry out a compilation in this process; return why a backend could not, or empty."""
    model = request.again()
    if request.shapes is not None:
        names = [spec.name for spec in model.inputs]
        model.prepare(dict(zip(names, request.shapes, strict=True)))
    # A program started from a file is compiled.
    placement = None if model.is_light else model.placement
    return "" if placement is None else failure(placement, request.backends)


def failure(placement: Placement, backends: Collection[BackendId]) -> str:
    """Why none of some backends has compiled its layers; empty if one has.

    A backend may give back some of its layers, as the placement shows; others run there.
    """
    if not placement.layers_by_backend.keys().isdisjoint(backends):
        return ""
    for refusal in placement.refusals:
        if refusal.backend in backends and refusal.code in FAILED_TO_COMPILE:
            return f"{refusal.backend}: {refusal.text}"
    return ""


def _portable(error: Exception) -> ArmpyError:  # pragma: no cover - runs in the process
    """An error as another process can read it."""
    with contextlib.suppress(Exception):
        if isinstance(error, ArmpyError) and isinstance(
            pickle.loads(pickle.dumps(error)), type(error)
        ):
            return error
    return BackendError(f"{type(error).__name__}: {error}")

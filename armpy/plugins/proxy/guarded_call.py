"""The boundary to backends' code: whatever it raises becomes an error that names the backend."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Collection
from copy import copy
from types import CodeType, FrameType
from typing import ParamSpec, TypeVar

from armpy.backend import ReasonCode, Support
from armpy.core.vlog import is_on, vlog
from armpy.errors import ArmpyError, BackendError
from armpy.ops.operation import located
from armpy.plugins.proxy.names import declared_version, why_misnamed
from armpy.types import BackendId

P = ParamSpec("P")
T = TypeVar("T")

# A list or an array may print as megabytes, and would drown the message.
LONGEST_DESCRIPTION = 300
"""Characters of an object's `repr` that a message shows."""


def call_backend(
    backend_id: BackendId, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call one of a backend's methods.

    Raises BackendError if it raises; its own ArmpyErrors are raised as they are, with the backend's
    name.
    """
    # Every call of a backend comes here: without a log or an error it costs one look.
    if is_on.driver:
        vlog("driver", "%s", _where(backend_id, method))
    try:
        return method(*args, **kwargs)
    except ArmpyError as error:
        # Its own cause stays the cause; the original of the copied error would add nothing.
        raise named_error(_where(backend_id, method), error) from error.__cause__
    except BaseException as error:
        let_user_interrupt(error)
        # A backend's SystemExit is no reason for the application to end.
        where = _where(backend_id, method)
        raise BackendError(f"the backend raised {describe_raised(error)}", where=where) from error


def ask_backend(
    backend_id: BackendId,
    kind: type[T] | tuple[type[T], ...],  # required types of the answer
    method: Callable[P, object],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call one of a backend's methods and check its result.

    Raises BackendError if it raises, or returns something else, or an object with a method that is
    nearly one of the contract's.
    """
    answer = call_backend(backend_id, method, *args, **kwargs)
    if not isinstance(answer, kind):
        raise wrong_type("the answer", kind, answer, _where(backend_id, method))
    if problem := why_misnamed(type(answer), declared_version(backend_id)):
        raise BackendError(problem, where=_where(backend_id, method))
    return answer


def wrong_type(what: str, kind: type | tuple[type, ...], value: object, where: str) -> BackendError:
    """Make the error for a value of a backend's that is of another type than `kind`."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return BackendError(
        f"{what} has the wrong type",
        where=where,
        expected=" or ".join(k.__name__.replace("NoneType", "None") for k in kinds),
        actual=describe(value),
    )


def _where(backend_id: BackendId, method: Callable[..., object]) -> str:
    return f"{backend_id} / {getattr(method, '__name__', method)}"


def call_method(backend_id: BackendId, owner: object, name: str, *args: object) -> object:
    """Call a method of an object that a backend made; errors as for `call_backend`.

    Looking the method up may already run the backend's code, and the method may have
    another name of its own; hence the contract's name.
    """

    def call() -> object:
        return getattr(owner, name)(*args)

    call.__name__ = name
    return call_backend(backend_id, call)


def ask_method(
    backend_id: BackendId,
    kind: type[T] | tuple[type[T], ...],
    owner: object,
    name: str,
    *args: object,
) -> T:
    """`call_method`, and check its result as `ask_backend` does."""

    def call() -> object:
        return getattr(owner, name)(*args)

    call.__name__ = name
    return ask_backend(backend_id, kind, call)


def read_backend(
    backend_id: BackendId, backend: object, member: str, kind: type[T] | tuple[type[T], ...]
) -> T:
    """Read one of a backend's properties and check its type; errors as for `ask_backend`."""

    def read() -> object:
        return getattr(backend, member)

    read.__name__ = member
    return ask_backend(backend_id, kind, read)


def checked_support(answer: object) -> Support:
    """A backend's answer about a layer, with a code and a text if it is a no.

    Raises BackendError if it is no `Support`, or neither yes nor no.
    """
    if not isinstance(answer, Support):
        raise wrong_type("the answer", Support, answer, "")
    if not isinstance(answer.is_supported, bool):
        raise BackendError("the answer is neither yes nor no", actual=describe(answer.is_supported))
    if answer.is_supported:
        return Support.yes()
    code = answer.code if isinstance(answer.code, ReasonCode) else ReasonCode.OTHER
    is_whole = isinstance(answer.text, str) and answer.text and code is answer.code
    if is_whole and answer.error is None:  # which the core alone sets
        return answer
    return Support.no(code, str(answer.text or "no reason given"))


def failed_support(code: ReasonCode, text: str, error: ArmpyError) -> Support:
    """The answer for a backend that failed to answer, or at what it had said yes to."""
    # Tracebacks hold the objects made until then, and refusals stay as long as the network.
    bare = copy(error)
    bare.__traceback__ = bare.__cause__ = bare.__context__ = None
    return Support(False, code, text, bare)


def describe(value: object) -> str:
    """Describe a backend's answer for messages: its `repr` in a bearable length."""
    try:
        text = repr(value)
        if isinstance(value, OSError) and value.filename is not None:
            text = f"{text[:-1]}, {value.filename!r})"  # which its `repr` leaves out
    except BaseException as error:  # noqa: BLE001 - plugin boundary: said in other words
        let_user_interrupt(error)
        return f"{type(value).__name__}, whose repr raised {type(error).__name__}"
    return text if len(text) <= LONGEST_DESCRIPTION else text[:LONGEST_DESCRIPTION] + "..."


def describe_raised(error: BaseException) -> str:
    """Describe an exception of a backend's code, with the line of that code which led to it."""
    text, line = describe(error), author_line(error)
    return f"{text} at {line}" if line else text


def author_line(error: BaseException, callers: Collection[str] = ("armpy",)) -> str:
    """The innermost line of a backend's own code in a traceback: ``kernels.py:20 in execute``.

    Parameters
    ----------
    callers : collection of str
        Packages that call the backend, and are none of its own code.

    Returns
    -------
    str
        Empty if no other code has a frame in it. Code that the backend calls, such as NumPy's,
        belongs to other distributions and is passed over.
    """
    frames = [
        (frame, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] not in callers
    ]
    if not frames:
        return ""
    home = _home_of(frames[0][0])
    frame, number = [entry for entry in frames if _home_of(entry[0]) == home][-1]
    code = frame.f_code
    return f"{os.path.basename(code.co_filename)}:{number} in {code.co_name}"


def _home_of(frame: FrameType) -> str:
    """The outermost package's folder that a frame's file is in; the file itself without one."""
    home = frame.f_code.co_filename
    while os.path.isfile(os.path.join(os.path.dirname(home), "__init__.py")):
        home = os.path.dirname(home)
    return home


def workload_error(backend_id: BackendId, where: str, error: BaseException) -> BackendError:
    """The error for what a backend's workload raised that is not an `ArmpyError`."""
    return BackendError(
        f"the backend raised {describe_raised(error)}",
        where=where,
        fix=f"Leave {backend_id} out of the backends, or report this to its author",
    )


def named_error(where: str, error: ArmpyError) -> ArmpyError:
    """A copy of a backend's own error with the backend's name, if it is a whole ArmpyError.

    The copy takes the traceback over: a backend may raise one object again and again, and
    that would gather the tracebacks of all times.
    """
    trace = error.__traceback__
    try:
        named = located(lambda: where, copy(error))
        # Tried here: a text that cannot be read would fail later, when it is printed.
        str(named)
        # The base class's own method, as a subclass may have another one.
        BaseException.with_traceback(error, None)
        BaseException.with_traceback(named, trace)
    except BaseException as damage:  # noqa: BLE001 - plugin boundary: an odd subclass's own code
        let_user_interrupt(damage)
        text = f"the backend raised {type(error).__name__}, which is damaged: {describe(damage)}"
        return BackendError(text, where=where).with_traceback(trace)
    return named


def let_user_interrupt(error: BaseException) -> None:
    """Raise a signal's error of the user or the application again; let all else pass.

    Called where a backend's BaseExceptions are contained. A KeyboardInterrupt is the user's. An
    error of the application's handler of a signal (a time-out, ``sys.exit()``) is raised wherever
    the interpreter happens to be, and is not the backend's.
    """
    if isinstance(error, KeyboardInterrupt) or _is_from_signal_handler(error):
        raise error


def _is_from_signal_handler(error: BaseException) -> bool:
    codes = {code for number in signal.valid_signals() if (code := _handler_code(number))}
    trace = error.__traceback__
    while trace is not None and codes:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _handler_code(number: int) -> CodeType | None:
    """The code of the handler of a signal; None if it is not a function in Python."""
    handler: object = signal.getsignal(number)
    handler = getattr(handler, "func", handler)  # asyncio sets a functools.partial
    code = getattr(getattr(handler, "__func__", handler), "__code__", None)
    return code if isinstance(code, CodeType) else None

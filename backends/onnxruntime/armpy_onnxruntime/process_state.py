"""State of the process that a library may change when it is loaded: it is set back, and named."""

from __future__ import annotations

import ctypes
import locale
import logging
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

_log = logging.getLogger("armpy_onnxruntime")


def _c_library() -> Any:  # Any: its functions, and None where each library may have its own
    try:
        return ctypes.CDLL(None)
    except TypeError:  # Windows
        return None


_C = _c_library()


class _State(NamedTuple):
    """A kind of state."""

    name: str
    read: Callable[[], dict[Any, Any]]  # values by name. Any: as the system has them
    restore: Callable[[Any, Any], object]  # takes a name and its value; None for none before


def _variables() -> dict[bytes, bytes]:
    """The environment as libraries see it; empty where the system does not show it."""
    try:
        block = ctypes.POINTER(ctypes.c_char_p).in_dll(_C, "environ")
    except ValueError:
        return {}
    variables = {}
    index = 0
    while (entry := block[index]) is not None:
        name, _, value = entry.partition(b"=")
        variables[name] = value
        index += 1
    return variables


def _set_variable(name: bytes, value: bytes | None) -> None:
    if value is None:
        _C.unsetenv(name)
    else:
        _C.setenv(name, value, 1)


def _folder() -> dict[str, str]:
    try:
        return {"": os.getcwd()}
    except OSError:  # it is deleted
        return {}


def _enter_folder(_: str, path: str | None) -> None:
    if path is not None:
        os.chdir(path)


def _file_mask() -> dict[str, int]:
    mask = os.umask(0o077)  # the system has no way to read it alone
    os.umask(mask)
    return {"": mask}


def _signal_actions() -> dict[signal.Signals, bytes]:
    """The handler of each signal, in C's structure."""
    actions = {}
    for number in signal.valid_signals():
        with suppress(ValueError):  # a number without a name
            action = ctypes.create_string_buffer(_MOST_STRUCTURE_BYTES)
            if _C.sigaction(int(number), None, action) == 0:
                handler, rest = action.raw[:_MASK_END], action.raw[_SET_END:]
                unused = bytes(_SET_END - _MASK_END)
                actions[signal.Signals(number)] = handler + unused + rest
    return actions


def _blocked_signals() -> dict[str, bytes]:
    """The signals that this thread does not get, in C's structure."""
    blocked = ctypes.create_string_buffer(_MOST_STRUCTURE_BYTES)
    _C.pthread_sigmask(0, None, blocked)
    return {"": blocked.raw}


def _float_control() -> dict[str, bytes]:
    """Rounding, traps and subnormal numbers of this thread, in C's structure without flags."""
    environment = ctypes.create_string_buffer(_MOST_STRUCTURE_BYTES)
    fields = _CONTROL_FIELDS.get(platform.machine())
    if fields is None or _C.fegetenv(environment):
        return {}
    control = bytearray(_MOST_STRUCTURE_BYTES)
    for begin, mask in fields:
        word = int.from_bytes(environment.raw[begin : begin + 4], "little") & mask
        control[begin : begin + 4] = word.to_bytes(4, "little")
    return {"": bytes(control)}


_MOST_STRUCTURE_BYTES = 256

_MASK_END, _SET_END = 16, 136
"""Between these, ``struct sigaction`` of glibc has the part of a set that no signal uses."""

_X87, _MXCSR, _FPCR = (0, 0xFFFF), (28, 0xFFC0), (0, 0xFFFF_FFFF)
_CONTROL_FIELDS = {"x86_64": (_X87, _MXCSR), "aarch64": (_FPCR,)}
"""Words of ``fenv_t`` that control arithmetic: where they begin, and their bits."""

_ARITHMETIC = _State(
    "the rounding mode or other control of floating-point arithmetic",
    _float_control,
    lambda _, control: _C.fesetenv(control),
)

_STATES = (
    _State("the environment", _variables, _set_variable),
    _State("the working folder", _folder, _enter_folder),
    _State("the mask of new files (umask)", _file_mask, lambda _, mask: os.umask(mask)),
    _State(
        "the handlers of signals",
        _signal_actions,
        lambda number, action: _C.sigaction(int(number), action, None),
    ),
    _State(
        "the blocked signals",
        _blocked_signals,
        lambda _, blocked: _C.pthread_sigmask(getattr(signal, "SIG_SETMASK", 0), blocked, None),
    ),
    _ARITHMETIC,
    _State(
        "the locale",
        lambda: {"": locale.setlocale(locale.LC_ALL)},
        lambda _, name: locale.setlocale(locale.LC_ALL, name),
    ),
)


@contextmanager
def kept_process(where: str) -> Iterator[None]:
    """Keep standard output and `_STATES` as they are; the log names a library's changes."""
    if _C is None:
        yield
        return
    before = [state.read() for state in _STATES]
    with tempfile.TemporaryFile() as written:
        try:
            with _standard_output_to(written.fileno()):
                yield
        finally:
            for state, values in zip(_STATES, before, strict=True):
                _set_back(where, state, values)
        written.seek(0)
        if text := written.read().decode(errors="replace").strip():
            _log.warning("%s wrote to standard output when it was registered: %s", where, text)


@contextmanager
def kept_arithmetic(where: str) -> Iterator[None]:
    """Keep this thread's control of floating-point arithmetic, as `kept_process` does.

    Notes
    -----
    It is all that can be kept beside other threads: the rest belongs to the whole process.
    """
    before = _float_control()
    try:
        yield
    finally:
        _set_back(where, _ARITHMETIC, before)


def _set_back(where: str, state: _State, before: dict[Any, Any]) -> None:  # Any: as above
    now = state.read()
    changed = [name for name in before | now if before.get(name) != now.get(name)]
    if not changed:
        return
    for name in changed:
        state.restore(name, before.get(name))
    names = ", ".join(sorted(os.fsdecode(getattr(name, "name", name)) for name in changed))
    listed = f" ({names})" if names else ""
    _log.warning("%s changed %s%s; armpy has set this back", where, state.name, listed)


@contextmanager
def _standard_output_to(descriptor: int) -> Iterator[None]:
    with suppress(AttributeError, OSError, ValueError):  # replaced or closed by the application
        sys.stdout.flush()
    try:
        saved = os.dup(1)
    except OSError:  # the application has closed it
        yield
        return
    try:
        os.dup2(descriptor, 1)
        yield
    finally:
        _C.fflush(None)
        os.dup2(saved, 1)
        os.close(saved)

"""Every exception that armpy raises.

The tree::

    ArmpyError
    ├── InvalidArgumentError          a caller passed something that cannot be used
    │   └── ModelNotFoundError        a request names a model that is not served
    ├── ModelUnavailableError         a served model is not loaded yet, or not any more
    ├── ParserError                   a model file is damaged or not understood
    │   └── UnsupportedOperatorError  a sound model file uses operators that armpy lacks
    ├── LayerValidationError          one layer breaks a rule of its operation
    ├── GraphValidationError          a graph as a whole is not well formed
    ├── BackendUnavailableError       a backend cannot be used on this machine
    │   └── DeviceNotFoundError       because its hardware is missing, as on most machines
    ├── BackendCapabilityError        no allowed backend can run a layer
    ├── CompilationPostponedError     a backend postpones a compilation
    ├── BackendError                  a backend failed, or broke its contract
    │   └── DeadObjectError           an isolated backend's process has ended
    ├── PluginError                   a plugin with hooks failed at its work
    ├── MemoryImportError             caller memory cannot be used as an input
    ├── MemoryExportError             caller memory cannot be used as an output
    ├── MemoryLimitError              a network needs more memory than there is, or is allowed
    │   └── MemoryQuotaError          than is allowed
    ├── MemoryValidationError         a memory strategy's answer cannot be used
    ├── ExecutionTimeoutError         a deadline passed
    │   └── PreparationTimeoutError   a backend was not done with preparing in time
    ├── QueueFullError                so much is waiting that no more is taken
    ├── ExecutionCancelledError       the caller has stopped an execution
    └── UnimplementedError            a feature that this version does not have
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

_MOST_CHARACTERS = 40
_MOST_FILES = 1000
"""Files of a folder whose names are compared with that of a missing one."""


class Argument(NamedTuple):
    """An argument that an error is about.

    Its text is Python's, ``code='never'``, or the name alone without a value. Programs that take
    arguments in another form write them with `ArmpyError.text`.
    """

    name: str
    value: object = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"


class ArmpyError(Exception):
    """Root of all armpy exceptions; text is built from structured fields.

    Parameters
    ----------
    failed : str
        Statement of the failure, without a full stop at its end.
    where : str, optional
        The thing that failed: a layer, a file.
    argument : Argument, optional
        The argument that the failure is about.
    expected, actual : str, optional
        The expected and the actual value.
    fix : str, optional
        Remedy, as a sentence in the imperative.

    Notes
    -----
    The text reads ``{where} / {argument}: {failed}. Expected {expected}; got {actual}. {fix}``.
    """

    def __init__(
        self,
        failed: str,
        *,
        where: str = "",
        argument: Argument | None = None,
        expected: str = "",
        actual: str = "",
        fix: str = "",
    ) -> None:
        self.failed = failed
        self.where = where
        self.argument = argument
        self.expected = expected
        self.actual = actual
        self.fix = fix
        super().__init__(failed)

    def __str__(self) -> str:
        return self.text()

    def location(self, write: Callable[[Argument], str] = str) -> str:
        """Return where it failed, with the argument as `write` has it; empty if nothing says so."""
        written = "" if self.argument is None else write(self.argument)
        return " / ".join(filter(None, [self.where, written]))

    def text(self, write: Callable[[Argument], str] = str) -> str:
        """Return the text of all fields, with the argument as `write` has it."""
        location = self.location(write)
        parts = [f"{location}: {self.failed}" if location else self.failed]
        if self.expected and self.actual:
            parts.append(f"Expected {self.expected}; got {self.actual}")
        elif self.expected:
            parts.append(f"Expected {self.expected}")
        elif self.actual:
            parts.append(f"Got {self.actual}")
        # Texts come with a full stop and without.
        text = ". ".join(part.rstrip(".") for part in parts)
        if self.fix:
            text += f". {self.fix}"
        is_ended = text.endswith((".", "?", "!")) or ends_in_command(text)
        return text if is_ended else f"{text}."

    def __reduce__(self) -> tuple[object, ...]:
        # By their fields: Python would call `__init__` with the text alone.
        return (_rebuild, (type(self), self.__dict__.copy()))


def ends_in_command(text: str) -> bool:
    """Whether a text ends in a command, with which a full stop after it would be copied."""
    _, run, command = text.rpartition("Run: ")
    return bool(run) and ". " not in command


def _rebuild(kind: type[ArmpyError], fields: dict[str, object]) -> ArmpyError:
    """Make an error again from its pickled fields."""
    # A subclass's __init__ may have a signature of its own, so it is not called.
    plain = type(kind.__name__, (kind,), {"__init__": Exception.__init__})
    # Of a kind without that `__init__`; the class is put right below.
    error: ArmpyError = plain(fields["failed"])
    error.__class__ = kind
    error.__dict__.update(fields)
    return error


class InvalidArgumentError(ArmpyError, ValueError):
    """A caller passed something that cannot be used."""


class ModelNotFoundError(InvalidArgumentError):
    """A request names a model, or a version of one, that is not served."""


class ModelUnavailableError(ArmpyError):
    """A served model is not loaded yet, or not any more; the same request may do later."""


class ParserError(ArmpyError):
    """A model file is damaged, or not of a form that is understood."""


class UnsupportedOperatorError(ParserError):
    """A sound model file uses operators that armpy does not have.

    Attributes
    ----------
    operators : mapping of str to int
        Number of uses of each operator in the model.
    """

    operators: Mapping[str, int] = MappingProxyType({})


class LayerValidationError(ArmpyError):
    """A layer's operands or attributes break a rule of its operation."""


class GraphValidationError(ArmpyError):
    """A graph is not well formed: cycles, dangling values, foreign values."""


class BackendUnavailableError(ArmpyError):
    """A backend is not there, or cannot be used on this machine."""


class DeviceNotFoundError(BackendUnavailableError):
    """The device or driver of a backend is not on this machine, and need not be.

    For backends of a package that has several, one for each kind of device. An application that
    does not name the backend is not warned; ``armpy doctor`` has the reason.
    """


class BackendCapabilityError(ArmpyError):
    """No allowed backend can run a layer."""


class CompilationPostponedError(ArmpyError):
    """A backend postpones a compilation, as the core has asked it to.

    Attributes
    ----------
    is_kept : bool
        Whether what another process of the user's compiles is found by this one.
    """

    backend_id = ""
    is_kept = False


class BackendError(ArmpyError):
    """A backend failed at its work, or answered against its contract.

    Attributes
    ----------
    backend_id : str
        The backend, if it failed while a network was executed; else empty.
    """

    backend_id: str = ""


class DeadObjectError(BackendError):
    """An isolated backend's process has ended, or was ended, before it was done.

    References
    ----------
    NNAPI ``ANEURALNETWORKS_DEAD_OBJECT``.
    """


class PluginError(ArmpyError):
    """A plugin with hooks failed at its work."""


class MemoryImportError(ArmpyError):
    """Memory of the caller cannot be used as an input.

    For backends to raise whose tensor handles import memory; the core copies other memory.
    """


class MemoryExportError(ArmpyError):
    """Memory of the caller cannot be used as an output; raised as `MemoryImportError`."""


class MemoryLimitError(ArmpyError, MemoryError):
    """A network needs more memory than the caller allows, or the process can have."""


class MemoryQuotaError(MemoryLimitError):
    """An execution needs more memory than the caller allows (`memory_limit_bytes`)."""


def without_memory(error: BaseException) -> MemoryLimitError:
    """Make the error for a plain MemoryError, which is its cause."""
    if isinstance(error, MemoryLimitError):
        return error
    memory_error = MemoryLimitError("the process has no memory left for this", actual=str(error))
    memory_error.__cause__ = error
    return memory_error


def is_without_memory(error: BaseException) -> bool:
    """Return whether something is Python's or NumPy's own MemoryError."""
    # armpy's own is a MemoryError, too, and says more.
    return isinstance(error, MemoryError) and not isinstance(error, ArmpyError)


class MemoryValidationError(ArmpyError):
    """A memory strategy's answer cannot be used."""


class ExecutionTimeoutError(ArmpyError, TimeoutError):
    """A deadline passed before the work was done."""


class PreparationTimeoutError(ExecutionTimeoutError):
    """A backend was not done with preparing when its time was over."""


class QueueFullError(ArmpyError):
    """The queue is full, so that no more is taken; it can be tried again later."""


class ExecutionCancelledError(ArmpyError):
    """The caller has stopped an execution before it was done."""


def did_you_mean(name: object, known: Iterable[object], otherwise: str = "") -> str:
    """Return the fix of an error about an unknown name.

    Parameters
    ----------
    name : object
        Object whose text was given.
    known : iterable of object
        Objects whose texts may be given; the first of several that differ only by case or
        punctuation.
    otherwise : str
        Remedy if none is near.
    """
    near = nearest_name(name, known)
    return otherwise if near is None else f"Did you mean '{near}'?"


def nearest_name(name: object, known: Iterable[object], cutoff: float = 0.6) -> object | None:
    """Return the known name that is spelled most like an unknown one; None if none is near.

    Of several that are equally like it, the first.
    """
    import difflib  # noqa: PLC0415  # for those who mistype

    # Without style, so that numThreads finds num_threads.
    spelled: dict[str, object] = {}
    for other in known:
        spelled.setdefault(_without_style(other), other)
    matcher = difflib.SequenceMatcher(b=_without_style(name))

    def likeness(text: str) -> float:
        matcher.set_seq1(text)
        return matcher.ratio()

    near = max(spelled, key=likeness, default=None)
    return None if near is None or likeness(near) < cutoff else spelled[near]


def full_path(path: str | os.PathLike[str]) -> str:
    """The absolute path; as it was given if it counts from a current folder that was removed."""
    try:
        return os.path.abspath(os.fsdecode(path))
    except OSError:
        return os.fsdecode(path)


def suggest_path(path: str | os.PathLike[str]) -> str:
    """Return the fix of an error about a missing file: the nearest name in its folder, if any."""
    text = os.fsdecode(path)
    if "://" in text:
        return "Download it, and give the path of the file."
    folder, name = os.path.split(text)
    try:
        others = sorted(os.listdir(folder or os.curdir))[:_MOST_FILES]
    except (OSError, ValueError):  # there is no such folder, or it may not be read
        others = []
    # Files of one kind are alike in their suffixes already.
    near = nearest_name(name, others, cutoff=0.8)
    if near is None or near == name:
        return "Check the path and the current folder."
    return f"Did you mean '{os.path.join(folder, str(near))}'?"


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first names of a long list, each at most 40 characters of it, and how many more.

    Returns a text for the `expected` of an error; "none" without names.
    """
    cut = [n if len(n) <= _MOST_CHARACTERS else f"{n[:_MOST_CHARACTERS]}..." for n in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, cut)) + more or "none"


def _without_style(name: object) -> str:
    """A name's letters and digits, in lower case."""
    return "".join(filter(str.isalnum, str(name).casefold()))


class UnimplementedError(ArmpyError, NotImplementedError):
    """Something sound was asked for that this version cannot do."""

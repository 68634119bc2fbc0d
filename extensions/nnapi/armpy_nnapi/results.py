"""Result codes as exceptions: the ones for wrong calls, and what armpy's other errors become."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import SupportsIndex, cast

from armpy.core.vlog import vlog
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendUnavailableError,
    DeadObjectError,
    ExecutionTimeoutError,
    MemoryExportError,
    MemoryImportError,
    MemoryLimitError,
    PreparationTimeoutError,
)
from armpy_nnapi.errors import NnapiError, ResultCode

# Each in front of the kinds that it is one of: the first that fits decides.
RESULT_CODES: Mapping[type[BaseException], ResultCode] = MappingProxyType(
    {
        PreparationTimeoutError: ResultCode.MISSED_DEADLINE_PERSISTENT,  # it would take as long
        DeadObjectError: ResultCode.DEAD_OBJECT,
        ExecutionTimeoutError: ResultCode.MISSED_DEADLINE_TRANSIENT,
        MemoryLimitError: ResultCode.OUT_OF_MEMORY,
        MemoryError: ResultCode.OUT_OF_MEMORY,
        MemoryImportError: ResultCode.UNMAPPABLE,
        MemoryExportError: ResultCode.UNMAPPABLE,
        BackendUnavailableError: ResultCode.UNAVAILABLE_DEVICE,
        ArmpyError: ResultCode.OP_FAILED,
    }
)
"""Result codes of compilations and executions, by kind of error, the first that fits."""


EVENT_CODES: Mapping[ResultCode, ResultCode] = MappingProxyType(
    {
        ResultCode.UNEXPECTED_NULL: ResultCode.BAD_DATA,
        ResultCode.INCOMPLETE: ResultCode.OP_FAILED,
        ResultCode.BAD_STATE: ResultCode.OP_FAILED,
        ResultCode.OUT_OF_MEMORY: ResultCode.OP_FAILED,
        ResultCode.UNMAPPABLE: ResultCode.OP_FAILED,
        ResultCode.DEAD_OBJECT: ResultCode.OP_FAILED,
    }
)
"""Codes that events report in place of those without a status of their own in the HAL.

References
----------
NNAPI ``convertResultCodeToErrorStatus`` and back.
"""


def bad_data(
    failed: str, *, where: str = "", expected: str = "", actual: str = "", fix: str = ""
) -> NnapiError:
    """The error for a call with something that cannot be used."""
    code = ResultCode.BAD_DATA
    return NnapiError(failed, code=code, where=where, expected=expected, actual=actual, fix=fix)


def bad_state(failed: str, *, where: str = "", fix: str = "") -> NnapiError:
    """The error for a call at the wrong time."""
    return NnapiError(failed, code=ResultCode.BAD_STATE, where=where, fix=fix)


def op_failed(
    failed: str, *, where: str = "", expected: str = "", actual: str = "", fix: str = ""
) -> NnapiError:
    """The error for what could not be done although the call was right."""
    code = ResultCode.OP_FAILED
    return NnapiError(failed, code=code, where=where, expected=expected, actual=actual, fix=fix)


def unexpected_null(what: str, *, where: str = "", expected: str = "") -> NnapiError:
    """The error for a required argument that is None."""
    code = ResultCode.UNEXPECTED_NULL
    return NnapiError(f"{what} is None", code=code, where=where, expected=expected)


def require_data(condition: bool, failed: str, **fields: str) -> None:
    """Raise BAD_DATA unless a condition holds; fields as for `ArmpyError`."""
    if not condition:
        raise bad_data(failed, **fields)


def as_integer(value: object, what: str, where: str) -> int:
    """A plain integer.

    Raises
    ------
    NnapiError
        BAD_DATA if it is none.
    """
    try:
        # NumPy's integers are as good as Python's; a float is none, even a whole one.
        return operator.index(cast(SupportsIndex, value))
    except TypeError as error:
        raise bad_data(f"the {what} is not an integer", where=where, actual=repr(value)) from error


def check_index(index: object, count: int, what: str, where: str) -> int:
    """The index of something that exists, as a plain integer.

    Raises
    ------
    NnapiError
        BAD_DATA if it is not an integer, or nothing has it.
    """
    plain = as_integer(index, f"{what}'s index", where)
    require_data(
        0 <= plain < count,
        f"the {what}'s index is out of range",
        where=where,
        expected=f"an index below {count}",
        actual=str(plain),
        fix="Count from 0",
    )
    return plain


def check_kind(value: object, kind: type, where: str, fix: str = "", name: str = "") -> None:
    """Check that an argument has the type that the call takes.

    Raises
    ------
    NnapiError
        BAD_DATA if it is something else.
    """
    if not isinstance(value, kind):  # its text may take long to make
        raise bad_data(
            "an argument is of the wrong kind",
            where=where,
            expected=name or kind.__name__,
            actual=repr(value),
            fix=fix,
        )


def as_bad_data(error: ArmpyError, where: str = "") -> NnapiError:
    """The BAD_DATA error of an error of the core, with the same text."""
    nnapi_error = as_nnapi_error(error, where)
    nnapi_error.code = ResultCode.BAD_DATA
    return nnapi_error


def as_nnapi_error(error: ArmpyError | MemoryError, where: str = "") -> NnapiError:
    """The result code of an error of the core, with the same text."""
    if isinstance(error, NnapiError):
        return error
    # Before the text: MemoryError has no fields but has a code.
    code = _code_of(error)
    if not isinstance(error, ArmpyError):
        return NnapiError(f"there is not enough memory: {error}", code=code, where=where)
    inner = f"{where} / {error.where}" if where and error.where else where or error.where
    # The error names the place already, which is not said twice.
    if where and error.where.startswith(where):
        inner = error.where
    return NnapiError(
        error.failed,
        code=code,
        where=inner,
        argument=error.argument,
        expected=error.expected,
        actual=error.actual,
        fix=error.fix,
    )


def _code_of(error: ArmpyError | MemoryError) -> ResultCode:
    """The result code of an error; the failed device's, if no other device is left."""
    cause = error.__cause__
    if isinstance(error, BackendCapabilityError) and isinstance(cause, ArmpyError):
        return cause.code if isinstance(cause, NnapiError) else _code_of(cause)
    return next(code for kind, code in RESULT_CODES.items() if isinstance(error, kind))


def as_event_error(error: NnapiError) -> NnapiError:
    """The error that an event raises: the same one, unless `EVENT_CODES` has another code."""
    code = EVENT_CODES.get(error.code)
    if code is None:
        return error
    event_error = NnapiError(
        error.failed,
        code=code,
        where=error.where,
        argument=error.argument,
        expected=error.expected,
        actual=error.actual,
        fix=error.fix,
    )
    # The cause keeps the code that the HAL could not have carried.
    event_error.__cause__ = error
    return event_error


def log_end(code: ResultCode) -> None:
    """Write what an execution came to into the verbose log."""
    vlog("execution", "an NNAPI execution came to %s", code.name)


@contextmanager
def result_codes(where: str) -> Iterator[None]:
    """Turn errors of the core into result codes.

    Raises
    ------
    NnapiError
        From the error, which stays its cause.
    """
    try:
        yield
    except NnapiError:
        # It has its code, and would become its own cause below.
        raise
    except (ArmpyError, MemoryError) as error:
        raise as_nnapi_error(error, where) from error

"""Result codes of the Neural Networks API, and the error that calls with one raise."""

from __future__ import annotations

import enum
from collections.abc import Callable

from armpy.errors import Argument, ArmpyError


class ResultCode(enum.IntEnum):
    """Result code of a call of the Neural Networks API.

    References
    ----------
    NNAPI ``ResultCode``.
    """

    NO_ERROR = 0
    OUT_OF_MEMORY = 1
    INCOMPLETE = 2
    UNEXPECTED_NULL = 3
    BAD_DATA = 4
    OP_FAILED = 5
    BAD_STATE = 6
    UNMAPPABLE = 7
    OUTPUT_INSUFFICIENT_SIZE = 8
    UNAVAILABLE_DEVICE = 9
    MISSED_DEADLINE_TRANSIENT = 10
    MISSED_DEADLINE_PERSISTENT = 11
    RESOURCE_EXHAUSTED_TRANSIENT = 12
    RESOURCE_EXHAUSTED_PERSISTENT = 13
    DEAD_OBJECT = 14


class NnapiError(ArmpyError):
    """A call of `armpy_nnapi` came to another result code than NO_ERROR.

    Parameters
    ----------
    value : object, optional
        The call's result nevertheless, where NNAPI writes an answer beside the code: the
        dimensions of an output that did not fit, the duration that means "unavailable".
    where, expected, actual, fix : str, optional
        Fields as for `ArmpyError`, and so is `argument`.

    Notes
    -----
    The text begins with the code's name.
    """

    def __init__(
        self,
        failed: str,
        *,
        code: ResultCode = ResultCode.OP_FAILED,
        value: object = None,
        where: str = "",
        argument: Argument | None = None,
        expected: str = "",
        actual: str = "",
        fix: str = "",
    ) -> None:
        super().__init__(
            failed, where=where, argument=argument, expected=expected, actual=actual, fix=fix
        )
        self.code = code
        self.value = value

    def text(self, write: Callable[[Argument], str] = str) -> str:
        """Return the text of all fields after the code's name."""
        return f"{self.code.name}: {super().text(write)}"

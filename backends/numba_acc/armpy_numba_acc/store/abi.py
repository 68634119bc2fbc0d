"""Digest of the binary interface between object code, saved programs and what runs them.

Notes
-----
Layouts are taken from the records themselves, so that no number has to be changed by hand
when a field comes or goes. Arrays' layout is not among them: it belongs to the NumPy that is there
when a program runs, where `armpy_numba_acc.native.python_function.check_layout` looks at it.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from hashlib import sha256
from types import ModuleType

from armpy_numba_acc.machine import core_arbiter, execution
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.native.python_function import HEADER_BYTES
from armpy_numba_acc.program import program

PROTOCOL = 2
"""Raised where code and its callers change the meaning of an unchanged layout."""

_RECORDS = (
    *(execution.ExecutionRecord, execution.Command, execution.Slot, core_arbiter.CoreArbiter),
    *(Kernel, program.Program, program.CommandInfo),
)
"""What native code reads or writes, and what saved programs are made of."""


@cache
def abi_digest() -> str:
    """Digest of all that code and programs made elsewhere have to agree on with this armpy.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    return digest_of_layouts()


def digest_of_layouts() -> str:
    """The same, computed again."""
    agreed = {
        "protocol": PROTOCOL,
        "records": [[kind.__name__, _fields(kind)] for kind in _RECORDS],
        "numbers": [_numbers(module) for module in (execution, core_arbiter)],
        "spaces": {space.name: space.value for space in Space},
        "interpreter": [sys.implementation.name, HEADER_BYTES],
        "words": [sys.byteorder, sys.maxsize.bit_length() + 1],
    }
    return sha256(json.dumps(agreed).encode()).hexdigest()[:16]


def _fields(kind: type) -> list[tuple[str, object]]:
    """Names and types of a record's fields; named tuples wrap the text of the types."""
    annotations = kind.__annotations__.items()
    return [(name, getattr(text, "__forward_arg__", text)) for name, text in annotations]


def _numbers(module: ModuleType) -> dict[str, int]:
    members = vars(module).items()
    return {name: value for name, value in members if name.isupper() and isinstance(value, int)}

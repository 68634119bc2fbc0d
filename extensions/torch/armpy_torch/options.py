"""Options of PyTorch programs, which are those of armpy's runtimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from armpy import RuntimeOptions
from armpy.core.arguments import check_instance
from armpy.errors import InvalidArgumentError, did_you_mean
from armpy.execution import Runtime


def runtime_of(options: Mapping[str, Any] | None, where: str) -> Runtime:
    """Make the runtime that options describe.

    Parameters
    ----------
    options : mapping of str to object, optional
        Parameters of `armpy.RuntimeOptions`.
    where : str
        What the options were given to, for messages.

    Raises
    ------
    InvalidArgumentError
        If there is no such option, or it has no such value.
    BackendUnavailableError
        If a backend that is named is missing.
    """
    given = {} if options is None else options
    check_instance(given, where, Mapping, fix="Pass a dict of armpy.RuntimeOptions' parameters")
    known = [field.name for field in fields(RuntimeOptions)]
    for name in given:
        if name not in known:
            raise InvalidArgumentError(
                "there is no such option",
                where=where,
                expected="a parameter of armpy.RuntimeOptions",
                actual=repr(name),
                fix=did_you_mean(name, known, "See armpy.RuntimeOptions"),
            )
    return Runtime(RuntimeOptions(**given))

"""Options of PyTorch programs: those of armpy's runtimes, and ``verify``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from armpy import RuntimeOptions
from armpy.core.arguments import check_instance
from armpy.errors import InvalidArgumentError, did_you_mean
from armpy.execution import Runtime


class ProgramOptions(NamedTuple):
    """What programs run with."""

    runtime: Runtime
    verify: bool  # whether first results are compared with PyTorch's


def options_of(options: Mapping[str, Any] | None, where: str) -> ProgramOptions:
    """Check options, and make the runtime that they describe.

    Parameters
    ----------
    options : mapping of str to object, optional
        ``verify``, and parameters of `armpy.RuntimeOptions`.
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
    given = {"verify": True, **given}
    verify = given.pop("verify")
    check_instance(verify, f"{where}, verify", bool, fix="Pass True or False")
    known = [field.name for field in fields(RuntimeOptions)]
    for name in given:
        if name not in known:
            raise InvalidArgumentError(
                "there is no such option",
                where=where,
                expected="'verify', or a parameter of armpy.RuntimeOptions",
                actual=repr(name),
                fix=did_you_mean(name, [*known, "verify"], "See armpy.RuntimeOptions"),
            )
    return ProgramOptions(Runtime(RuntimeOptions(**given)), verify)

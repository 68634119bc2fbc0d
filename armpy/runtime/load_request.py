"""What `armpy.load` is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from armpy.errors import InvalidArgumentError
from armpy.prepared.magic import is_prepared

# What is imported here is paid for at every start of a prepared model.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.hooks.model_file import ModelSource
    from armpy.prepared.signing import KeySource
    from armpy.runtime.options import RuntimeOptions
    from armpy.runtime.properties import NetworkProperties
    from armpy.runtime.runtime import Runtime

_FIRST_BYTES = 8


class LoadRequest(NamedTuple):
    """The arguments of `armpy.load`."""

    source: ModelSource
    backends: Sequence[str] | None = None
    num_threads: int | None = None
    on_fallback: str | None = None
    quantize_inputs: bool = False
    signature: str | None = None
    memory_limit_bytes: int | None = None
    runtime: Runtime | None = None
    front_end: str | None = None
    front_end_options: Mapping[str, object] | None = None
    properties: NetworkProperties | None = None
    preference: str | None = None
    trusted_keys: Sequence[KeySource] | None = None
    code: str | None = None

    @property
    def path(self) -> str | os.PathLike[str] | None:
        """Where the file is; None for contents in memory."""
        return self.source if isinstance(self.source, str | os.PathLike) else None

    def options(self) -> RuntimeOptions:
        """The options of the runtime that is given, or of the one to be made.

        Raises
        ------
        InvalidArgumentError
            If there is a runtime, and options that it would not look at.
        """
        options = {
            "backends": self.backends,
            "num_threads": self.num_threads,
            "on_fallback": self.on_fallback,
            "preference": self.preference,
            "trusted_keys": self.trusted_keys,
            "code": self.code,
        }
        runtime, memory_limit_bytes = self.runtime, self.memory_limit_bytes
        given: dict[str, Any] = {k: value for k, value in options.items() if value is not None}
        if runtime is None:
            if memory_limit_bytes is not None:
                given["memory_limit_bytes"] = memory_limit_bytes
            from armpy.runtime.options import RuntimeOptions

            return RuntimeOptions(**given)
        if given:
            raise InvalidArgumentError(
                "a runtime has its own options, and no others for one model",
                where="load",
                expected="a runtime alone",
                actual="a runtime with "
                + ", ".join(f"{name}={value!r}" for name, value in given.items()),
                fix="Make the runtime with these RuntimeOptions, or leave it out",
            )
        return runtime.options


def begins_prepared(source: ModelSource) -> bool:
    """Whether a file or its contents begin as a prepared file does; no if it cannot be read."""
    if not isinstance(source, str | os.PathLike):
        return is_prepared(bytes(memoryview(source)[:_FIRST_BYTES]))
    try:
        handle = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return False
    try:
        return is_prepared(os.read(handle, _FIRST_BYTES))
    except OSError:
        return False
    finally:
        os.close(handle)

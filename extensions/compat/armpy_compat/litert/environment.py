"""Environment: what LiteRT's compiled models share, which armpy does not need."""

from __future__ import annotations

from typing import Self

from armpy.core.dataclass import dataclass


@dataclass(frozen=True)
class EnvironmentOptions:
    """Places of LiteRT's libraries, which are not loaded."""

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""


class Environment:
    """Environment of compiled models, without an effect."""

    def __init__(self, options: EnvironmentOptions) -> None:
        self.options = options

    @classmethod
    def create(
        cls,
        *,
        options: EnvironmentOptions | str | None = None,
        runtime_path: str | None = None,
        compiler_plugin_path: str = "",
        dispatch_library_path: str = "",
    ) -> Environment:
        """Make an environment.

        Raises
        ------
        ValueError
            If options are given both grouped and by themselves.
        """
        if isinstance(options, str):
            if runtime_path is not None:
                raise ValueError("runtime_path was provided twice.")
            options, runtime_path = None, options
        paths = EnvironmentOptions(runtime_path, compiler_plugin_path, dispatch_library_path)
        if options is not None and paths != EnvironmentOptions():
            raise ValueError("Pass either options or environment path shortcuts.")
        return cls(options or paths)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

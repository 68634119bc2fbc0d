"""Request to load a model, as the command line says it."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from armpy.core.dataclass import dataclass
from armpy.model.load_options import OPTIONS, LoadOptions

COMMAND_OPTIONS = {name: info for name, info in OPTIONS.items() if info.flags}
"""The options of loading that the command line has, by name."""


@dataclass(frozen=True, slots=True)
class CliLoadRequest:
    """Request to load a model: its path and the command's loading options."""

    model: str  # path of the file
    # All but those of the front-end, whose types the front-end says.
    options: LoadOptions = field(default_factory=LoadOptions)
    front_end_options: tuple[str, ...] = ()  # each ``NAME=VALUE``
    backend_options: tuple[str, ...] = ()  # each ``ID.NAME=VALUE``
    dynamic_backends_path: tuple[str, ...] = ()  # directories

    def with_options(self, **options: Any) -> CliLoadRequest:  # Any: as `LoadOptions` takes them
        """The same with other options of loading."""
        return replace(self, options=replace(self.options, **options))

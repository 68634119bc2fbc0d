"""The plugin through which the conformance kit finds the trials on NNAPI's models."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from armpy.plugins.hooks import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def armpy_add_cli_commands() -> list[click.Command]:
    """``armpy conformance fuzz``, ``nnapi-vectors`` and ``random-graphs``, if the kit is there."""
    if find_spec("armpy_conformance") is None:
        return []
    # Imported with click, which only the command line has.
    from armpy_nnapi.conformance.cli.commands import fuzz, nnapi_vectors, random_graphs  # noqa: PLC0415

    return [fuzz, nnapi_vectors, random_graphs]

"""A plugin of armpy for models that are chains of steps, written one to a line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from armpy.backend import BackendOption
from armpy.graph import Graph
from armpy.plugins.hooks import FrontEnd, Magic, ModelFile, ReportSection, hookimpl
from armpy_chain.parser import BEGINNING, parse, read_steps

if TYPE_CHECKING:
    import click


@hookimpl
def armpy_register_front_end() -> FrontEnd:
    """Files that end in .chain, or begin as a chain does whatever they are called."""
    repeat = BackendOption("repeat", 1, "How often the steps are taken.", minimum=1, maximum=100)
    return FrontEnd(
        "chain",
        "chain of steps",
        parse,
        suffixes=(".chain",),
        magic=(Magic(BEGINNING),),
        describe=describe,
        options=(repeat,),
    )


def describe(file: ModelFile) -> dict[str, str]:
    """What armpy inspect shows of a file."""
    return {"steps": str(len(read_steps(file)) - 1)}


@hookimpl
def armpy_report_sections(graph: Graph, path: str) -> ReportSection | None:
    """The steps in order, under what armpy inspect says."""
    if not path.endswith(".chain"):
        return None
    rows = [(number, layer.operation.name) for number, layer in enumerate(graph.layers, start=1)]
    return ReportSection("Chain", ["step>", "operation"], rows)


@hookimpl
def armpy_add_cli_commands() -> click.Command:
    """The command chain-new, which writes a chain."""
    import click

    @click.command("chain-new", short_help="Write a chain of steps to a file.")
    @click.argument("file", type=click.File("w"))
    @click.option("--size", type=click.IntRange(min=1), default=4, help="Of the input.")
    @click.argument("steps", nargs=-1)
    def chain_new(file: TextIO, size: int, steps: tuple[str, ...]) -> None:
        """Write STEPS, such as relu or 'add 1', to FILE."""
        lines = [BEGINNING.decode().strip(), f"input {size}", *steps]
        file.write("\n".join(lines) + "\n")

    return chain_new


@hookimpl
def armpy_configure_runtime(options: Mapping[str, object]) -> Mapping[str, object] | None:
    """As many threads as CHAIN_NUM_THREADS says, unless the application says it."""
    threads = os.environ.get("CHAIN_NUM_THREADS")
    return {"num_threads": int(threads)} if threads else None

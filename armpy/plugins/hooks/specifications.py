"""Hook specifications: every place at which armpy asks plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from armpy.graph import Graph
    from armpy.plugins.hooks.custom_operator import CustomOperator
    from armpy.plugins.hooks.front_end import FrontEnd
    from armpy.plugins.hooks.section import ReportSection
    from armpy.plugins.placement import Placer

PROJECT = "armpy"
"""State shared by the markers and the manager."""

hookimpl = HookimplMarker(PROJECT)
"""Marks a function of a plugin as the implementation of the hook of its name."""

_hookspec = HookspecMarker(PROJECT)


class HookSpecifications:
    """The hooks.

    An implementation takes those of a hook's arguments that it names. It is asked beside others:
    its errors and wrong results are logged with its name and left out, whatever the others
    answer.
    """

    def __dir__(self) -> list[str]:
        """The hooks alone, which is what pluggy goes through."""
        return [name for name in vars(type(self)) if name.startswith("armpy_")]

    @_hookspec
    def armpy_add_cli_commands(self) -> object:
        """Subcommands of `armpy`, asked for when a command is not one of armpy's own, or for help.

        Returns
        -------
        click.Command, list of click.Command, or None
            Names are lower case with hyphens. None that is armpy's own or another plugin's counts.
            A command named ``group command`` joins the `click.Group` of that name, which another
            plugin adds.
        """

    @_hookspec
    def armpy_register_front_end(self) -> FrontEnd | Sequence[FrontEnd] | None:
        """Model formats, asked for whenever a file is loaded.

        Returns one whose name, suffix or magic number is taken is left out.
        """

    @_hookspec
    def armpy_register_custom_operators(
        self,
    ) -> CustomOperator | Sequence[CustomOperator] | None:
        """Custom operators of .tflite files, asked for when a file that has any is loaded.

        One whose name is another plugin's is left out; a plugin's comes before those of armpy's
        extensions.
        """

    @_hookspec
    def armpy_register_placer(self) -> Placer | Sequence[Placer] | None:
        """Functions that decide where layers run, asked for when the option `preference` is set.

        Returns
        -------
        Placer, list of Placer, or None
            Of several, the first by the plugin's name that decides counts; armpy-tools comes last.
        """

    @_hookspec
    def armpy_report_sections(
        self, graph: Graph, layers_by_backend: Mapping[str, int], path: str
    ) -> ReportSection | Sequence[ReportSection] | None:
        """Tables to be shown under what `armpy inspect` says of a model.

        Parameters
        ----------
        graph : Graph
            Graph as loaded, with constants folded.
        layers_by_backend : mapping of str to int
            Number of layers by backend, read-only; empty until the inputs' shapes are known.
        path : str
            Path of the model's file.
        """

    @_hookspec
    def armpy_configure_runtime(self, options: Mapping[str, object]) -> Mapping[str, object] | None:
        """Defaults for the options of a `Runtime` that is about to be made.

        Parameters
        ----------
        options : mapping of str to object
            Those that can be answered, by the names of `RuntimeOptions`, as the application and the
            environment give them; read-only.

        Returns
        -------
        mapping of str to object, or None
            The application's own settings stay. Of two plugins the first by name counts.
            Plugins do not decide where backends come from and which are trusted.
        """

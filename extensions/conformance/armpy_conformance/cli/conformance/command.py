"""Options of ``armpy conformance`` and of its commands."""

from __future__ import annotations

import click

from armpy.cli.command_group import OnceGroup, imported_when_run, refuse_missing
from armpy.cli.options import MODEL_FILE, json_option, seed_option, verbosity_options
from armpy.cli.values import FiniteRange
from armpy_conformance.cli.conformance.options import every_option, filter_option, trial_options


class _BackendFirst(OnceGroup):
    """A group that is given a backend's id where the command would stand, for the first one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the first command's name in front of a backend's id or of its options."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            refuse_missing(f"{self.name} {args[0]}")
            args = [cases.name or "", *args]
        return super().parse_args(ctx, args)


@click.group(
    "conformance",
    cls=_BackendFirst,
    subcommand_metavar="[BACKEND | COMMAND] [OPTIONS]",
    short_help="Try out whether a backend keeps its contract and computes right.",
)
def command() -> None:
    """Try out whether a backend keeps its contract and computes right.

    'armpy conformance BACKEND' runs the cases that armpy ships.
    """


@command.command(short_help="Cases made from the operations' definitions; the default.")
@click.argument("backend", required=False, default="")
@every_option
@filter_option
@click.option("--list", "only_list", is_flag=True, help="Print the cases' ids, and run none.")
@click.option("--fail-fast", is_flag=True, help="End with the first case that fails.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Child processes that run the cases; 1 if left out. A case that ends its process has "
    "crashed, and the others go on.",
)
@click.option(
    "--memory-limit-mb",
    type=click.IntRange(min=0),
    metavar="N",
    help="Memory of each child process, 0 for no limit; 8192 or three quarters of the machine's, "
    "whichever is less, if left out.",
)
@click.option(
    "--in-process", is_flag=True, help="Run the cases in the command's own process, for debuggers."
)
@click.option(
    "--soak",
    type=click.IntRange(min=1),
    metavar="N",
    help="Execute a few networks N times each: every answer must be right, and no execution may "
    "take a hundred times as long as the others. 2000 find what happens once in a while.",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=FiniteRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End after this time, and report on the cases that were tried.",
)
@click.option(
    "--known-failures",
    type=MODEL_FILE,
    help="Cases that may fail, one 'case id  # reason' per line; they must go on failing.",
)
@trial_options
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_conformance.cli.conformance.work:cases")
def cases() -> None:
    """Try out whether BACKEND keeps its contract and gives CpuRef's answers.

    Layers that it refuses are skipped, with its reason. Cases that failed in the
    last run come first. Exit code 1 if a case fails, if a known failure does not,
    or if cases are left out by the time limit or an interruption.
    """


@command.command(short_help="Load, threads, stops, kills and want of memory, each case apart.")
@click.option("--backend", default="", metavar="ID", help="The backend to try out.")
@every_option
@filter_option
@seed_option("Of everything random.")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="A case that takes longer hangs.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes at a time; one per core if left out."
)
@trial_options
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_conformance.cli.conformance.crash:crash")
def crash() -> None:
    """Try to make a backend end its process, hang, fail or lie.

    Each case runs in a process of its own: parallel inference, many loads, large and zero-sized
    inputs, random cancellation, killed processes, memory pressure. It returns SUCCESS, FAILURE,
    HANG or CRASH; exit code 1 unless all is SUCCESS.
    """

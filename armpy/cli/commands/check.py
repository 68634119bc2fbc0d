"""``armpy check``: says whether a compiled model fits this machine."""

from __future__ import annotations

from dataclasses import asdict

import click

import armpy
from armpy.cli.options import (
    EXIT_PROBLEMS,
    MODEL_FILE,
    dynamic_backends_option,
    report_options,
    trust_options,
)
from armpy.cli.printer import Printer, print_json, stdout_kept
from armpy.cli.settings import CommandSettings
from armpy.model.archive.checking import FileFit


@click.command("check")
@click.argument("file", type=MODEL_FILE)
@click.option(
    "--device",
    metavar="ID",
    help="Ask about this backend, as 'armpy devices' lists them, with CpuRef for layers that it "
    "does not take; about all installed ones if left out.",
)
@trust_options
@dynamic_backends_option
@report_options
@click.pass_context
def command(
    context: click.Context,
    file: str,
    device: str | None,
    trusted_keys: tuple[str, ...],
    code: str,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say whether the compiled model FILE fits this machine: fits, fits slower, does not fit.

    Nothing is compiled, and no program is loaded. A file that fits slower is loaded: layers whose
    programs cannot be used here are compiled anew, or run on another backend. 'armpy inspect FILE'
    lists every program.

    Exit code 0 if the file can be loaded, 1 if it does not fit.
    """
    registry = None
    if dynamic_backends_path:
        registry = armpy.backend_registry(dynamic_backends_path=dynamic_backends_path)
    settings = context.ensure_object(CommandSettings)
    with settings.without_reasons(), stdout_kept():  # backends may print
        answer = armpy.check(
            file, device=device, trusted_keys=trusted_keys, code=code, registry=registry
        )
    if as_json:
        print_json({"path": file, "device": device} | asdict(answer))
    else:
        printer = Printer()
        printer.line(f"{answer.fit}: {answer.reason}")
        if answer.fix:
            printer.line(f"to do: {answer.fix}")
    if answer.fit is FileFit.UNFIT:
        context.exit(EXIT_PROBLEMS)

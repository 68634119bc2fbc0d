"""Checks whether a compiled model fits this machine, and prints the answer."""

from __future__ import annotations

from dataclasses import asdict

import click

import armpy
from armpy.cli.options import EXIT_PROBLEMS
from armpy.cli.printer import Printer, print_json, stdout_kept
from armpy.cli.settings import CommandSettings
from armpy.model.archive.checking import FileFit


def check(
    context: click.Context,
    file: str,
    device: str | None,
    trusted_keys: tuple[str, ...],
    code: str,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say whether the compiled model FILE fits this machine."""
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

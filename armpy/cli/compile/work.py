"""Prepares a model ahead of time, as a file that starts at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from armpy.cli.compile.report import compiled_document, describe_compiled, print_compiled
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import check_outputs
from armpy.cli.printer import Printer, print_json
from armpy.cli.registry import registry_of
from armpy.cli.values import Shapes
from armpy.execution.compile_targets import check_targets, known_targets
from armpy.plugins import preferred_backends
from armpy.plugins.proxy.guard import BackendProxy
from armpy.store.archive.signing import FileSignature, sign

_HELP = "help"
"""In the place of a target: list them."""


def compile_command(
    load_request: CliLoadRequest,
    output: str | None,
    targets: tuple[str, ...],
    shape_sets: list[Shapes],
    key: str | None,
    as_json: bool,
) -> None:
    """Prepare MODEL ahead of time, and write it as one file."""
    if _HELP in targets:
        _print_targets(_backends(load_request))
        return
    if not load_request.model:
        raise click.UsageError("Missing argument 'MODEL'.")
    if output is None:
        raise click.UsageError("Missing option '-o' / '--output'.")
    check_outputs({"--output": output}, [load_request.model, key])
    if targets:
        check_targets(targets, _backends(load_request))
    sign = None if key is None else signer(key)
    with load_model(load_request, num_plans=len(shape_sets)) as model:
        # The one that is prepared last is what the file starts with.
        for shapes in reversed(shape_sets or [{}]):
            model.prepare(shapes)
        model.save(output, targets=targets, sign=sign)
    report = describe_compiled(output, load_request.model)
    if as_json:
        print_json(compiled_document(report))
    else:
        print_compiled(report)


def _backends(request: CliLoadRequest) -> list[BackendProxy]:
    """The backends that a model is compiled for."""
    return [
        BackendProxy(one)
        for one in preferred_backends(registry_of(request), request.options.backends)
    ]


def _print_targets(backends: Sequence[BackendProxy]) -> None:
    """List the targets."""
    rows = [(name, ", ".join(ids)) for name, ids in known_targets(backends).items()]
    Printer().table(["target", "backends that compile for it"], rows)


def signer(key_file: str) -> Callable[[bytes], FileSignature]:
    """What signs with a private key; asks for its password if it has one.

    Raises
    ------
    InvalidArgumentError
        If there is no such key in the file: before anything is compiled.
    UnimplementedError
        If the ``cryptography`` package is not installed.
    """
    password = None
    if b"ENCRYPTED" in Path(key_file).read_bytes():
        shown = f"Password of {os.path.basename(key_file)}"
        password = click.prompt(shown, hide_input=True, err=True).encode()

    def signed(message: bytes) -> FileSignature:
        return sign(message, key_file, password)

    signed(bytes(64))
    return signed

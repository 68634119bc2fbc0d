"""``armpy compile``: prepares a model ahead of time, as a file that starts at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    WRITABLE_FILE,
    check_outputs,
    json_option,
    model_options,
    shapes_option,
    verbosity_options,
)
from armpy.cli.values import Shapes

if TYPE_CHECKING:
    from armpy.plugins.proxy.guard import BackendProxy
    from armpy.store.archive.signing import FileSignature

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_HELP = "help"
"""In the place of a target: list them."""


@click.command("compile", short_help="Prepare a model ahead of time: one file that starts at once.")
@partial(model_options, is_optional=True)
@click.option(*OUTPUT, type=WRITABLE_FILE, metavar="FILE", help="The file to write; required.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="A machine to compile for: 'host', which is this one, or a processor; 'help' lists them. "
    "May be repeated, the most wanted first; 'host' if left out.",
)
@shapes_option(
    "Shape of an input, such as x=1,224,224,3; may be repeated. A name that comes again "
    "begins a further set of shapes that the model is prepared for."
)
@click.option(
    "--sign", "key", type=MODEL_FILE, metavar="KEY", help="Sign the file with this private key."
)
@json_option
@verbosity_options
def compile_command(
    load_request: CliLoadRequest,
    output: str | None,
    targets: tuple[str, ...],
    shape_sets: list[Shapes],
    key: str | None,
    as_json: bool,
) -> None:
    """Prepare MODEL ahead of time, and write it as one file.

    The file holds the optimised network with its weights, and for each target the code that
    backends have compiled. It is given wherever a model is: 'armpy run FILE', armpy.load(FILE). No
    compiler is needed where it is used. 'armpy inspect FILE' shows what is in it.
    """
    from armpy.cli.compile_report import compiled_document, describe_compiled, print_compiled
    from armpy.cli.load_request import load_model
    from armpy.cli.printer import print_json
    from armpy.execution.compile_targets import check_targets

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
    from armpy.cli.load_request import registry_of
    from armpy.plugins import preferred_backends
    from armpy.plugins.proxy.guard import BackendProxy

    return [
        BackendProxy(one)
        for one in preferred_backends(registry_of(request), request.options.backends)
    ]


def _print_targets(backends: Sequence[BackendProxy]) -> None:
    """List the targets."""
    from armpy.cli.printer import Printer
    from armpy.execution.compile_targets import known_targets

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
    from armpy.store.archive.signing import sign

    password = None
    if b"ENCRYPTED" in Path(key_file).read_bytes():
        shown = f"Password of {os.path.basename(key_file)}"
        password = click.prompt(shown, hide_input=True, err=True).encode()

    def signed(message: bytes) -> FileSignature:
        return sign(message, key_file, password)

    signed(bytes(64))
    return signed

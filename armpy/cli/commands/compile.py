"""``armpy compile``: prepares a model ahead of time, as a file that starts at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from armpy.cli.inputs.complete import complete_shapes, prepare_requested
from armpy.cli.inputs.options import input_options
from armpy.cli.inputs.request import InputRequest
from armpy.cli.inspect.compiled_file import MissingProgram, PreparedContents
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    WRITABLE_FILE,
    check_outputs,
    model_options,
    report_options,
)
from armpy.cli.printer import Printer, print_json
from armpy.cli.registry import registry_of
from armpy.cli.runtime import make_runtime
from armpy.cli.values import Shapes
from armpy.core.dataclass import dataclass
from armpy.core.units import bytes_text
from armpy.errors import InvalidArgumentError
from armpy.graph import nested_graphs
from armpy.model import Model
from armpy.model.compile_targets import check_targets, known_targets
from armpy.ops.composite import Composite
from armpy.plugins.proxy.guard import BackendProxy
from armpy.store.archive.container import open_container
from armpy.store.archive.signing import NO_KEY, FileSignature, key_text, sign
from armpy.tensor import format_shape

_HELP = "help"
"""In the place of a target: list them."""


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Report of a file that `armpy compile` has made."""

    model: str
    output: str
    original_bytes: int  # of the model's file
    size_bytes: int
    layers_by_backend: dict[str, int]
    targets_by_backend: dict[str, list[str]]  # what backends have compiled for
    left_out: tuple[MissingProgram, ...]
    signer: str  # the key that has signed it; empty if none has
    # Of inputs that the original leaves open: what it is prepared for.
    prepared_shapes: tuple[Shapes, ...] = ()
    takes_other_shapes: bool = True


@click.command("compile")
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
@input_options(
    "shape",
    "size",
    "batch",
    more_on_shapes="A name that comes again begins a further set that the model is prepared for.",
    several_shapes=True,
)
@click.option(
    "--sign", "key", type=MODEL_FILE, metavar="KEY", help="Sign the file with this private key."
)
@report_options
def command(
    load_request: CliLoadRequest,
    output: str | None,
    targets: tuple[str, ...],
    inputs: InputRequest,
    key: str | None,
    as_json: bool,
) -> None:
    """Prepare MODEL ahead of time, and write it as one file.

    The file holds the optimised network with its weights, and for each target the code that
    backends have compiled. It is given wherever a model is: 'armpy run FILE', armpy.load(FILE). No
    compiler is needed where it is used. 'armpy inspect FILE' shows its contents.
    """
    if _HELP in targets:
        known = known_targets(_backends(load_request))
        rows = [(name, ", ".join(ids)) for name, ids in known.items()]
        Printer().table(["target", "backends that compile for it"], rows)
        return
    if not load_request.model:
        raise click.UsageError("Missing argument 'MODEL'.")
    if output is None:
        raise click.UsageError("Missing option '-o' / '--output'.")
    check_outputs({"--output": output}, [load_request.model, key])
    if targets:
        check_targets(targets, _backends(load_request))
    sign = None if key is None else signer(key)
    requests = inputs.for_each_set() or [inputs]
    with load_model(load_request, num_shapes=len(inputs.shape_sets)) as model:
        is_fixed = inputs.says_shapes and _is_saved_shaped_only(model)
        if is_fixed and len(requests) > 1:
            raise InvalidArgumentError(
                "the model can be saved for one set of shapes only, as its operations depend on it",
                where="--shape",
                actual=f"{len(requests)} sets",
                fix="Write a file for each of them",
            )
        # The file starts with the one that is prepared last.
        for request in reversed(requests):
            prepare_requested(model, request)
        shapes = tuple(_open_shapes(model, request) for request in requests)
        # A reshaped model is closed with the one that it is made from.
        written = model.reshape(shapes[0]) if is_fixed else model
        written.save(output, targets=targets, sign=sign)
    report = replace(
        _describe(output, load_request.model),
        prepared_shapes=tuple(filter(None, shapes)),
        takes_other_shapes=not is_fixed,
    )
    if as_json:
        print_json(report)
    else:
        _print(report)


def _is_saved_shaped_only(model: Model) -> bool:
    """Return whether operations of a model become armpy's own only when all shapes are known.

    Front-ends of other formats make them; compiled models cannot hold them.
    """
    if all(spec.info.is_fully_shaped for spec in model.inputs):
        return False
    return any(
        isinstance(layer.operation, Composite)
        for graph in (model.graph, *nested_graphs(model.graph))
        for layer in graph.layers
    )


def _open_shapes(model: Model, request: InputRequest) -> Shapes:
    """Shapes of the inputs that a model leaves open."""
    by_name = complete_shapes(model, request).by_name
    is_open = {spec.name: not spec.info.is_fully_shaped for spec in model.inputs}
    return {name: shape for name, shape in by_name.items() if is_open[name]}


def _backends(request: CliLoadRequest) -> Sequence[BackendProxy]:
    """The backends that a model would be loaded on, without those that have no device here."""
    with make_runtime(request, registry_of(request)) as runtime:
        return runtime.backends


def signer(key_file: str) -> Callable[[bytes], FileSignature]:
    """Return a signer for a private key; asks for its password if it has one."""
    password = None
    if b"ENCRYPTED" in Path(key_file).read_bytes():
        shown = f"Password of {os.path.basename(key_file)}"
        password = click.prompt(shown, hide_input=True, err=True).encode()

    def signed(message: bytes) -> FileSignature:
        return sign(message, key_file, password)

    signed(bytes(64))
    return signed


def _describe(output: str, model: str) -> CompileReport:
    contents = PreparedContents(open_container(output))
    placement = contents.placement()
    targets: dict[str, list[str]] = {}
    for program in contents.programs:
        of_backend = targets.setdefault(program.backend, [])
        if program.target not in of_backend:
            of_backend.append(program.target)
    key = contents.container.key
    return CompileReport(
        model,
        output,
        os.path.getsize(model),
        os.path.getsize(output),
        {} if placement is None else dict(placement.layers_by_backend),
        targets,
        contents.left_out,
        "" if key == NO_KEY else key_text(key),
    )


def _print(report: CompileReport) -> None:
    printer = Printer()
    signed = f", signed by {report.signer}" if report.signer else ""
    printer.line(f"written: {report.output}{signed}")
    for shapes in report.prepared_shapes:
        text = ", ".join([f"{name} {format_shape(shape)}" for name, shape in shapes.items()])
        only = "" if report.takes_other_shapes else "only "
        printer.line(f"prepared {only}for these sizes of what the model leaves open: {text}")
    if report.prepared_shapes and report.takes_other_shapes:
        printer.line("other sizes are prepared when they come; --shape prepares them now")
    ratio = report.size_bytes / max(report.original_bytes, 1)
    printer.line(
        f"size: {bytes_text(report.size_bytes)}, {ratio:.2f} times the original's "
        f"{bytes_text(report.original_bytes)}"
    )
    targets = report.targets_by_backend
    rows = [
        (count, backend, ", ".join(targets.get(backend, ())) or "nothing")
        for backend, count in report.layers_by_backend.items()
    ]
    if rows:
        printer.table(["layers>", "backend", "compiled for"], rows)
    explained = {*targets, *(missing.backend for missing in report.left_out)}
    for backend, count in report.layers_by_backend.items():
        if backend not in explained:
            printer.line(f"not in it: {backend} compiles nothing, its {count} layers are the graph")
    for missing in report.left_out:
        printer.line(str(missing))

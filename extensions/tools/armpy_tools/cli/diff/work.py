"""Finds the first layer that two backends, or two files, compute differently."""

from __future__ import annotations

from dataclasses import asdict

import click
from click.core import ParameterSource

import armpy
from armpy.cli.inputs.complete import said_inputs
from armpy.cli.inputs.request import InputRequest
from armpy.cli.printer import Printer, print_json
from armpy.cli.progress import progress_shown
from armpy.cli.values import Shapes
from armpy.core.shell import shell_word
from armpy.execution import RuntimeOptions
from armpy.ops.operation import Array
from armpy.types import REFERENCE_BACKEND_ID
from armpy_tools.comparison import ModelDifference, first_difference
from armpy_tools.comparison.file_difference import FileDifference, first_file_difference


def diff(
    context: click.Context,
    model: str,
    other: str | None,
    backend: str | None,
    against: str,
    inputs: InputRequest,
    exact: bool,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run MODEL on two backends and name the first layer whose output leaves the tolerance."""
    if (other is None) == (backend is None):
        raise click.UsageError(
            "There is nothing to compare MODEL with. Pass --backend, or a second file."
        )
    if other is not None:
        for name in ("against", "exact"):
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"--{name} is for --backend, not for another file.")
        paths = dynamic_backends_path
        context.exit(_compare_files(model, other, inputs, paths, as_json=as_json))
    assert backend is not None
    arrays, shapes = _said_inputs(model, inputs)
    with progress_shown():
        difference = first_difference(
            model,
            backend,
            against,
            inputs=arrays,
            shapes=shapes,
            seed=inputs.seed,
            exact=exact,
            runtime_options=RuntimeOptions(dynamic_backends_path=dynamic_backends_path),
        )
    if as_json:
        print_json(asdict(difference) | {"is_same": difference.is_same})
    else:
        print_difference(difference)
    if not difference.is_same or not difference.num_taken:
        context.exit(1)


def _compare_files(
    model: str,
    other: str,
    inputs: InputRequest,
    dynamic_backends_path: tuple[str, ...],
    *,
    as_json: bool,
) -> int:
    """Print where two files of one network part; the exit code."""
    arrays, shapes = _said_inputs(model, inputs)
    difference = first_file_difference(
        model,
        other,
        seed=inputs.seed,
        runtime_options=RuntimeOptions(dynamic_backends_path=dynamic_backends_path),
        inputs=arrays,
        shapes=shapes,
    )
    printer = Printer()
    if as_json:
        print_json(asdict(difference))
    elif difference.is_same:
        printer.line("no difference: the outputs agree")
    else:
        if difference.last_same is not None:
            printer.line(
                f"the same: layer '{difference.last_same[0]}' as '{difference.last_same[1]}'"
            )
        printer.line(f"difference: layer '{difference.first}', {_size(difference)}")
        if difference.quantized is not None:
            quantized = difference.quantized
            plain = shell_word(other if quantized == model else model)
            printer.line(
                f"'{quantized}' is quantised, and the other file is not, or less, so that layers "
                "differ by rounding. To compare its outputs with the float model's: "
                f"armpy report {shell_word(quantized)} --float-model {plain}"
            )
    return 0 if difference.is_same else 1


def _size(difference: FileDifference) -> str:
    """Return how far the first layer that differs is from the other file, and may be."""
    if difference.error is None:
        return f"no tensor of '{difference.other}' has as many elements"
    return (
        f"the nearest tensor of '{difference.other}' differs by {difference.error:.2g} of the "
        f"largest element (allowed: {difference.tolerance:g})"
    )


def _said_inputs(path: str, inputs: InputRequest) -> tuple[dict[str, Array], Shapes]:
    """Arrays and shapes that the command line gives; without any, the file is not loaded."""
    if not (inputs.arrays or inputs.size or inputs.batch):
        return {}, inputs.shapes
    with armpy.load(path, backends=[REFERENCE_BACKEND_ID]) as model:
        arrays, shapes = said_inputs(model, inputs)
    guessed = {spec.name for spec in shapes.guessed}
    return arrays, {name: s for name, s in shapes.by_name.items() if name not in guessed}


def print_difference(found: ModelDifference) -> None:
    """Print where the layers ran and which one is the first to differ."""
    printer = Printer()
    printer.line(f"{found.backend}: {found.backend_placement}")
    printer.line(f"{found.against}: {found.against_placement}")
    first = found.first
    if not found.num_taken:
        printer.line(f"{found.backend} runs none of the layers: nothing was compared")
    elif first is None:
        printer.line(f"no difference: the outputs of all {found.num_layers} layers agree")
    else:
        printer.line(f"difference: {first}")

"""Finds the first layer that two backends, or two files, compute differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click
from click.core import ParameterSource

import armpy
from armpy.cli.files import read_inputs
from armpy.cli.printer import Printer, print_json
from armpy.cli.progress import progress_shown
from armpy.cli.values import Shapes, only_shapes
from armpy.execution import RuntimeOptions
from armpy.model import begins_prepared
from armpy.model.model_files import parse
from armpy_conformance import ModelDifference, first_difference
from armpy_conformance.differences.file_diff import FILE_TOLERANCE, first_file_difference


def diff(
    context: click.Context,
    model: str,
    other: str | None,
    backend: str | None,
    against: str,
    inputs: tuple[str, ...],
    shape_sets: Sequence[Shapes],
    seed: int,
    exact: bool,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run MODEL on two backends and name the first layer whose output leaves the tolerance."""
    shapes = only_shapes(shape_sets)
    if (other is None) == (backend is None):
        raise click.UsageError(
            "There is nothing to compare MODEL with. Pass --backend, or a second file."
        )
    if other is not None:
        for name in ("against", "exact"):
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"--{name} is for --backend, not for another file.")
        paths = dynamic_backends_path
        context.exit(_compare_files(model, other, inputs, shapes, seed, paths, as_json=as_json))
    assert backend is not None
    with progress_shown():
        difference = first_difference(
            model,
            backend,
            against,
            inputs=read_inputs(inputs, _input_names(model) if inputs else ()),
            shapes=shapes,
            seed=seed,
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
    inputs: tuple[str, ...],
    shapes: Shapes,
    seed: int,
    dynamic_backends_path: tuple[str, ...],
    *,
    as_json: bool,
) -> int:
    """Print where two files of one network part; the exit code."""
    difference = first_file_difference(
        model,
        other,
        seed=seed,
        runtime_options=RuntimeOptions(dynamic_backends_path=dynamic_backends_path),
        inputs=read_inputs(inputs, _input_names(model) if inputs else ()),
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
        allowed = f"more than {FILE_TOLERANCE} of a tensor's largest element"
        printer.line(f"difference: layer '{difference.first}', {allowed}")
    return 0 if difference.is_same else 1


def _input_names(model: str) -> list[str]:
    if begins_prepared(model):
        with armpy.load(model) as loaded:
            return [spec.name for spec in loaded.inputs]
    return [value.name for value in parse(model).inputs]


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

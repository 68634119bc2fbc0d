"""``armpy inspect``: what a model is made of and where it would run."""

from __future__ import annotations

import click

from armpy.cli.inputs.complete import prepare_requested
from armpy.cli.inputs.options import input_options
from armpy.cli.inputs.request import InputRequest
from armpy.cli.inspect.compiled import FileReport, inspect_prepared, print_prepared
from armpy.cli.inspect.describe import InspectionReport, inspect_file, inspect_unloadable
from armpy.cli.inspect.report import model_document, print_model
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import (
    model_options,
    report_options,
)
from armpy.cli.printer import print_json
from armpy.errors import UnsupportedOperatorError
from armpy.model import Model
from armpy.model.load_request import begins_prepared


@click.command("inspect")
@model_options
@click.option("--layers", "with_layers", is_flag=True, help="List every layer of the file.")
@click.option("--tensors", "with_tensors", is_flag=True, help="List every tensor of the file.")
@input_options(
    "shape",
    "size",
    "batch",
)
@report_options
def command(
    load_request: CliLoadRequest,
    with_layers: bool,
    with_tensors: bool,
    inputs: InputRequest,
    as_json: bool,
) -> None:
    """Show MODEL's inputs and outputs, its layers, and where they would run.

    Operators have the names that the file has for them. A model with operators that armpy does
    not have is described as well, and these are named. Of a compiled model, show also what is in
    it, by whom, and what of it would be used here. `armpy report` draws the layers (extension
    armpy-tools).
    """
    prepared: FileReport | None = None
    check_sizes_are_open(load_request, inputs)
    if begins_prepared(load_request.model):
        result, prepared = inspect_prepared(load_request)
    else:
        result = inspected(load_request, inputs)
    if as_json:
        document = model_document(load_request.model, result)
        print_json(document if prepared is None else {**document, "prepared": prepared})
        return
    print_model(result, with_layers=with_layers, with_tensors=with_tensors)
    if prepared is not None:
        print_prepared(prepared)


def check_sizes_are_open(load_request: CliLoadRequest, inputs: InputRequest) -> None:
    """Check that no size is given for a compiled model.

    Raises click.UsageError if one is.
    """
    if begins_prepared(load_request.model) and inputs.says_shapes:
        options = {"--size": inputs.size, "--batch": inputs.batch, "--shape": inputs.shape_sets}
        option = next(name for name, value in options.items() if value)
        raise click.UsageError(
            f"{option}: a compiled model is shown with the shapes that it is for."
        )


def inspected(load_request: CliLoadRequest, inputs: InputRequest) -> InspectionReport:
    """Describe a model file, also one that armpy cannot run."""
    try:
        loaded = load_model(load_request)
    except UnsupportedOperatorError as error:
        return inspect_unloadable(load_request, error)
    with loaded:
        _resize(loaded, inputs)
        return inspect_file(loaded, load_request)


def _resize(model: Model, inputs: InputRequest) -> None:
    """Give inputs the sizes that are asked for; where nothing else is open, batches have 1 row."""
    if inputs.says_shapes:
        prepare_requested(model, inputs)
    elif model.placement is None:
        batches = {}
        for spec in model.inputs:
            first, *others = spec.shape or (None, None)
            if first is None and None not in others:
                batches[spec.name] = (1, *(dim for dim in others if dim is not None))
            elif first is None or None in others:
                return
        model.prepare(batches)

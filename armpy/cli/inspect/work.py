"""Shows what a model is made of and where it would run."""

from __future__ import annotations

from collections.abc import Sequence

import click

from armpy.cli.inspect.compiled import FileReport, inspect_prepared, print_prepared
from armpy.cli.inspect.describe import InspectionReport, inspect_file, inspect_unloadable, write_dot
from armpy.cli.inspect.report import model_document, print_model
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import check_outputs
from armpy.cli.pictures.image_layout import sized_shapes
from armpy.cli.printer import print_json
from armpy.cli.values import Shapes, only_shapes
from armpy.errors import UnsupportedOperatorError
from armpy.model import Model
from armpy.model.load_request import begins_prepared
from armpy.model.open_shapes import prepare_for


def inspect(
    load_request: CliLoadRequest,
    with_layers: bool,
    with_tensors: bool,
    size: tuple[int, int] | None,
    shape_sets: Sequence[Shapes],
    dot: str | None,
    as_json: bool,
) -> None:
    """Show MODEL's inputs and outputs, its layers, and where they would run."""
    check_outputs({"--dot": dot}, [load_request.model])
    prepared: FileReport | None = None
    shapes = chosen_shapes(load_request, size, shape_sets)
    if begins_prepared(load_request.model):
        result, prepared = inspect_prepared(load_request, dot)
    else:
        result = inspected(load_request, size, shapes, dot)
    if as_json:
        document = model_document(load_request.model, result)
        print_json(document if prepared is None else {**document, "prepared": prepared})
        return
    print_model(result, with_layers=with_layers, with_tensors=with_tensors)
    if prepared is not None:
        print_prepared(prepared)


def chosen_shapes(
    load_request: CliLoadRequest, size: tuple[int, int] | None, shape_sets: Sequence[Shapes]
) -> Shapes:
    """The shapes of ``--shape``; an input may come once, and no shape may of a compiled model."""
    if begins_prepared(load_request.model) and (size is not None or shape_sets):
        option = "--shape" if size is None else "--size"
        raise click.UsageError(
            f"{option}: a compiled model is shown with the shapes that it is for."
        )
    return only_shapes(shape_sets)


def inspected(
    load_request: CliLoadRequest, size: tuple[int, int] | None, shapes: Shapes, dot: str | None
) -> InspectionReport:
    """Describe a model file, also one that armpy cannot run."""
    try:
        loaded = load_model(load_request)
    except UnsupportedOperatorError as error:
        if dot is not None:
            raise
        return inspect_unloadable(load_request, error)
    with loaded:
        _resize(loaded, size, shapes)
        result = inspect_file(loaded, load_request)
        if dot is not None:
            optimized = loaded.runtime.get_network(loaded.network_id).optimized
            write_dot(loaded.graph, optimized, dot)
    return result


def _resize(model: Model, size: tuple[int, int] | None, shapes: Shapes) -> None:
    """Give inputs the shapes that are asked for; where nothing else is open, batches have 1 row."""
    if size is not None:
        prepare_for(model, {**sized_shapes(model.inputs, size), **shapes})
    elif shapes:
        prepare_for(model, shapes)
    elif model.placement is None:
        batches = {}
        for spec in model.inputs:
            first, *others = spec.shape or (None, None)
            if first is None and None not in others:
                batches[spec.name] = (1, *(dim for dim in others if dim is not None))
            elif first is None or None in others:
                return
        model.prepare(batches)

"""Accuracy of layers against CpuRef: parts of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from armpy.errors import ArmpyError
from armpy.execution import RuntimeOptions
from armpy.profiling import short_names
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_tools.compare.layer_errors import LayerError, layer_errors
from armpy_tools.compare.sides import Sides
from armpy_tools.pages import Facts, Lines, Part, Series, Table, Text
from armpy_tools.report.layers import LayerRows

if TYPE_CHECKING:
    from armpy.model import Model
    from armpy.ops.operation import Array

_MOST_ROWS = 40

_Names: TypeAlias = Mapping[str, tuple[str, str]]
"""Short name and operator by layer."""


def accuracy_parts(
    model: Model, arrays: Mapping[str, Array], name: str, known: LayerRows
) -> list[Part]:
    """Errors of each layer, alone and with all before it; they are told to the rows, too.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Inputs, as the model takes them.
    name : str
        Of the model.
    known : LayerRows
        The layers of its file.
    """
    backend = compared_backend(model)
    if backend is None:
        text = f"All layers run on {REFERENCE_BACKEND_ID}, whose answers others are held against."
        return [Text(text)]
    try:
        errors = _errors(model, arrays, name, backend)
    except ArmpyError as error:
        return [Text(f"Layers were not compared. {error}", "note")]
    for found in errors:
        for row in known.members(found.layer):
            row.error = max(row.error or 0.0, found.alone)
            row.total_error = found.together
    shorts = short_names(error.layer for error in errors)
    names = {error.layer: (shorts[error.layer], _operator(error, known)) for error in errors}
    return _parts(errors, backend, names)


def _operator(error: LayerError, known: LayerRows) -> str:
    """The kind of a layer in the file's words, where it is one of the file's."""
    members = known.members(error.layer)
    return members[0].facts.operator if members else error.operation


def compared_backend(model: Model) -> BackendId | None:
    """The backend that runs most layers, other than CpuRef; None if there is none."""
    counts = {} if model.placement is None else model.placement.layers_by_backend
    others = {name: n for name, n in counts.items() if n and name != REFERENCE_BACKEND_ID}
    return max(others, key=others.__getitem__, default=None)


def _errors(
    model: Model, arrays: Mapping[str, Array], name: str, backend: BackendId
) -> list[LayerError]:
    """Run both backends."""
    sides = Sides.of(backend, REFERENCE_BACKEND_ID, RuntimeOptions(registry=model.runtime.registry))
    given = [arrays[value.name] for value in model.graph.inputs]
    return layer_errors(sides, model.graph, given, name)


def _parts(errors: Sequence[LayerError], backend: BackendId, names: _Names) -> list[Part]:
    """What is shown of errors."""
    outside = [error for error in errors if not error.is_within]
    same = sum(error.alone == 0 for error in errors)
    last = errors[-1].together if errors else 0.0
    return [
        Text(
            f"Each layer on {backend} against {REFERENCE_BACKEND_ID}: root mean square of the "
            "difference over that of the right numbers. Alone, a layer is given the right inputs; "
            "up to here, all layers before it have run on the backend as well."
        ),
        Facts(
            [
                ("layers that are equal alone", f"{same} of {len(errors)}"),
                ("layers outside their tolerance alone", str(len(outside))),
                ("largest error alone", f"{max((e.alone for e in errors), default=0.0):.3g}"),
                ("error behind the last layer", f"{last:.3g}"),
            ]
        ),
        _verdict(errors, outside),
        *_pictures(errors, names),
    ]


def _pictures(errors: Sequence[LayerError], names: _Names) -> list[Part]:
    """Chart and table, where there is an error to show."""
    if not any(error.alone or error.together for error in errors):
        return []
    return [_chart(errors, names), _table(errors, names)]


def _verdict(errors: Sequence[LayerError], outside: Sequence[LayerError]) -> Text:
    """In a line, whether all is well."""
    if errors and not any(error.alone or error.together for error in errors):
        return Text("Every element of every layer is the same on both.", "good")
    if not outside:
        return Text("Every layer keeps the tolerance of its type.", "good")
    first = outside[0]
    text = f"{len(outside)} layers leave the tolerance of their types; the first is "
    return Text(f"{text}{first.operation} '{first.layer}' on {first.backend}.", "bad")


def _chart(errors: Sequence[LayerError], names: _Names) -> Lines:
    """Errors by layer on a logarithmic scale; equal layers lie at its lower end."""
    numbers = [float(n) for n in range(len(errors))]
    labels = [" ".join(reversed(names[error.layer])) for error in errors]
    return Lines(
        "Relative error by layer; at the lower end there is none",
        [
            Series("alone", numbers, [error.alone for error in errors], labels),
            Series("up to here", numbers, [error.together for error in errors], labels),
        ],
        "layer",
        "relative error",
        is_log=True,
        has_points=True,
    )


def _table(errors: Sequence[LayerError], names: _Names) -> Table:
    """The worst layers."""
    worst = sorted(errors, key=lambda error: -error.alone if math.isfinite(error.alone) else -1e300)
    rows = [
        (
            *names[error.layer],
            error.backend,
            f"{error.alone:.3g}",
            f"{error.together:.3g}",
            f"{error.largest:.3g}",
            "within" if error.is_within else "outside",
        )
        for error in worst[:_MOST_ROWS]
    ]
    columns = [
        "layer", "operator", "backend", "alone>", "up to here>", "worst element>", "tolerance",
    ]  # fmt: skip
    return Table(f"The {len(rows)} layers with the largest errors alone", columns, rows)

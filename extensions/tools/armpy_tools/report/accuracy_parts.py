"""Accuracy of a model against CpuRef and the float model: parts of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from armpy.core.dataclass import dataclass
from armpy.errors import Argument, ArmpyError, InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy.tensor import format_shape
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_tools.comparison.errors import ErrorStats
from armpy_tools.comparison.errors import errors as compare_outputs
from armpy_tools.comparison.layer_errors import LayerError, layer_errors
from armpy_tools.comparison.sides import Sides
from armpy_tools.pages import Facts, Headline, Lines, Part, Series, Table, Text
from armpy_tools.report.layers import LayerRows

if TYPE_CHECKING:
    from armpy.execution import TensorSpec
    from armpy.model import Model
    from armpy.ops.operation import Array

_MOST_ROWS = 40
_LEAST_PERCENT = 0.0001
"""Smaller errors are given in numbers only by layer."""

_Names: TypeAlias = Mapping[str, tuple[str, str]]
"""Operator and short name by layer."""


@dataclass(frozen=True, slots=True)
class ModelErrors:
    """Differences of a model's numbers from the right ones."""

    # The backend that was compared with CpuRef, and the error of each layer.
    backend: BackendId | None = None
    errors: Sequence[LayerError] = ()
    failure: str = ""  # why layers were not compared
    # The outputs against those of the float model; None without one.
    float_name: str = ""
    float_errors: ErrorStats | None = None


def measure_accuracy(
    model: Model, arrays: Mapping[str, Array], name: str, known: LayerRows
) -> ModelErrors:
    """Compare each layer with CpuRef, alone and with all before it; the rows get the errors.

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
        return ModelErrors()
    try:
        errors = _errors(model, arrays, name, backend)
    except ArmpyError as error:
        return ModelErrors(backend, failure=str(error))
    for layer_error in errors:
        for row in known.members(layer_error.layer):
            row.error = max(row.error or 0.0, layer_error.alone)
            row.total_error = layer_error.together
    return ModelErrors(backend, errors)


def float_errors(model: Model, arrays: Mapping[str, Array], float_model: Model) -> ErrorStats:
    """Errors of a model's outputs against those of the float model it was quantised from.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Inputs of `model`; the float model gets the real numbers that they stand for.

    Raises
    ------
    InvalidArgumentError
        If the models do not have inputs and outputs of the same shapes.
    """
    ends = [(*side.inputs, *side.outputs) for side in (model, float_model)]
    same_number = len(model.inputs) == len(float_model.inputs) and len(ends[0]) == len(ends[1])
    if not same_number or not all(map(_may_be_alike, *ends)):
        raise InvalidArgumentError(
            "the float model does not have the same inputs and outputs",
            argument=Argument("float_model"),
            expected=_ends_of(model),
            actual=_ends_of(float_model),
            fix="Give the float model that this one was quantised from",
        )
    reals = {
        there.name: _as_float(arrays[here.name], here)
        if there.data_type.is_float
        else arrays[here.name]
        for here, there in zip(model.inputs, float_model.inputs, strict=True)
    }
    right, outputs = float_model.run(reals), model.run(dict(arrays))
    return compare_outputs(
        [_as_float(right[spec.name], spec) for spec in float_model.outputs],
        [_as_float(outputs[spec.name], spec) for spec in model.outputs],
    )


def _may_be_alike(one: TensorSpec, other: TensorSpec) -> bool:
    """Return whether two tensors may have the same shape, where sizes may be open."""
    if one.shape is None or other.shape is None:
        return True
    return len(one.shape) == len(other.shape) and all(
        None in pair or pair[0] == pair[1] for pair in zip(one.shape, other.shape, strict=True)
    )


def _ends_of(model: Model) -> str:
    """Shapes of a model's inputs and outputs."""
    sides = ([format_shape(spec.shape) for spec in side] for side in (model.inputs, model.outputs))
    return " to ".join(map(", ".join, sides))


def _as_float(array: Array, spec: TensorSpec) -> Array:
    """The real numbers that an array of an input or output stands for."""
    quantization = spec.info.quantization
    is_stored = quantization is not None and array.dtype.kind != "f"
    return quantization.dequantize(array) if quantization and is_stored else array


def accuracy_headline(accuracy: ModelErrors | None) -> Headline:
    """Return how exact the model is, at first sight."""
    question = "How exact?"
    if accuracy is None:
        return Headline(question, [("not measured", "left out as requested")])
    figures, lines = [], []
    if (stats := accuracy.float_errors) is not None:
        figures.append(_error_figure(stats.relative, "the outputs", accuracy.float_name))
        if stats.same_best is not None:
            same = f"{100 * stats.same_best:.0f} % of the rows"
            lines.append(f"the same best class in {same}")
    if accuracy.backend is None:
        about = f"all layers run on {REFERENCE_BACKEND_ID}, which defines the right numbers"
        figures.append(("reference", about))
    elif accuracy.failure or not accuracy.errors:
        figures.append(("not known", "the layers were not compared; see Accuracy"))
    else:
        by_layer = accuracy.errors
        last = by_layer[-1].together
        figures.append(_error_figure(last, "the last layer's output", REFERENCE_BACKEND_ID))
        within = sum(error.is_within for error in by_layer)
        lines.append(f"{within} of {len(by_layer)} layers within the tolerance of their type")
        largest = max(error.alone for error in by_layer)
        lines.append(f"largest error of a single layer: {error_text(largest)}")
    return Headline(question, figures, lines)


def _error_figure(relative: float, subject: str, against: str) -> tuple[str, str]:
    """An error in large figures."""
    if not relative:
        return (
            "equal",
            f"{subject} identical to {against}'s, element by element (one set of inputs)",
        )
    return error_text(relative), f"error of {subject} against {against}, root mean square"


def error_text(relative: float) -> str:
    """A relative error for people."""
    if not math.isfinite(relative):
        return "not finite"
    percent = 100 * relative
    if percent >= 10:
        return f"{percent:.0f} %"
    if 0 < percent < _LEAST_PERCENT:
        return f"<\N{NO-BREAK SPACE}{_LEAST_PERCENT} %"
    return f"{percent:.2g} %" if percent else "0"


def accuracy_parts(accuracy: ModelErrors, known: LayerRows) -> list[Part]:
    """Errors of each layer, and of the outputs against the float model."""
    parts: list[Part] = []
    if (stats := accuracy.float_errors) is not None:
        same = (
            ""
            if stats.same_best is None
            else f"{100 * stats.same_best:.1f} % of {stats.num_rows} rows"
        )
        rows = [
            (
                error_text(stats.relative),
                f"{stats.sqnr_db:.1f}",
                f"{stats.cosine:.5f}",
                f"{stats.largest:.3g}",
                same,
            )
        ]
        columns = ["relative error>", "SQNR, dB>", "cosine>", "largest>", "same best class>"]
        parts.append(
            Table(f"Outputs against {accuracy.float_name} on {REFERENCE_BACKEND_ID}", columns, rows)
        )
    if accuracy.backend is None:
        text = f"All layers run on {REFERENCE_BACKEND_ID}, which defines the right numbers."
        return [*parts, Text(text)]
    if accuracy.failure:
        return [*parts, Text(f"Layers were not compared. {accuracy.failure}", "note")]
    names = {error.layer: known.name(error.layer, error.operation) for error in accuracy.errors}
    return [*parts, *_parts(accuracy.errors, accuracy.backend, names)]


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
    in_order = [arrays[value.name] for value in model.graph.inputs]
    return layer_errors(sides, model.graph, in_order, name)


def _parts(errors: Sequence[LayerError], backend: BackendId, names: _Names) -> list[Part]:
    """Return the page's parts about errors."""
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
                ("error after the last layer", f"{last:.3g}"),
            ]
        ),
        _verdict(errors, outside, names),
        *_pictures(errors, names),
    ]


def _pictures(errors: Sequence[LayerError], names: _Names) -> list[Part]:
    """Chart and table, where there is an error to show."""
    if not any(error.alone or error.together for error in errors):
        return []
    return [_chart(errors, names), _table(errors, names)]


def _verdict(errors: Sequence[LayerError], outside: Sequence[LayerError], names: _Names) -> Text:
    """Return the verdict in a line: whether all is well."""
    if errors and not any(error.alone or error.together for error in errors):
        return Text("Every element of every layer is the same on both.", "good")
    if not outside:
        return Text("Every layer keeps the tolerance of its type.", "good")
    first = outside[0]
    text = f"{len(outside)} layers leave the tolerance of their types; the first is "
    return Text(f"{text}{' '.join(names[first.layer])} on {first.backend}.", "bad")


def _chart(errors: Sequence[LayerError], names: _Names) -> Lines:
    """Errors by layer on a logarithmic scale; equal layers lie at its lower end."""
    numbers = [float(n) for n in range(len(errors))]
    labels = [" ".join(names[error.layer]) for error in errors]
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
            *reversed(names[error.layer]),
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

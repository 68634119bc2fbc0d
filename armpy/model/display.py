"""Showing: models and what belongs to them, for consoles and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from armpy.compiler.notebooks import tensors_html
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.compiler import Placement
    from armpy.execution.arrays.tensor_spec import TensorSpec
    from armpy.model.related_models import ModelT

_MOST_NAMES = 3


def describe(model: ModelT) -> str:
    """Describe a model in one line: its name, inputs and outputs, and where it runs."""
    kind = type(model).__name__
    if model.is_closed:
        return f"{kind}(closed)"
    name = f"{model.title!r}: " if model.title else ""
    where = "no shapes known yet"
    if model.is_light:  # nothing is loaded for that
        where = "prepared"
    elif model.placement is not None:
        where = "on " + (", ".join(model.placement.layers_by_backend) or "nothing")
    return f"{kind}({name}{_listed(model.inputs)} -> {_listed(model.outputs)}; {where})"


def _listed(specs: Sequence[TensorSpec]) -> str:
    """Tensors with types and shapes, the first ones if there are many."""
    shown = [f"{spec.name} {spec.data_type.name} {format_shape(spec.shape)}" for spec in specs]
    more = len(shown) - _MOST_NAMES
    return ", ".join(shown[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def model_html(model: ModelT) -> str:
    """Show a model to a notebook: inputs, outputs, placement."""
    if model.is_closed:
        return "<p>Model (closed)</p>"
    parts = [f"<p><b>{escape(model.title or type(model).__name__)}</b></p>"]
    for name, specs in (("Inputs", model.inputs), ("Outputs", model.outputs)):
        parts.append(tensors_html(name, [(spec.name, spec.info) for spec in specs]))
    placement: Placement | None = model.placement
    if placement is not None:
        parts.append(placement._repr_html_())
    return "".join(parts)

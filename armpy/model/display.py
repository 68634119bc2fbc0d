"""Showing: models and what belongs to them, for consoles and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from armpy.compiler.notebooks import placement_html, tensors_html
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.execution.arrays.tensor_spec import TensorSpec
    from armpy.model.opened_model import OpenedModel

_MOST_NAMES = 3


def describe(model: OpenedModel) -> str:
    """A model in one line: what it takes and gives, and where it runs; loads nothing for that."""
    if model.is_closed:
        return f"{type(model).__name__}(closed)"
    title = model.title
    edges = f"{_listed(model.inputs)} -> {_listed(model.outputs)}"
    return f"{type(model).__name__}({repr(title) + ': ' if title else ''}{edges}; {_where(model)})"


def _listed(specs: Sequence[TensorSpec]) -> str:
    """Tensors with types and shapes, the first ones if there are many."""
    shown = [f"{spec.name} {spec.data_type.name}{format_shape(spec.shape)}" for spec in specs]
    more = len(shown) - _MOST_NAMES
    return ", ".join(shown[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _where(model: OpenedModel) -> str:
    """Where a model runs, in a few words."""
    if model.is_quick:
        return "prepared"
    placement = model.placement
    if placement is None:
        return "no shapes known yet"
    return "on " + (", ".join(placement.layers_by_backend) or "nothing")


def model_html(model: OpenedModel) -> str:
    """A model as a notebook shows it: inputs, outputs, placement."""
    if model.is_closed:
        return "<p>Model (closed)</p>"
    parts = [f"<p><b>{escape(model.title or type(model).__name__)}</b></p>"]
    for title, specs in (("Inputs", model.inputs), ("Outputs", model.outputs)):
        parts.append(tensors_html(title, [(spec.name, spec.info) for spec in specs]))
    placement = model.placement
    if placement is not None:
        parts.append(placement_html(placement))
    return "".join(parts)

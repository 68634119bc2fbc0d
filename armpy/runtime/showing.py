"""Showing: models and what belongs to them, for consoles and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from armpy.notebooks import placement_html, table
from armpy.tensor import TensorInfo, format_shape

if TYPE_CHECKING:
    from armpy.runtime.opened_model import OpenedModel
    from armpy.runtime.tensor_spec import TensorSpec

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
    parts += [_specs_table("Inputs", model.inputs), _specs_table("Outputs", model.outputs)]
    placement = model.placement
    if placement is not None:
        parts.append(placement_html(placement))
    return "".join(parts)


def specs_html(specs: Sequence[TensorSpec]) -> str:
    """Inputs or outputs as a notebook shows them."""
    return _specs_table("", specs)


def _specs_table(title: str, specs: Sequence[TensorSpec]) -> str:
    """A table of inputs or outputs."""
    rows = [(s.name, s.data_type.name, format_shape(s.shape), _quantization(s.info)) for s in specs]
    return table(title, ("name", "type", "shape", "quantisation"), rows)


def _quantization(info: TensorInfo) -> str:
    """Scale and zero point, where a tensor has any."""
    if info.quantization is None:
        return ""
    if info.has_per_axis_quantization:
        return f"{len(info.quantization.scales)} scales along axis {info.quantization.axis}"
    return f"{info.scale:g} × (q − {info.zero_point})"

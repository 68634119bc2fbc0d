"""Showing: models and what belongs to them, for consoles and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from armpy.compiler.notebooks import placement_html, tensors_html
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.compiler import Placement
    from armpy.execution.arrays.tensor_spec import TensorSpec

_MOST_NAMES = 3


def describe(
    title: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], where: str
) -> str:
    """Describe a model in one line: its name, what it takes and gives, and where it runs."""
    name = f"{title!r}: " if title else ""
    return f"{name}{_listed(inputs)} -> {_listed(outputs)}; {where}"


def _listed(specs: Sequence[TensorSpec]) -> str:
    """Tensors with types and shapes, the first ones if there are many."""
    shown = [f"{spec.name} {spec.data_type.name}{format_shape(spec.shape)}" for spec in specs]
    more = len(shown) - _MOST_NAMES
    return ", ".join(shown[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def backends_of(placement: Placement | None) -> str:
    """Name the backends of a placement in a few words."""
    if placement is None:
        return "no shapes known yet"
    return "on " + (", ".join(placement.layers_by_backend) or "nothing")


def model_html(
    title: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    placement: Placement | None,
) -> str:
    """Show a model to a notebook: inputs, outputs, placement."""
    parts = [f"<p><b>{escape(title)}</b></p>"]
    for name, specs in (("Inputs", inputs), ("Outputs", outputs)):
        parts.append(tensors_html(name, [(spec.name, spec.info) for spec in specs]))
    if placement is not None:
        parts.append(placement_html(placement))
    return "".join(parts)

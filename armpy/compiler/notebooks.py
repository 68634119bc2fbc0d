"""Notebook displays: tables in HTML in the place of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from armpy.tensor import TensorInfo, format_shape

if TYPE_CHECKING:
    from armpy.compiler import Placement, Refusal

# Notebooks keep tables in their files, and refusals can be thousands.
_MOST_ROWS = 40


def placement_html(placement: Placement, refusals: Sequence[tuple[int, Refusal]]) -> str:
    """A placement report, with its counted refusals, as a notebook shows it."""
    counts = [(name, str(count)) for name, count in placement.layers_by_backend.items()]
    parts = [f"<p>{escape(str(placement))}</p>", table("Layers", ("backend", "layers"), counts)]
    if refusals:
        rows = [(r.operation, r.backend, r.text, str(count)) for count, r in refusals]
        parts.append(table("Refused", ("operation", "backend", "reason", "layers"), rows))
    return "".join(parts)


def tensors_html(title: str, tensors: Iterable[tuple[str, TensorInfo]]) -> str:
    """Inputs or outputs, by name, as a notebook shows them."""
    rows = [
        (name, info.data_type.name, format_shape(info.shape), _quantization(info))
        for name, info in tensors
    ]
    return table(title, ("name", "type", "shape", "quantisation"), rows)


def _quantization(info: TensorInfo) -> str:
    """Scale and zero point, where a tensor has any."""
    if info.quantization is None:
        return ""
    if info.has_per_axis_quantization:
        return f"{len(info.quantization.scales)} scales along axis {info.quantization.axis}"
    return f"{info.scale:g} × (q − {info.zero_point})"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for notebooks, its texts escaped, the first rows if there are many."""
    every = [*rows]
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        # Names come from model files and may hold markup.
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in every[:_MOST_ROWS]
    )
    if len(every) > _MOST_ROWS:
        body += f'<tr><td colspan="{len(columns)}">and {len(every) - _MOST_ROWS} more</td></tr>'
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

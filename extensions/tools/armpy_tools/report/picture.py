"""A file's layers as boxes and arrows to draw."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.core.dataclass import dataclass
from armpy.inspect import LayerFacts, LayerStatus, ModelFacts
from armpy.tensor import format_shape


@dataclass(frozen=True, slots=True)
class Box:
    """A layer, an input or an output.

    Parameters
    ----------
    lines : tuple of str
        The first one is its kind.
    kind : str
        The reason for its colour: ``input``, ``output``, a backend, or a `LayerStatus`.
    tip : str
        Further details, shown on hovering.
    """

    lines: tuple[str, ...]
    kind: str
    tip: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A tensor that one box hands to another.

    Parameters
    ----------
    source, target : int
        Places of boxes.
    label : str
        Its shape.
    """

    source: int
    target: int
    label: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One graph of a file.

    Parameters
    ----------
    title : str
        The layer that runs it, and its name there; empty for the main graph.
    boxes : tuple of Box
        In an order in which they can run.
    arrows : tuple of Arrow
    """

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def pictures(facts: ModelFacts, names: Mapping[str, str]) -> tuple[Picture, ...]:
    """The main graph, then those that control flow runs; weights are not drawn.

    Parameters
    ----------
    facts : ModelFacts
    names : mapping of str to str
        Short names of layers and tensors.
    """
    insides = dict.fromkeys(["", *(layer.inside for layer in facts.layers)])
    return tuple(_picture(facts, names, inside) for inside in insides)


def _picture(facts: ModelFacts, names: Mapping[str, str], inside: str) -> Picture:
    """One graph."""
    boxes: list[Box] = []
    writers: dict[int, int] = {}
    for tensor in facts.inputs if not inside else ():
        writers[tensor] = len(boxes)
        boxes.append(_edge_box(facts, tensor, "input"))
    layers = [layer for layer in facts.layers if layer.inside == inside]
    first = len(boxes)
    for number, layer in enumerate(layers, first):
        boxes.append(_layer_box(layer, names))
        writers.update(dict.fromkeys(layer.outputs, number))
    arrows = [
        Arrow(writers[tensor], number, format_shape(facts.tensors[tensor].shape))
        for number, layer in enumerate(layers, first)
        for tensor in dict.fromkeys(layer.inputs)
        if tensor in writers and tensor >= 0
    ]
    for tensor in facts.outputs if not inside else ():
        if tensor in writers:
            shape = format_shape(facts.tensors[tensor].shape)
            arrows.append(Arrow(writers[tensor], len(boxes), shape))
        boxes.append(_edge_box(facts, tensor, "output"))
    return Picture(inside, tuple(boxes), tuple(arrows))


def _edge_box(facts: ModelFacts, place: int, kind: str) -> Box:
    """An input or output."""
    tensor = facts.tensors[place]
    shape = f"{tensor.type} {format_shape(tensor.shape)}"
    return Box((tensor.name, shape), kind, f"{kind} {tensor.name}\n{shape}")


def _layer_box(layer: LayerFacts, names: Mapping[str, str]) -> Box:
    """A layer: its operator, and where it went."""
    where = " and ".join(layer.backends) or layer.status.value
    kind = where if layer.status in (LayerStatus.RUNS, LayerStatus.FUSED) else layer.status.value
    tip = [layer.name, f"{layer.type} {format_shape(layer.shape)}", f"{layer.status}: {where}"]
    tip += [f"{layer.parameters:,} parameters"] if layer.parameters else []
    tip += [f"{layer.macs:,} multiply-adds"] if layer.macs else []
    tip += [f"not {refusal.backend}: {refusal.text}" for refusal in layer.refusals]
    return Box((layer.operator, names.get(layer.name, layer.name)), kind, "\n".join(tip))

"""Preparation: which shapes a network is prepared for, and its first run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.graph import Graph
from armpy.graph.network import chosen_shape

if TYPE_CHECKING:
    from armpy.execution.loaded_network import LoadedNetwork


def input_shapes(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]] | None
) -> list[tuple[int, ...]]:
    """Complete the shapes of inputs where some are given by name.

    Parameters
    ----------
    shapes : mapping of str to tuple of int, optional
        Those that differ from the default.
    """
    by_name = shapes or {}
    names = [value.name for value in graph.inputs]
    unknown = [name for name in by_name if name not in names]
    if unknown:
        raise InvalidArgumentError(
            "the network has no such input",
            expected=", ".join(names),
            actual=", ".join(map(repr, unknown)),
        )
    chosen = []
    for value, default in zip(graph.inputs, graph.default_shapes, strict=True):
        shape = by_name.get(value.name)
        if shape is None:
            shape = value.info.known_shape if value.info.is_fully_shaped else default
        if shape is None:
            raise InvalidArgumentError(
                "an input has no shape yet", where=f"input '{value.name}'", fix="Give it one"
            )
        chosen.append(chosen_shape(value.name, value.info.shape, shape))
    return chosen


def warm_up(
    network: LoadedNetwork,
    several: Sequence[Mapping[str, tuple[int, ...]] | None],
    most: int,  # so many plans does the network keep
    timeout_s: float | None = None,  # how long to wait for what is compiled in the background
) -> None:
    """Prepare a network for some shapes each, and run it once for each.

    Raises InvalidArgumentError if there are more, or one does not fit what the network leaves open;
    ArmpyError as from `Tiers.wait`.
    """
    if len(several) > most:
        raise InvalidArgumentError(
            "the model does not stay prepared for so many shapes",
            where="warm_up",
            expected=f"at most {most} (RuntimeOptions.plan_cache_size)",
            actual=str(len(several)),
        )
    every = [input_shapes(network.graph, shapes) for shapes in several]
    for chosen in every:
        network.prepare(chosen)
    if network.tiers is not None:
        network.tiers.wait(timeout_s)
    for chosen in every:
        if network.graph.variables:  # a run would change them
            network.plan(tuple(chosen)).make_ready()
            continue
        pairs = zip(network.graph.inputs, chosen, strict=True)
        network.run([value.info.data_type.zeros(shape) for value, shape in pairs])

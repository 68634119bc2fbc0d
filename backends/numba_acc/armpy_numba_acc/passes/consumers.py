"""Tensors that one layer alone reads: their layer and that one can become one."""

from __future__ import annotations

from collections.abc import Collection

from armpy.graph import Layer, SubgraphView, Value


def only_consumer(view: SubgraphView, value: Value, outside: Collection[Value]) -> Layer | None:
    """The only layer that reads a tensor, once; None if others do.

    Parameters
    ----------
    outside
        The view's outputs, which others read.
    """
    readers = view.consumers.get(value, ())
    if len(readers) != 1 or value in outside or readers[0].inputs.count(value) != 1:
        return None
    return readers[0]

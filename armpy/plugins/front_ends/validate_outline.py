"""Outlines of files from plugins' front-ends, checked and made plain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from armpy.errors import ParserError
from armpy.plugins.hooks.outline import LEFT_OUT, FileGraph, FileOperator, FileOutline, FileTensor
from armpy.plugins.proxy.guarded_call import describe, plain_text

T = TypeVar("T")


def plain_outline(given: object) -> FileOutline:
    """An outline of plain texts and numbers, whose places all lead somewhere.

    Raises
    ------
    ParserError
        If it is something else, or a place leads nowhere.
    BaseException
        Whatever the plugin's objects raise.
    """
    if type(given) is not FileOutline:
        raise _wrong("FileOutline", given)
    graphs = _items(FileGraph, given.graphs)
    if not graphs:
        raise ParserError("the outline has no graph")
    return FileOutline(tuple(_graph(graph, len(graphs)) for graph in graphs))


def _graph(given: FileGraph, num_graphs: int) -> FileGraph:
    tensors = tuple(_tensor(tensor) for tensor in _items(FileTensor, given.tensors))
    return FileGraph(
        plain_text(given.name),
        tensors,
        tuple(
            _operator(operator, len(tensors), num_graphs)
            for operator in _items(FileOperator, given.operators)
        ),
        _places(given.inputs, len(tensors), 0),
        _places(given.outputs, len(tensors), 0),
    )


def _operator(given: FileOperator, num_tensors: int, num_graphs: int) -> FileOperator:
    # Gone through once: it may be an iterator.
    runs = [(plain_text(name), place) for name, place in given.graphs]
    places = _places([place for _, place in runs], num_graphs, 0)
    return FileOperator(
        plain_text(given.kind),
        plain_text(given.name),
        _places(given.inputs, num_tensors, LEFT_OUT),
        _places(given.outputs, num_tensors, LEFT_OUT),
        tuple(map(plain_text, given.layer_names)),
        tuple((name, place) for (name, _), place in zip(runs, places, strict=True)),
    )


def _tensor(given: FileTensor) -> FileTensor:
    shape = given.shape
    return FileTensor(
        plain_text(given.name),
        None if shape is None else tuple(None if dim is None else int(dim) for dim in shape),
        plain_text(given.type),
        # Not by `bool`, which would run the code of other objects.
        given.is_constant is True,
        given.is_parameter is True,
        None if given.size_bytes is None else int(given.size_bytes),
        tuple(float(scale) for scale in given.scales),
        tuple(int(point) for point in given.zero_points),
        None if given.axis is None else int(given.axis),
    )


def _places(given: Iterable[int], count: int, lowest: int) -> tuple[int, ...]:
    places = tuple(int(place) for place in given)
    for place in places:
        if not lowest <= place < count:
            raise ParserError(
                "a place in the outline leads nowhere",
                expected=f"{lowest} to {count - 1}",
                actual=str(place),
            )
    return places


def _items(kind: type[T], given: object) -> tuple[T, ...]:
    """A list of things of one type, not of subclasses that are code."""
    if not isinstance(given, list | tuple):
        raise _wrong(f"a list of {kind.__name__}", given)
    for item in given:
        if type(item) is not kind:
            raise _wrong(kind.__name__, item)
    return tuple(given)


def _wrong(expected: str, given: object) -> ParserError:
    return ParserError(
        "a part of the outline has the wrong type", expected=expected, actual=describe(given)
    )

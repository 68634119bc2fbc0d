"""Key of a placement decision: a text that is equal where all that it depends on is."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable

import numpy as np

from armpy import __version__
from armpy.graph import Graph, Value
from armpy.plugins.hooks import PlacementQuestion

_FORMAT = 1
_MOST_BYTES = 4096


def question_text(question: PlacementQuestion) -> str:
    """The text that a decision is kept under; it does not say on which machine."""
    about = f"{question.preference} {question.environment}"
    choices, model_options = question.choices, question.model_options
    parts = [
        ["placement", _FORMAT, __version__, about, _num_processors()],
        content_digest(question.graph),
        hashlib.sha256(
            repr(sorted((k, tuple(v)) for k, v in choices.items())).encode()
        ).hexdigest(),
        [
            [
                b.get_id(),
                b.version,
                # In order, as equal options may have been given in another one.
                sorted(map(repr, model_options.get(b.get_id(), {}).items())),
            ]
            for b in question.backends
        ],
    ]
    return json.dumps(parts)


def _num_processors() -> int:
    """Processors that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    # Containers allow fewer than there are; macOS and Windows do not report them.
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def content_digest(graph: Graph) -> str:
    """Digest of all that decides how long a graph takes: 64 hexadecimal digits.

    Notes
    -----
    Layers, attributes, types and shapes; of constants the first 4 KiB only, as what large weights
    hold does not matter.
    """
    digest = hashlib.sha256()
    for text in _texts(graph):
        digest.update(text if isinstance(text, bytes) else text.encode())
        # Texts that are divided otherwise must not come to the same bytes.
        digest.update(b"\0")
    return digest.hexdigest()


def _texts(graph: Graph) -> Iterable[str | bytes]:
    """Everything about a graph, in order."""
    numbers: dict[Value, int] = {}
    for value in graph.sources:
        yield f"source {_number(numbers, value)} {value.info}"
    for layer in graph.layers:
        # With ids, as a decision names its layers by them.
        yield f"layer {layer.id} {type(layer.operation).__module__} {layer.operation.name}"
        for name, attribute in layer.operation.attributes().items():
            yield name
            yield from _texts(attribute) if isinstance(attribute, Graph) else [_text(attribute)]
        for read in layer.inputs:
            if read is None:
                yield "none"
            elif read.data is None:
                yield f"value {_number(numbers, read)}"
            else:
                yield f"constant {read.info}"
                yield _text(read.data)
        for output in layer.outputs:
            yield f"output {_number(numbers, output)} {output.info}"
    yield f"results {[numbers.get(value, -1) for value in graph.results]}"


def _number(numbers: dict[Value, int], value: Value) -> int:
    """The same for a value whatever its graph counts from."""
    return numbers.setdefault(value, len(numbers))


def _text(attribute: object) -> str | bytes:
    """An attribute or constant."""
    # The text of a large array leaves its middle out and takes long.
    if isinstance(attribute, np.ndarray) and not attribute.dtype.hasobject:
        return attribute.reshape(-1)[: _MOST_BYTES // max(attribute.itemsize, 1)].tobytes()
    if isinstance(attribute, np.ndarray):  # of strings, whose bytes are addresses
        return repr(attribute.reshape(-1)[:_MOST_BYTES].tolist())
    return repr(attribute)

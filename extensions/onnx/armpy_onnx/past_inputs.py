"""Past inputs of decoders: the present outputs that follow them, by exporters' names."""

from __future__ import annotations

import re
from collections.abc import Iterable

import onnx

_ROLES = re.compile(
    r"(past|present)(_key_values?|_kv)?(?![a-z])|(?<![a-z])(in|out|prev|next|old|new)(?![a-z])"
)
"""Words in which the names of a past input and its present output differ."""

_NEXT = re.compile("(?<=[a-z])n$")
"""Ends the names of new states: ``stateN`` follows ``state``, ``hn`` ``h``."""


def present_outputs(graph: onnx.GraphProto, initial: Iterable[str]) -> dict[str, str]:
    """Present outputs by past input, which have its type and, where both are known, its sizes.

    `initial` has the names of initialisers, which are not inputs. None is found if an output
    would follow two inputs.
    """
    outputs: dict[str, onnx.ValueInfoProto] = {}
    for value in graph.output:
        for key in (_role_free(value.name), _NEXT.sub("", _role_free(value.name))):
            outputs.setdefault(key, value)
    pairs = {}
    for value in graph.input:
        key = _role_free(value.name)
        present = outputs.get(key)
        is_named = key or "past" in value.name.lower()  # an input "in" has no output "out"
        if (
            present is not None
            and is_named
            and value.name not in initial
            and _agree(value.type.tensor_type, present.type.tensor_type)
        ):
            pairs[value.name] = present.name
    return pairs if len({*pairs.values()}) == len(pairs) else {}


def _role_free(name: str) -> str:
    """A name without the words that say past or present."""
    return re.sub(r"[^a-z0-9]+", ".", _ROLES.sub("", name.lower())).strip(".")


def _agree(past: onnx.TypeProto.Tensor, present: onnx.TypeProto.Tensor) -> bool:
    """Return whether two tensors can have one type and shape."""
    if past.elem_type != present.elem_type or not past.elem_type:
        return False
    if not (past.HasField("shape") and present.HasField("shape")):
        return True
    sizes = [[dim.dim_value for dim in tensor.shape.dim] for tensor in (past, present)]
    return len(sizes[0]) == len(sizes[1]) and all(
        min(a, b) <= 0 or a == b for a, b in zip(*sizes, strict=True)
    )

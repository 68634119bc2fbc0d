# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol's own rules for answers that its clients have read.

References
----------
Open Inference Protocol, version 2: ``inference_rest.md``, ``open_inference_rest.yaml``,
``open_inference_grpc.proto``.
"""

from __future__ import annotations

import math
from typing import Any

SIZES = {
    "BOOL": 1,
    "UINT8": 1,
    "UINT16": 2,
    "UINT32": 4,
    "UINT64": 8,
    "INT8": 1,
    "INT16": 2,
    "INT32": 4,
    "INT64": 8,
    "FP16": 2,
    "FP32": 4,
    "FP64": 8,
    "BF16": 2,
}
"""Bytes of an element, by datatype."""


def check_answer(document: Any, tail: int = 0) -> None:
    """``POST v2/models/NAME/infer``; `tail` bytes follow the JSON."""
    _has(
        document,
        {"model_name": str, "outputs": list},
        {"model_version": str, "id": str, "parameters": dict},
    )
    for tensor in document["outputs"]:
        _has(
            tensor,
            {"name": str, "datatype": str, "shape": list},
            {"parameters": dict, "data": list},
        )
        count = math.prod(tensor["shape"])
        size = tensor.get("parameters", {}).get("binary_data_size")
        if size is None:
            assert len(_flat(tensor["data"])) == count, tensor
        else:
            assert "data" not in tensor
            assert size == count * SIZES[tensor["datatype"]], tensor
            tail -= size
    assert tail == 0, "bytes that belong to no output"


def check_message(answer: Any) -> None:
    """``ModelInferResponse`` of gRPC."""
    assert answer.model_name
    raw = answer.raw_output_contents
    assert len(raw) in (0, len(answer.outputs)), "raw contents are for all outputs, or for none"
    for tensor, contents in zip(answer.outputs, raw, strict=False):
        assert not tensor.HasField("contents"), "raw and typed contents do not go together"
        assert len(contents) == math.prod(tensor.shape) * SIZES[tensor.datatype]


def _has(document: Any, needed: dict[str, type], allowed: dict[str, type]) -> None:
    """Whether an object has the keys that it must have, and no others than it may have."""
    assert isinstance(document, dict), document
    for key, kind in needed.items():
        assert isinstance(document.get(key), kind), (key, document)
    assert document.keys() <= needed.keys() | allowed.keys(), document
    for key, kind in allowed.items():
        assert isinstance(document.get(key, kind()), kind), (key, document)


def _flat(data: list[Any]) -> list[Any]:
    """Nested lists as one."""
    return [n for item in data for n in (_flat(item) if isinstance(item, list) else [item])]

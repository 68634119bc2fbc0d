"""Cases of one operator each, as ONNX Runtime's tests for browsers keep them in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from .cases import ELEMENT_TYPES, Array, Case, Tolerance

FOLDER = "js/web/test/data/ops"
TOLERANCE = Tolerance(absolute=1e-3, relative=1e-5)
"""The tolerance of the suite's own runner for ONNX Runtime on the processor."""

_DEFAULT_OPSET = 13
_NEWEST_IR = 10
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[\]}])")
Json = dict[str, Any]  # Any: as parsed


def cases(checkout: Path) -> Iterator[Case]:
    """Read all cases of a checkout of ONNX Runtime; the example of the format is left out."""
    for path in sorted((checkout / FOLDER).glob("*.jsonc")):
        if not path.name.startswith("_"):
            for group in json.loads(_plain(path.read_text(encoding="utf-8"))):
                for case in group["cases"]:
                    yield _case(f"{path.stem}/{group['name']}/{case['name']}", group, case)


def _plain(text: str) -> str:
    """JSON without comments and trailing commas."""
    return _TRAILING_COMMA.sub(r"\1", _COMMENT.sub(lambda match: match[1] or "", text))


def _case(name: str, group: Json, case: Json) -> Case:
    inputs = [_tensor(tensor) for tensor in case["inputs"]]
    expected = [_tensor(tensor) for tensor in case["outputs"]]
    input_names = [f"input_{i}" if a is not None else "" for i, a in enumerate(inputs)]
    output_names = [f"output_{i}" if a is not None else "" for i, a in enumerate(expected)]
    opset = group.get("opset", {"domain": "", "version": _DEFAULT_OPSET})
    attributes = {a["name"]: _attribute(a) for a in group.get("attributes", ())}
    node = helper.make_node(
        group["operator"], input_names, output_names, domain=opset["domain"], **attributes
    )
    shapes = group.get("inputShapeDefinitions", "rankOnly")
    graph = helper.make_graph(
        [node],
        "case",
        [
            helper.make_tensor_value_info(name, _type(tensor), _shape(shapes, i, tensor))
            for i, (name, tensor) in enumerate(zip(input_names, case["inputs"], strict=True))
            if name
        ],
        [
            helper.make_tensor_value_info(name, _type(tensor), None)
            for name, tensor in zip(output_names, case["outputs"], strict=True)
            if name
        ],
    )
    opsets = {"": _DEFAULT_OPSET, opset["domain"]: opset["version"]}
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*item) for item in opsets.items()]
    )
    model.ir_version = min(model.ir_version, _NEWEST_IR)
    return Case(name, model, _named(input_names, inputs), _named(output_names, expected), TOLERANCE)


def _named(names: list[str], arrays: list[Array | None]) -> dict[str, Array]:
    return {name: array for name, array in zip(names, arrays, strict=True) if array is not None}


def _tensor(tensor: Json) -> Array | None:
    """The array of a tensor; None for an operand that is left out."""
    if tensor["data"] is None:
        return None
    dtype = helper.tensor_dtype_to_np_dtype(_type(tensor))
    numbers = [float(n) if isinstance(n, str) and dtype.kind == "f" else n for n in tensor["data"]]
    return np.array(numbers).astype(dtype).reshape(tensor["dims"])


def _type(tensor: Json) -> int:
    return ELEMENT_TYPES[tensor["type"]]


def _attribute(attribute: Json) -> Any:  # Any: of each kind of attribute
    if attribute["type"] == "tensor":
        return onnx.numpy_helper.from_array(_tensor(attribute["data"]))
    if attribute["type"] in {"float", "floats"}:
        return np.array(attribute["data"], np.float64).tolist()
    return attribute["data"]


def _shape(shapes: Any, index: int, tensor: Json) -> list[int | str]:  # Any: a word or a list
    """The declared shape of an input: its own, or names for its axes."""
    if isinstance(shapes, list):
        return list(shapes[index])
    if shapes == "static":
        return list(tensor["dims"])
    return [f"input_{index}_axis_{axis}" for axis in range(len(tensor["dims"]))]

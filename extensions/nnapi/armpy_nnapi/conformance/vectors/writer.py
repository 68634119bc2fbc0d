"""Writes test vectors, for examples that are to be kept and run again."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from armpy.ops.operation import Array
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.vectors.example import Example, Json
from armpy_nnapi.description.model_description import Operand, Subgraph


def write_examples(path: Path, examples: Sequence[Example]) -> None:
    """Write examples to one file that `read_file` reads.

    Parameters
    ----------
    path : Path
        Ends in ``.json.gz``; folders above it are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump([_item(example) for example in examples], file)


def _item(example: Example) -> Json:
    main = example.model.main
    elements = dict(zip(main.inputs, example.inputs, strict=True))
    elements.update(zip(main.outputs, example.outputs, strict=True))
    return {
        "name": example.name,
        "relaxed": example.model.relaxed,
        "expectFailure": example.expects_failure,
        "multinomialTolerance": example.multinomial_tolerance,
        "minVersion": f"V1_{example.feature_level - 27}",
        "main": _graph(main, elements, set(main.outputs)),
        "referenced": [_graph(graph, {}, set()) for graph in example.model.referenced],
    }


def _graph(graph: Subgraph, elements: dict[int, Array | None], compared: set[int]) -> Json:
    """One graph; `elements` are those of its inputs and outputs."""
    operands = []
    for index, operand in enumerate(graph.operands):
        item = _operand(operand)
        array = elements.get(index)
        if array is not None:
            item["data"] = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        elif index in compared:
            item["isIgnored"] = True
        operands.append(item)
    return {
        "operands": operands,
        "operations": [
            {
                "type": OperationCode(node.type).name,
                "inputs": list(node.inputs),
                "outputs": list(node.outputs),
            }
            for node in graph.operations
        ],
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
    }


def _operand(operand: Operand) -> Json:
    """One operand, with its elements if it is a constant."""
    code = OperandCode(operand.type)
    item: Json = {
        "type": "SUBGRAPH" if code is OperandCode.MODEL else code.name,
        "dimensions": list(operand.dimensions),
        "scale": operand.scale,
        "zeroPoint": operand.zero_point,
        "lifetime": operand.lifetime.name,
        "data": None,
    }
    if operand.data is not None:
        item["data"] = base64.b64encode(bytes(operand.data)).decode()
    if operand.channel_quant is not None:
        quant = asdict(operand.channel_quant)
        item["channelQuant"] = {
            "scales": list(quant["scales"]),
            "channelDim": quant["channel_dim"],
        }
    if operand.subgraph is not None:
        item["subgraph"] = operand.subgraph
    return item

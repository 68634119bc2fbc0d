"""Reads test vectors."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import ParserError
from armpy.ops.operation import Array
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import (
    ChannelQuant,
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)

Json: TypeAlias = dict[str, Any]  # Any: what a file holds is checked where it is used


@dataclass(frozen=True, slots=True)
class Example:
    """One published example: a model, inputs for it, and the outputs expected."""

    name: str
    file: str  # where it comes from, for messages
    model: ModelDescription  # inputs and outputs without elements
    inputs: tuple[Array | None, ...]  # in the model's order; None for one that is left out
    outputs: tuple[Array | None, ...]
    """Expected outputs in the model's order, flat where dimensions are not known; None for one that
    is not compared.
    """
    expects_failure: bool = False  # whether compilation or execution must fail
    multinomial_tolerance: float = 0.0  # above 0, outputs are samples, and frequencies are compared
    feature_level: int = 27  # lowest feature level that has all of the model

    @property
    def operations(self) -> tuple[str, ...]:
        """Names of the main graph's operations, each once, in order of appearance."""
        names = [OperationCode(node.type).name for node in self.model.main.operations]
        return tuple(dict.fromkeys(names))

    def output_operand(self, position: int) -> Operand:
        """Return the model's declaration of an output."""
        return self.model.main.operands[self.model.main.outputs[position]]

    def output_shape(self, position: int) -> tuple[int, ...] | None:
        """The dimensions that an output must come to; None where the model leaves them open."""
        operand = self.output_operand(position)
        if not operand.is_tensor:
            return ()
        return operand.dimensions if operand.dimensions and 0 not in operand.dimensions else None

    def with_unknown_outputs(self) -> Example:
        """The same with all dimensions of the model's outputs unknown, ranks kept."""
        main = self.model.main
        operands = list(main.operands)
        for index in main.outputs:
            unknown = (0,) * len(operands[index].dimensions)
            operands[index] = replace(operands[index], dimensions=unknown)
        model = replace(self.model, main=replace(main, operands=tuple(operands)))
        return replace(self, model=model)


def read_examples(directory: Path) -> Iterator[Example]:
    """Every example of the files in a directory and those below it, in order of their paths.

    Raises
    ------
    ParserError
        If a file is not of the vectors' format.
    """
    for path in sorted(directory.rglob("*.json.gz")):
        yield from read_file(path)


_UNREADABLE = (
    OSError,
    EOFError,
    zlib.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)
"""Exceptions from decompressing, parsing and looking for the parts of an example."""


def read_file(path: Path) -> list[Example]:
    """The examples of one file.

    Raises
    ------
    ParserError
        If it is not of the vectors' format.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            items = json.load(file)
        return [_example(item, path.name) for item in items]
    except _UNREADABLE as error:
        raise ParserError(
            f"the file cannot be read as test vectors: {type(error).__name__} {error}",
            where=str(path),
        ) from error


_LEVELS: Mapping[str, int] = {
    "V1_0": 27,
    "V1_1": 28,
    "V1_2": 29,
    "V1_3": 30,
}


def _example(item: Json, file: str) -> Example:
    main = item["main"]
    operands = main["operands"]
    model = ModelDescription(
        _subgraph(main),
        tuple(map(_subgraph, item["referenced"])),
        relaxed=bool(item["relaxed"]),
    )
    outputs = []
    for index in main["outputs"]:
        is_compared = not operands[index].get("isIgnored", False)
        outputs.append(
            _elements(model.main.operands[index], operands[index]) if is_compared else None
        )
    return Example(
        str(item["name"]),
        file,
        model,
        tuple(_elements(model.main.operands[i], operands[i]) for i in main["inputs"]),
        tuple(outputs),
        bool(item["expectFailure"]),
        float(item["multinomialTolerance"]),
        _LEVELS.get(str(item["minVersion"]), 30),
    )


def _subgraph(item: Json) -> Subgraph:
    """A graph of an example."""
    return Subgraph(
        tuple(map(_operand, item["operands"])),
        tuple(
            OperationNode(OperationCode[op["type"]], tuple(op["inputs"]), tuple(op["outputs"]))
            for op in item["operations"]
        ),
        tuple(item["inputs"]),
        tuple(item["outputs"]),
    )


_TYPES: Mapping[str, OperandCode] = {"SUBGRAPH": OperandCode.MODEL}


def _operand(item: Json) -> Operand:
    """An operand of a graph, without the elements of inputs and outputs."""
    lifetime = Lifetime[item["lifetime"]]
    quant = item.get("channelQuant")
    data = None
    if lifetime.is_constant and item.get("data") is not None:
        data = base64.b64decode(item["data"])
    return Operand(
        _TYPES[item["type"]] if item["type"] in _TYPES else OperandCode[item["type"]],
        tuple(item["dimensions"]),
        float(item["scale"]),
        int(item["zeroPoint"]),
        lifetime,
        data,
        None if quant is None else ChannelQuant(tuple(quant["scales"]), int(quant["channelDim"])),
        subgraph=item.get("subgraph"),
    )


def _elements(operand: Operand, item: Json) -> Array | None:
    """Elements of an input or output; None for an input without a value.

    Notes
    -----
    Of the declared shape, or flat where dimensions are not known.
    """
    data = base64.b64decode(item["data"] or "")
    if not data and operand.lifetime is Lifetime.SUBGRAPH_INPUT:
        return None
    dtype = operand.data_type.dtype
    array: Array = np.frombuffer(data, np.uint8 if dtype == np.bool_ else dtype)
    if dtype == np.bool_:
        array = array != 0
    return array.reshape(operand.dimensions) if 0 not in operand.dimensions else array

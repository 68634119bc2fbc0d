"""Outlines of plugins' front-ends: checked, and made of plain types."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from armpy.errors import ParserError
from armpy.plugins.front_ends.validate_records import plain_outline
from armpy.plugins.hooks.outline import FileGraph, FileOperator, FileOutline, FileTensor

TENSOR = FileTensor("x", (None, 2), "FLOAT32")
OPERATOR = FileOperator("IF", "branch", (0, -1), (0,), graphs=(("then", 0),))


def outline(tensor: FileTensor = TENSOR, operator: FileOperator = OPERATOR) -> FileOutline:
    return FileOutline((FileGraph("main", (tensor,), (operator,), (0,), (0,)),))


def test_numbers_and_truth_values_of_numpy_become_pythons() -> None:
    numbers: dict[str, Any] = {"shape": (None, np.int64(2)), "is_constant": np.True_}
    plain = plain_outline(outline(dataclasses.replace(TENSOR, **numbers)))
    assert plain == outline(dataclasses.replace(TENSOR, is_constant=True))
    tensor = plain.graphs[0].tensors[0]
    assert type(tensor.is_constant) is bool
    assert tensor.shape is not None
    assert type(tensor.shape[1]) is int


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("size_bytes", "3", "a whole number"),
        ("size_bytes", 3.7, "a whole number"),
        ("zero_points", ("x",), "a whole number"),
        ("is_constant", 1, "True or False"),
        ("is_parameter", None, "True or False"),
        ("is_parameter", "yes", "True or False"),
    ],
)
def test_values_of_another_type_are_refused(field: str, value: object, expected: str) -> None:
    changed: Any = {field: value}
    with pytest.raises(ParserError, match=f"wrong type. Expected {expected}"):
        plain_outline(outline(dataclasses.replace(TENSOR, **changed)))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"inputs": (7,)}, r"'branch': tensor index 7 is out of range\. Expected -1 to 0"),
        ({"outputs": (-2,)}, "tensor index -2"),
        ({"graphs": (("then", 1),)}, r"graph 'main' .* graph index 1 .* Expected 0 to 0"),
    ],
)
def test_indexes_out_of_range_name_operator_and_graph(changed: Any, text: str) -> None:
    with pytest.raises(ParserError, match=text):
        plain_outline(outline(operator=dataclasses.replace(OPERATOR, **changed)))

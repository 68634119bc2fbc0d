"""Operators on strings."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.text import (
    CaseChange,
    RegexFullMatch,
    StringConcat,
    StringNormalizer,
    StringSplit,
)
from armpy.types import DataType
from armpy_onnx.node import Node, Operator, OperatorTable


def _string_concat(node: Node) -> Value:
    return node.layer(StringConcat(), node.value(0), node.value(1))


def _string_split(node: Node) -> tuple[Value, ...]:
    # An empty delimiter is one left out: white space.
    delimiter = node.text("delimiter", "")
    most = node.attribute("maxsplit")
    limit = -1 if most is None else max(node.integer("maxsplit"), -1)
    return node.layers(StringSplit(delimiter, limit), [node.value(0)])


def _string_normalizer(node: Node) -> Value:
    case_change = node.choice("case_change_action", "NONE", CaseChange.__members__)
    is_case_sensitive = node.flag("is_case_sensitive")
    operation = StringNormalizer(case_change, is_case_sensitive, node.strings("stopwords"))
    return node.layer(operation, node.value(0))


def _regex_full_match(node: Node) -> Value:
    return node.layer(RegexFullMatch(node.text("pattern")), node.value(0))


OPERATORS: OperatorTable = {
    "RegexFullMatch": Operator(_regex_full_match, types=(DataType.BOOLEAN,)),
    "StringConcat": Operator(_string_concat),
    "StringNormalizer": Operator(_string_normalizer),
    "StringSplit": Operator(_string_split, types=(DataType.STRING, DataType.SIGNED64)),
}

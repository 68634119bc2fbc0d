"""Operators on strings."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.text import (
    CaseChange,
    RegexFullMatch,
    StringConcat,
    StringNormalizer,
    StringSplit,
    Tokenizer,
)
from armpy.types import DataType
from armpy_onnx.blocks import reshaped
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


_ANY_CHARACTER = "(?s)."


def _tokenizer(node: Node) -> Value:
    """Tokens, or characters if that is what the pattern or the only separator says.

    Notes
    -----
    Of an input without elements, ONNX Runtime makes an output without the tokens' axis.
    """
    is_marked, padding = bool(node.integer("mark")), node.text("pad_value")
    least, separators = node.integer("mincharnum"), node.strings("separators")
    pattern = "" if separators else node.text("tokenexp", "")
    if separators == ("",) or pattern == ".":
        if least > 1:
            raise node.error(
                "single characters have fewer characters than 'mincharnum'",
                expected="1",
                actual=least,
            )
        separators, pattern = (), _ANY_CHARACTER
    operation = Tokenizer(separators, pattern, least, padding, is_marked)
    shape = node.shape(0)
    if len(shape) in (1, 2) and 0 in shape:
        return reshaped(node, node.value(0), (*shape[:-1], 0))
    return node.layer(operation, node.value(0))


OPERATORS: OperatorTable = {
    "RegexFullMatch": Operator(_regex_full_match, types=(DataType.BOOLEAN,)),
    "StringConcat": Operator(_string_concat),
    "StringNormalizer": Operator(_string_normalizer),
    "StringSplit": Operator(_string_split, types=(DataType.STRING, DataType.SIGNED64)),
    "com.microsoft.Tokenizer": Operator(_tokenizer),
}

"""The schema's table says what Arm NN's published schema says."""

from __future__ import annotations

import re

from armpy_compat.armnn_format.parser import CONVERTERS
from armpy_compat.armnn_format.schema import ARMNN_SCHEMA, ENUMERATIONS
from armpy_testing.shared import shared_file

_NUMBERS = {
    **{"uint": "I", "int": "i", "float": "f", "bool": "?", "byte": "b", "string": "text"},
    **{"Connection": "Q", "ConstTensorData": "union", "Layer": "union"},
}
_VECTORS = {"uint": "[I]", "int": "[i]", "float": "[f]", "bool": "[B]", "byte": "[B]"} | {
    "short": "[H]",
    "long": "[q]",
}
_UNIONS = {"Layer": "layer", "ConstTensorData": "data"}
NOT_CONVERTED = {"Input", "Output", "Constant"}
"""Kinds that the parser itself treats."""


def _schema() -> str:
    text = shared_file("armnn_tests", "ArmnnSchema.fbs").read_text(encoding="utf-8")
    return re.sub(r"//[^\n]*", "", text)


def _names(body: str) -> list[str]:
    return [item.split("=")[0].strip() for item in body.split(",") if item.strip()]


def test_every_field_of_every_table_is_where_the_schema_has_it() -> None:
    text = _schema()
    kinds = dict(re.findall(r"enum (\w+)\s*:\s*(\w+)", text))
    tables = dict(re.findall(r"table (\w+)\s*\{(.*?)\}", text, re.S))
    assert set(tables) == set(ARMNN_SCHEMA.tables)
    for table, body in tables.items():
        expected: dict[str, tuple[int, str]] = {}
        number = 0
        for name, kind in re.findall(r"(\w+)\s*:\s*([\w\[\]]+)", body):
            plain = kinds.get(kind, kind)
            inner = plain.strip("[]")
            code = (
                _VECTORS.get(inner, plain) if plain.startswith("[") else _NUMBERS.get(plain, plain)
            )
            number += code == "union"
            expected[name] = number, code
            number += 1
        fields = {name: field[:2] for name, field in ARMNN_SCHEMA.tables[table].items()}
        assert fields == expected, table


def test_defaults_are_those_of_the_schema() -> None:
    text = _schema()
    enumerations = dict(re.findall(r"enum (\w+)\s*:\s*\w+\s*\{(.*?)\}", text, re.S))
    for table, body in re.findall(r"table (\w+)\s*\{(.*?)\}", text, re.S):
        for field in body.split(";"):
            name, _, declared = field.strip().partition(":")
            kind, has_default, default = (part.strip() for part in declared.partition("="))
            if not name or kind in ("Connection", "LayerBase"):
                continue
            if kind in enumerations and has_default:
                expected = float(_names(enumerations[kind]).index(default))
            else:
                expected = float({"true": "1", "false": "0"}.get(default, default or "0"))
            assert ARMNN_SCHEMA.tables[table][name][2] == expected, (table, name)


def test_enumerations_and_unions_are_those_of_the_schema() -> None:
    text = _schema()
    for name, body in re.findall(r"enum (\w+)\s*:\s*\w+\s*\{(.*?)\}", text, re.S):
        assert ENUMERATIONS[name].split() == _names(body)
    for name, body in re.findall(r"union (\w+)\s*\{(.*?)\}", text, re.S):
        assert ENUMERATIONS[_UNIONS[name]].split() == ["NONE", *_names(body)]


def test_every_kind_of_layer_is_converted() -> None:
    kinds = set(ENUMERATIONS["LayerType"].split())
    assert len(kinds) == 72
    assert set(CONVERTERS) | NOT_CONVERTED == kinds

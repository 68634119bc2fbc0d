"""What the front-end knows of the schema is what the `tflite` package says."""

from __future__ import annotations

import importlib
import pkgutil
import struct
import subprocess
import sys
from typing import Any

import flatbuffers
import pytest
import tflite
from flatbuffers import number_types

from armpy.core.flatbuffers.reader import Ledger, TableReader
from armpy.errors import ParserError
from armpy.frontends.tflite import operators
from armpy.frontends.tflite.operators import CONVERTERS
from armpy.frontends.tflite.reader import TFLITE_SCHEMA, TfliteTable, enumerators
from armpy.frontends.tflite.schema import ENUMERATIONS, TABLES

FLAGS = {
    "b": number_types.Int8Flags,
    "B": number_types.Uint8Flags,
    "i": number_types.Int32Flags,
    "I": number_types.Uint32Flags,
    "q": number_types.Int64Flags,
    "Q": number_types.Uint64Flags,
    "f": number_types.Float32Flags,
    "?": number_types.BoolFlags,
}
NEWER = {"BlockwiseQuantization", "INT2", "UINT4"}
"""Tables and enumerators that the package does not have yet."""
FIELDS = [(table, name) for table in TABLES if table not in NEWER for name in TABLES[table]]
NUMBERS = [(table, name) for table, name in FIELDS if TABLES[table][name][1] in FLAGS]
VECTORS = [
    (t, n) for t, n in FIELDS if TABLES[t][n][1].strip("[]") in FLAGS and (t, n) not in NUMBERS
]
TEXTS = [(table, name) for table, name in FIELDS if TABLES[table][name][1] == "text"]
UNIONS = [(table, name) for table, name in FIELDS if TABLES[table][name][1] == "union"]
INNER = [(table, name) for table, name in FIELDS if TABLES[table][name][1] in TABLES]
ROWS = [(table, name) for table, name in FIELDS if TABLES[table][name][1].strip("[]") in TABLES]
ROWS = [field for field in ROWS if field not in INNER]

UNREAD = {
    "BatchMatMulOptions": {"AsymmetricQuantizeInputs"},
    "BidirectionalSequenceLSTMOptions": {"AsymmetricQuantizeInputs"},
    "BidirectionalSequenceRNNOptions": {"AsymmetricQuantizeInputs"},
    "Conv2DOptions": {"QuantizedBiasType"},
    "DepthwiseConv2DOptions": {"DepthMultiplier"},
    "FullyConnectedOptions": {"QuantizedBiasType"},
    "LSTMOptions": {"AsymmetricQuantizeInputs"},
    "Model": {"MetadataBuffer"},
    "Operator": {
        "CustomOptionsFormat",
        "DebugMetadataIndex",
        "LargeCustomOptionsOffset",
        "LargeCustomOptionsSize",
        "MutatingVariableInputs",
    },
    "OperatorCode": {"Version"},
    "QuantizationParameters": {"Max", "Min"},
    "RNNOptions": {"AsymmetricQuantizeInputs"},
    "SVDFOptions": {"AsymmetricQuantizeInputs"},
    "SequenceRNNOptions": {"AsymmetricQuantizeInputs"},
    "StableHLOCompositeOptions": {
        "CompositeAttributes",
        "CompositeAttributesFormat",
        "Name",
        "Version",
    },
    "StablehloGatherOptions": {"IndicesAreSorted"},
    "StablehloScatterOptions": {"IndicesAreSorted", "UniqueIndices"},
    "SubGraph": {"DebugMetadataIndex"},
    "Tensor": {"VariantTensors"},
    "TransposeConvOptions": {"QuantizedBiasType"},
    "UnidirectionalSequenceLSTMOptions": {"AsymmetricQuantizeInputs"},
}
"""Fields of the tables that armpy reads which it leaves alone."""


def read(table: str, content: bytes) -> tuple[TableReader, Any]:  # Any: a generated class
    """A table as the front-end and as the package see it."""
    position = int.from_bytes(content[:4], "little")
    generated = getattr(tflite, table)()
    generated.Init(content, position)
    return TfliteTable(memoryview(content), position, table, Ledger(len(content)), ""), generated


def table_of_nothing(builder: flatbuffers.Builder) -> int:
    """A table without fields, inside a file that is being written."""
    builder.StartObject(0)
    return int(builder.EndObject())


def holding(builder: flatbuffers.Builder, fields: dict[int, int]) -> bytes:
    """A file of one table whose fields lead to what was written before."""
    builder.StartObject(16)
    for number, offset in fields.items():
        builder.PrependUOffsetTRelativeSlot(number, offset, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


@pytest.mark.parametrize(("table", "name"), NUMBERS)
def test_numbers_and_their_defaults_are_those_of_the_package(table: str, name: str) -> None:
    builder = flatbuffers.Builder(64)
    number, code, default = TABLES[table][name]
    builder.StartObject(16)
    builder.PrependSlot(
        FLAGS[code], number, not default if code == "?" else 100 if code in "bBf" else 1000, None
    )
    builder.Finish(builder.EndObject())
    ours, theirs = read(table, bytes(builder.Output()))
    assert ours.real(name) == getattr(theirs, name)() != default
    empty_builder = flatbuffers.Builder(64)
    empty_builder.StartObject(16)
    empty_builder.Finish(empty_builder.EndObject())
    ours, theirs = read(table, bytes(empty_builder.Output()))
    assert ours.real(name) == getattr(theirs, name)()  # the default of the field


@pytest.mark.parametrize(("table", "name"), VECTORS)
def test_vectors_are_read_where_the_package_reads_them(table: str, name: str) -> None:
    builder = flatbuffers.Builder(64)
    number, kind, _ = TABLES[table][name]
    flags = FLAGS[kind.strip("[]")]
    builder.StartVector(flags.bytewidth, 3, flags.bytewidth)
    for value in (3, 2, 1):
        builder.Prepend(flags, value)
    vector = builder.EndVector()
    builder.StartObject(16)
    builder.PrependUOffsetTRelativeSlot(number, vector, 0)
    builder.Finish(builder.EndObject())
    ours, theirs = read(table, bytes(builder.Output()))
    assert ours.numbers(name) == getattr(theirs, f"{name}AsNumpy")().tolist() == [1, 2, 3]
    assert ours.vector(name).dtype == getattr(theirs, f"{name}AsNumpy")().dtype


@pytest.mark.parametrize(("table", "name"), TEXTS)
def test_texts_are_read_where_the_package_reads_them(table: str, name: str) -> None:
    builder = flatbuffers.Builder(64)
    text = builder.CreateString("a text")
    ours, theirs = read(table, holding(builder, {TABLES[table][name][0]: text}))
    assert ours.text(name) == getattr(theirs, name)().decode() == "a text"


@pytest.mark.parametrize(("table", "name"), INNER)
def test_tables_are_read_where_the_package_reads_them(table: str, name: str) -> None:
    builder = flatbuffers.Builder(64)
    number, kind, _ = TABLES[table][name]
    ours, theirs = read(table, holding(builder, {number: table_of_nothing(builder)}))
    actual, expected = ours.table(name), getattr(theirs, name)()
    assert actual is not None
    assert actual._position == expected._tab.Pos
    assert kind == type(expected).__name__


@pytest.mark.parametrize(("table", "name"), ROWS)
def test_vectors_of_tables_are_read_where_the_package_reads_them(table: str, name: str) -> None:
    builder = flatbuffers.Builder(64)
    number, kind, _ = TABLES[table][name]
    rows = [table_of_nothing(builder) for _ in range(3)]
    builder.StartVector(4, 3, 4)
    for row in rows:
        builder.PrependUOffsetTRelative(row)
    ours, theirs = read(table, holding(builder, {number: builder.EndVector()}))
    expected = [getattr(theirs, name)(n) for n in range(getattr(theirs, f"{name}Length")())]
    assert [row._position for row in ours.tables(name, "row")] == [e._tab.Pos for e in expected]
    assert [kind] * 3 == [f"[{type(e).__name__}]" for e in expected]


@pytest.mark.parametrize(("table", "name"), UNIONS)
def test_unions_are_read_where_the_package_reads_them(table: str, name: str) -> None:
    enumeration = getattr(tflite, TFLITE_SCHEMA.unions.get(name, name))
    kinds = {n: kind for kind, n in vars(enumeration).items() if kind in TABLES}
    for stored, kind in kinds.items():
        builder = flatbuffers.Builder(64)
        inner = table_of_nothing(builder)
        number = TABLES[table][name][0]
        builder.StartObject(16)
        builder.PrependUint8Slot(number - 1, stored, 0)
        builder.PrependUOffsetTRelativeSlot(number, inner, 0)
        builder.Finish(builder.EndObject())
        ours, theirs = read(table, bytes(builder.Output()))
        assert getattr(theirs, f"{name}Type")() == stored
        assert ours.union_kind(name) == kind
        assert ours.union(name, kind)._position == getattr(theirs, name)().Pos


@pytest.mark.parametrize("table", [table for table in TABLES if table not in NEWER])
def test_what_the_package_knows_of_a_table_is_read_or_left_alone_knowingly(table: str) -> None:
    kinds = {f"{name}Type" for name, field in TABLES[table].items() if field[1] == "union"}
    methods = {name for name in vars(getattr(tflite, table)) if name[0] != "_"} - {"Init"}
    forms = {f"{name}{form}" for name in methods for form in ("AsNumpy", "Length", "IsNone")}
    fields = {name for name in methods - forms if not name.startswith("GetRootAs")}
    fields = {name for name in fields if not name.endswith("BufferHasIdentifier")}
    assert fields == TABLES[table].keys() | UNREAD.get(table, set()) | kinds


@pytest.mark.parametrize("kind", ENUMERATIONS)
def test_names_of_enumerators_are_the_packages(kind: str) -> None:
    members = vars(getattr(tflite, kind)).items()
    names = {n: name for name, n in members if isinstance(n, int) and not name.startswith("_")}
    assert {n: name for n, name in enumerators(kind).items() if name not in NEWER} == names


def test_every_familys_operators_are_found_and_no_two_families_have_the_same() -> None:
    modules = [
        importlib.import_module(f"{operators.__name__}.{name}")
        for _, name, _ in pkgutil.iter_modules(operators.__path__)
    ]
    converters = [item for module in modules for item in module.CONVERTERS.items()]
    assert all(CONVERTERS[name] is converter for name, converter in converters)
    assert sorted(CONVERTERS) == sorted(name for name, _ in converters)
    assert len(CONVERTERS) == len(converters) == len(dict(converters))


@pytest.mark.slow
def test_an_operator_imports_its_family_alone() -> None:
    code = (
        f"import sys; from {operators.__name__} import CONVERTERS as c; c['CONV_2D'], c['MUL'];"
        f"print(*sorted(n for n in sys.modules if n.startswith('{operators.__name__}.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = [f"{operators.__name__}.{name}" for name in ("elementwise", "windows")]
    assert done.stdout.split() == expected


@pytest.mark.parametrize("name", ["CONVERTERS", "direct", "NONSENSE"])
def test_what_is_no_operator_has_no_converter(name: str) -> None:
    assert name not in CONVERTERS
    with pytest.raises(KeyError, match=name):
        CONVERTERS[name]


@pytest.mark.parametrize("start", [62, 63, 1016], ids=["its end", "half a number", "outside"])
def test_a_list_of_fields_outside_the_file_is_damage(start: int) -> None:
    content = bytearray(64)
    struct.pack_into("<i", content, 16, 16 - start)
    struct.pack_into("<H", content, 62, 8)
    table = TfliteTable(memoryview(content), 16, "Model", Ledger(64), "")
    with pytest.raises(ParserError, match=r"damaged.*got part 'Version' outside"):
        table.integer("Version")


@pytest.mark.parametrize(("length", "is_whole"), [(4, True), (5, False), (2**32 - 1, False)])
def test_a_text_that_goes_on_after_the_file_is_damage(length: int, is_whole: bool) -> None:
    content = struct.pack("<4HiII4s", 8, 8, 0, 4, 8, 4, length, b"name")
    table = TfliteTable(memoryview(content), 8, "OperatorCode", Ledger(len(content)), "")
    if is_whole:
        assert table.text("CustomCode") == "name"
        return
    with pytest.raises(ParserError, match=r"damaged.*got part 'CustomCode' outside"):
        table.text("CustomCode")


def test_a_kind_of_options_outside_the_file_is_damage() -> None:
    fields = struct.pack("<7H", 14, 8, 0, 0, 0, 60000, 4)
    content = fields + struct.pack("<2xiI", 16, 4) + bytes(16)
    table = TfliteTable(memoryview(content), 16, "Operator", Ledger(len(content)), "")
    with pytest.raises(ParserError, match=r"damaged.*got part 'BuiltinOptions' outside"):
        table.union("BuiltinOptions", "AddOptions")

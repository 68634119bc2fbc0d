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

from armpy.errors import ParserError
from armpy.frontends.tflite import operators
from armpy.frontends.tflite.operators import CONVERTERS
from armpy.frontends.tflite.reader import Ledger, Table, enumerators
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
FIELDS = [(table, name) for table, fields in TABLES.items() for name in fields]
NUMBERS = [(table, name) for table, name in FIELDS if TABLES[table][name][1] in FLAGS]
VECTORS = [
    (t, n) for t, n in FIELDS if TABLES[t][n][1].strip("[]") in FLAGS and (t, n) not in NUMBERS
]


def read(table: str, content: bytes) -> tuple[Table, Any]:  # Any: a generated class
    """A table as the front-end and as the package see it."""
    position = int.from_bytes(content[:4], "little")
    generated = getattr(tflite, table)()
    generated.Init(content, position)
    return Table(memoryview(content), position, table, Ledger(len(content)), ""), generated


@pytest.mark.parametrize(("table", "name"), NUMBERS)
def test_numbers_are_read_where_the_package_reads_them(table: str, name: str) -> None:
    builder = flatbuffers.Builder(64)
    number, code, default = TABLES[table][name]
    builder.StartObject(16)
    builder.PrependSlot(
        FLAGS[code], number, not default if code == "?" else 100 if code in "bBf" else 1000, None
    )
    builder.Finish(builder.EndObject())
    ours, theirs = read(table, bytes(builder.Output()))
    assert ours.real(name) == getattr(theirs, name)() != default


@pytest.mark.parametrize(("table", "name"), NUMBERS)
def test_numbers_that_are_left_out_have_the_packages_default(table: str, name: str) -> None:
    builder = flatbuffers.Builder(64)
    builder.StartObject(16)
    builder.Finish(builder.EndObject())
    ours, theirs = read(table, bytes(builder.Output()))
    assert ours.real(name) == getattr(theirs, name)()


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


@pytest.mark.parametrize("kind", ENUMERATIONS)
def test_names_of_enumerators_are_the_packages(kind: str) -> None:
    members = vars(getattr(tflite, kind)).items()
    names = {n: name for name, n in members if isinstance(n, int) and not name.startswith("_")}
    assert enumerators(kind) == names


def test_every_familys_operators_are_found_and_no_two_families_have_the_same() -> None:
    modules = [
        importlib.import_module(f"{operators.__name__}.{name}")
        for _, name, _ in pkgutil.iter_modules(operators.__path__)
    ]
    converters = [item for module in modules for item in module.CONVERTERS.items()]
    assert all(CONVERTERS[name] is converter for name, converter in converters)
    assert sorted(CONVERTERS) == sorted(name for name, _ in converters)
    assert len(CONVERTERS) == len(converters) == len(dict(converters))


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
    table = Table(memoryview(content), 16, "Model", Ledger(64), "")
    with pytest.raises(ParserError, match="damaged: Version lies outside it"):
        table.integer("Version")


@pytest.mark.parametrize(("length", "is_whole"), [(4, True), (5, False), (2**32 - 1, False)])
def test_a_text_that_goes_on_behind_the_file_is_damage(length: int, is_whole: bool) -> None:
    content = struct.pack("<4HiII4s", 8, 8, 0, 4, 8, 4, length, b"name")
    table = Table(memoryview(content), 8, "OperatorCode", Ledger(len(content)), "")
    if is_whole:
        assert table.text("CustomCode") == "name"
        return
    with pytest.raises(ParserError, match="damaged: CustomCode lies outside it"):
        table.text("CustomCode")


def test_a_kind_of_options_outside_the_file_is_damage() -> None:
    fields = struct.pack("<7H", 14, 8, 0, 0, 0, 60000, 4)
    content = fields + struct.pack("<2xiI", 16, 4) + bytes(16)
    table = Table(memoryview(content), 16, "Operator", Ledger(len(content)), "")
    with pytest.raises(ParserError, match="damaged: BuiltinOptions lies outside it"):
        table.union("BuiltinOptions", "AddOptions")

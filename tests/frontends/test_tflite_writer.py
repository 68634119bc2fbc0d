"""The files that tests write hold what was asked for, read with the schema's own code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tflite

from armpy_testing.models.tflite_writer import (
    BUFFER_ALIGNMENT_BYTES,
    SparseDimension,
    Sparsity,
    Subgraph,
    TfliteModel,
    options_table_of,
)

NUMBERS = np.arange(4, dtype=np.float32)
TEXTS = {"BackendConfig", "CallTargetName", "Container", "Name", "SharedName"}


def has_options(code: int) -> bool:
    """Whether the schema has an options table for an operator."""
    try:
        options_table_of(code)
    except ValueError:
        return False
    return True


OPERATORS = [
    name
    for name, code in vars(tflite.BuiltinOperator).items()
    if isinstance(code, int) and not name.startswith("_") and has_options(code)
]


def read(model: TfliteModel) -> Any:  # Any: the generated code is untyped
    return tflite.Model.GetRootAs(model.to_bytes(), 0)


def opened(table: Any, kind: str) -> Any:  # Any: as above
    """The table that a union holds."""
    table_opened = getattr(tflite, kind)()
    table_opened.Init(table.Bytes, table.Pos)
    return table_opened


def fields_of(table: str) -> list[str]:
    """Fields of an options table in the schema's spelling, nested tables left out."""
    prefix = f"{table}Add"
    fields = [name.removeprefix(prefix) for name in dir(tflite) if name.startswith(prefix)]
    return [field for field in fields if field != "CustomAttributes"]


def snake_case(field: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", field).lower()


@pytest.mark.parametrize("name", OPERATORS)
def test_every_field_of_an_operators_options_is_written_under_its_own_name(name: str) -> None:
    code = getattr(tflite.BuiltinOperator, name)
    table = options_table_of(code)
    fields = fields_of(table)
    vectors = {field for field in fields if hasattr(tflite, f"{table}Start{field}Vector")}
    texts = TEXTS & set(fields)
    scalars = [field for field in fields if field not in vectors | texts]
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor("x", (1,))
    options: dict[str, Any] = {snake_case(field): [1, 0, 1] for field in vectors}
    options |= {snake_case(field): 1 for field in scalars}
    graph.operator(name, [x], [x], options | {snake_case(field): "text" for field in texts})
    file = read(model)
    operator, operator_code = file.Subgraphs(0).Operators(0), file.OperatorCodes(0)
    assert operator_code.BuiltinCode() == code
    assert operator_code.DeprecatedBuiltinCode() == min(code, 127)
    is_second = operator.BuiltinOptions2Type() != tflite.BuiltinOptions2.NONE
    union = operator.BuiltinOptions2() if is_second else operator.BuiltinOptions()
    options_table = opened(union, table)
    assert [getattr(options_table, field)() for field in scalars] == [1] * len(scalars)
    assert all(
        getattr(options_table, f"{field}AsNumpy")().tolist() == [1, 0, 1] for field in vectors
    )
    assert all(getattr(options_table, field)() == b"text" for field in texts)


@pytest.mark.parametrize("description_bytes", range(17))
def test_constants_are_aligned_whatever_comes_before_them(description_bytes: int) -> None:
    model = TfliteModel(description="d" * description_bytes)
    graph = model.subgraph()
    for size in range(1, 20):
        graph.tensor("t" * size, (size,), "INT8", data=np.arange(size, dtype=np.int8))
    content = model.to_bytes()
    file = tflite.Model.GetRootAs(content, 0)
    begin = np.frombuffer(content, np.uint8).ctypes.data
    for size in range(1, 20):
        data = file.Buffers(size).DataAsNumpy()  # a view of the content
        assert 0 <= data.ctypes.data - begin < len(content)
        assert (data.ctypes.data - begin) % BUFFER_ALIGNMENT_BYTES == 0
        assert bytes(data) == bytes(range(size))


def test_external_buffers_lie_aligned_after_the_flatbuffer() -> None:
    model = TfliteModel()
    model.subgraph()
    first, second = (model.buffer(data, external=True) for data in (NUMBERS.tobytes(), b"abc"))
    content, file = model.to_bytes(), read(model)
    for index, expected in ((first, NUMBERS.tobytes()), (second, b"abc")):
        buffer = file.Buffers(index)
        assert buffer.Offset() % BUFFER_ALIGNMENT_BYTES == 0
        assert content[buffer.Offset() : buffer.Offset() + buffer.Size()] == expected
        assert buffer.DataLength() == 0


def test_version_identifier_and_external_offsets_may_be_wrong() -> None:
    model = TfliteModel(version=2, identifier=None)
    index = model.external_buffer(10**12, 5)
    file = read(model)
    assert model.to_bytes()[4:8] != b"TFL3"
    assert file.Version() == 2
    assert (file.Buffers(index).Offset(), file.Buffers(index).Size()) == (10**12, 5)


def test_names_shapes_and_types_may_be_missing_or_unknown() -> None:
    model = TfliteModel()
    graph = model.subgraph(None)
    graph.tensor(None, None, 99)
    graph.tensor("scalar", (), "INT32", data=3)
    graph.tensor("quantised", (5,), "INT8", scale=1.0, zero_point=[])
    tensors = read(model).Subgraphs(0)
    unknown, scalar, quantised = (tensors.Tensors(index) for index in range(3))
    assert tensors.Name() is None
    assert (unknown.Name(), unknown.Type(), unknown.HasRank()) == (None, 99, False)
    assert unknown.ShapeIsNone()
    assert scalar.HasRank()
    assert not scalar.ShapeIsNone()
    assert quantised.Quantization().ZeroPointLength() == 0


def test_sparsity_is_written_as_given() -> None:
    model = TfliteModel()
    compressed = SparseDimension(segments=(0, 1, 2), indices=(0, 1))
    sparsity = Sparsity((0, 1), (SparseDimension(2), compressed))
    model.subgraph().tensor("s", (2, 2), data=bytes(16), sparsity=sparsity)
    sparsity_read = read(model).Subgraphs(0).Tensors(0).Sparsity()
    dense, sparse = sparsity_read.DimMetadata(0), sparsity_read.DimMetadata(1)
    assert (dense.Format(), dense.DenseSize()) == (tflite.DimensionType.DENSE, 2)
    assert sparse.Format() == tflite.DimensionType.SPARSE_CSR
    assert opened(sparse.ArraySegments(), "Int32Vector").ValuesAsNumpy().tolist() == [0, 1, 2]
    assert opened(sparse.ArrayIndices(), "Int32Vector").ValuesAsNumpy().tolist() == [0, 1]


def test_operators_may_be_unknown_custom_or_of_the_old_kind() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor("x", (1,))
    graph.operator(777, [x, None, 42], [x])
    graph.operator("CUSTOM", [x], [x], custom_code="Mine", custom_options=b"\1\2")
    graph.operator("ADD", [x], [x], {}, legacy_code=True)
    file = read(model)
    operators, codes = file.Subgraphs(0), [file.OperatorCodes(index) for index in range(3)]
    assert operators.Operators(0).InputsAsNumpy().tolist() == [0, -1, 42]
    assert (codes[0].BuiltinCode(), codes[0].DeprecatedBuiltinCode()) == (777, 127)
    assert codes[1].CustomCode() == b"Mine"
    assert bytes(operators.Operators(1).CustomOptionsAsNumpy()) == b"\1\2"
    assert (codes[2].BuiltinCode(), codes[2].DeprecatedBuiltinCode()) == (0, 0)


def test_boundaries_are_floats() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor("x", (1,))
    graph.operator("BUCKETIZE", [x], [x], {"boundaries": [0.5, 1.5]})
    options = read(model).Subgraphs(0).Operators(0).BuiltinOptions()
    assert opened(options, "BucketizeOptions").BoundariesAsNumpy().tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda graph: graph.operator("NOPE", [], []), "BuiltinOperator has no 'NOPE'"),
        (
            lambda graph: graph.operator("ADD", [], [], {"nope": 1}),
            "has no field 'nope'",
        ),
        (
            lambda graph: graph.operator("CONV_2D", [], [], {"padding": "SAMEISH"}),
            "Padding has no 'SAMEISH'",
        ),
        (lambda graph: graph.operator("RELU", [], [], {}), "RELU has no options table"),
        (lambda graph: graph.tensor("x", (1,), "NO"), "TensorType has no 'NO'"),
        (lambda graph: graph.tensor("x", (1,), "INT4", data=[1]), "data must be bytes; got list"),
        (lambda graph: graph.tensor("x", (1,), "INT8", data=[1.5]), "do not fit int8"),
        (lambda graph: graph.tensor("x", (1,), data=[1], buffer=1), "give data or buffer"),
        (lambda graph: graph.model.signature("k", {}, {}), "'k': expected tensors of one subgraph"),
    ],
)
def test_what_the_schema_does_not_have_is_refused(
    write: Callable[[Subgraph], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write(TfliteModel().subgraph())

"""Tables that find values by keys: against LiteRT, and what files may not say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import armpy
from armpy.errors import ParserError
from armpy.ops.operation import Array
from armpy_testing.litert_oracle import litert_or_skip, run_litert
from armpy_testing.models.tflite_writer import (
    OptionValue,
    Subgraph,
    Tensor,
    TfliteModel,
    model_with_input,
)
from armpy_testing.shared import shared_file
from tests.differential.tflite_samples.making import string_bytes

WORDS = np.array([b"cat", b"dog", b"", b"\xffx", "schön".encode()], object)
CODES = np.array([10, 20, 30, 40, -(2**63)], np.int64)


def constant(
    graph: Subgraph, name: str, elements: Array, shape: Sequence[int] | None = None
) -> Tensor:
    """A constant of strings or int64."""
    is_text = elements.dtype == object
    data = string_bytes(elements) if is_text else elements
    kind = "STRING" if is_text else "INT64"
    return graph.tensor(name, elements.shape if shape is None else shape, kind, data=data)


def handle_of(graph: Subgraph, keys: Array, table_id: int = 7) -> Tensor:
    """A handle of a table, made by HASHTABLE."""
    types = ("STRING", "INT64") if keys.dtype == object else ("INT64", "STRING")
    handle = graph.tensor("table", (1,), "RESOURCE")
    options: dict[str, OptionValue] = {
        "table_id": table_id,
        "key_dtype": types[0],
        "value_dtype": types[1],
    }
    graph.operator("HASHTABLE", [], [handle], options)
    return handle


def file_of(
    keys: Array,
    values: Array,
    default: Array,
    count: int,
    *,
    fills: bool = True,
    size: bool = False,
) -> bytes:
    """A file that looks `count` keys up in a table, which a subgraph called once fills."""
    model = TfliteModel()
    graph = model.subgraph("main")
    first = model.subgraph("initial")
    if fills:
        graph.operator("CALL_ONCE", [], [], {"init_subgraph_index": 1})
    handle = handle_of(graph, keys)
    keys_in = graph.tensor("keys", (count,), "STRING" if keys.dtype == object else "INT64")
    values_out = graph.tensor("values", (count,), "STRING" if values.dtype == object else "INT64")
    other = constant(graph, "default", default)
    graph.operator("HASHTABLE_FIND", [handle, keys_in, other], [values_out], {})
    outputs = [values_out]
    if size:
        outputs.append(graph.tensor("size", (1,), "INT64"))
        graph.operator("HASHTABLE_SIZE", [handle], [outputs[1]], {})
    graph.inputs(keys_in)
    graph.outputs(*outputs)
    inner = handle_of(first, keys)
    sources = constant(first, "k", keys), constant(first, "v", values)
    first.operator("HASHTABLE_IMPORT", [inner, *sources], [], {})
    return model.to_bytes()


def found_by(content: bytes, keys: object) -> list[Array]:
    """What armpy gives for keys."""
    with armpy.load(content) as model:
        return list(model.run({"keys": keys}).values())


def test_numbers_are_found_by_strings_as_litert_does() -> None:
    litert_or_skip()
    content = file_of(WORDS, CODES, np.array([-1], np.int64), 6, size=True)
    keys = np.array([b"dog", b"", b"cats", "schön".encode(), b"\xffx", b"dog"], object)
    for ours, theirs in zip(
        found_by(content, keys), run_litert(content, [keys], reference=False), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert found_by(content, keys)[0].tolist() == [20, 30, -1, -(2**63), 40, 20]


def test_strings_are_found_by_numbers_as_litert_does() -> None:
    litert_or_skip()
    content = file_of(CODES, WORDS, np.array([b"none"], object), 3)
    keys = np.array([40, 11, 10], np.int64)
    (ours,), (theirs,) = found_by(content, keys), run_litert(content, [keys], reference=False)
    encoded = [text.encode("utf-8", "surrogateescape") for text in ours.tolist()]
    assert encoded == [bytes(text) for text in theirs.tolist()] == [b"\xffx", b"none", b"cat"]


def test_the_first_of_equal_keys_counts_as_in_litert() -> None:
    litert_or_skip()
    words = np.array([b"a", b"b", b"a"], object)
    content = file_of(words, np.array([1, 2, 3]), np.array([0], np.int64), 2, size=True)
    keys = np.array([b"a", b"b"], object)
    ours, theirs = found_by(content, keys), run_litert(content, [keys], reference=False)
    assert [array.tolist() for array in ours] == [array.tolist() for array in theirs]
    assert ours[0].tolist() == [1, 2]


def test_a_published_file_gives_its_golden_outputs() -> None:
    golden = np.load(shared_file("golden", "operators__hashtable.npz"))
    with armpy.load(shared_file("models", "operators", "hashtable.tflite")) as model:
        for case in range(3):
            output = model(golden[f"{case}/in0"])
            np.testing.assert_array_equal(output, golden[f"{case}/out0"])
        np.testing.assert_array_equal(model(np.array(["dog", "cat"])), [2, 1])


def test_a_table_that_nothing_fills_is_refused() -> None:
    with pytest.raises(ParserError, match=r"HASHTABLE_FIND.*table 7 is used before it is filled"):
        armpy.load(file_of(WORDS, CODES, np.array([-1], np.int64), 1, fills=False))


def test_a_table_needs_one_value_for_each_key() -> None:
    with pytest.raises(ParserError, match=r"one value for each key.*5 values; got 4"):
        armpy.load(file_of(WORDS, CODES[:4], np.array([-1], np.int64), 1))


def test_a_table_of_other_types_is_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph("main")
    handle = graph.tensor("table", (1,), "RESOURCE")
    graph.operator(
        "HASHTABLE", [], [handle], {"table_id": 1, "key_dtype": "INT32", "value_dtype": "STRING"}
    )
    operand = graph.tensor("x", (1,), "INT64")
    graph.inputs(operand)
    graph.outputs(operand)
    with pytest.raises(ParserError, match=r"types of the table.*got INT32 to STRING"):
        armpy.load(model.to_bytes())


def test_a_handle_that_nothing_makes_is_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph("main")
    size = graph.tensor("size", (1,), "INT64")
    graph.operator("HASHTABLE_SIZE", [graph.tensor("table", (1,), "RESOURCE")], [size], {})
    graph.outputs(size)
    with pytest.raises(ParserError, match="tensor 1 is not a handle of a table"):
        armpy.load(model.to_bytes())


@pytest.mark.parametrize("raw", [b"", b"\x01\0\0\0", string_bytes(WORDS)[:-1]])
def test_a_constant_whose_strings_are_damaged_is_refused(raw: bytes) -> None:
    model, graph, operand = model_with_input((5,), "STRING")
    same = graph.tensor("same", (5,), "BOOL")
    graph.operator("EQUAL", [operand, graph.tensor("c", (5,), "STRING", data=raw)], [same], {})
    graph.outputs(same)
    with pytest.raises(ParserError, match="tensor 2 'c'"):
        armpy.load(model.to_bytes())

"""Operations on strings, on CpuRef: expected elements are worked by hand."""

from __future__ import annotations

import inspect
import tracemalloc
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import armpy
from armpy import DataType, Network, TensorInfo, ops
from armpy.errors import LayerValidationError, MemoryQuotaError
from armpy.execution.arrays.conversion import as_input
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES

WORDS = [["a", "b", "c"], ["d", "", "ü"]]
FLAGS = np.array([[True, False, True], [False, True, False]])


def results(
    operation: ops.Operation,
    *inputs: npt.ArrayLike,
    output: DataType | None = None,
    limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
) -> Sequence[object]:
    """What a layer makes of arrays that are given when the network runs."""
    if isinstance(operation, ops.RegexFullMatch | ops.Tokenizer):
        pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    arrays = [np.asarray(array) for array in inputs]
    arrays = [a.astype(object) if a.dtype.kind == "U" else a for a in arrays]
    net = Network("one layer")
    values = [
        net.input(f"input{number}", net.constant(array).info.with_shape(array.shape))
        for number, array in enumerate(arrays)
    ]
    outputs = (None if output is None else TensorInfo(None, output),)
    layer = net.add_layer(operation, values, outputs=outputs)
    for number, value in enumerate(layer.outputs):
        net.output(str(number), value)
    feeds = {f"input{number}": array for number, array in enumerate(arrays)}
    options = armpy.RuntimeOptions(backends=("CpuRef",), memory_limit_bytes=limit_bytes)
    with armpy.Runtime(options) as runtime:
        return [array.tolist() for array in armpy.Model(net, runtime).run(feeds).values()]


_Layer: TypeAlias = tuple[ops.Operation, tuple[npt.ArrayLike, ...], list[object]]

LAYERS: dict[str, _Layer] = {
    "equal": (
        ops.Comparison(),
        (WORDS, [["a"], ["d"]]),
        [[[True, False, False], [True, False, False]]],
    ),
    "not-equal": (
        ops.Comparison(ops.ComparisonOperation.NOT_EQUAL),
        (["x", "ü"], "ü"),
        [[True, False]],
    ),
    "select": (ops.Select(), (FLAGS, WORDS, "-"), [[["a", "-", "c"], ["-", "", "-"]]]),
    "shape": (ops.Shape(), (WORDS,), [[2, 3]]),
    "rank": (ops.Rank(), (WORDS,), [2]),
    "one-hot": (
        ops.OneHot(2),
        (np.array([1, 5], np.int32), "yes", "no"),
        [[["no", "yes"], ["no", "no"]]],
    ),
    "lookup": (
        ops.HashtableLookup(),
        (np.array([7, 1], np.int32), np.array([1, 2], np.int32), ["one", "two"]),
        [["", "one"], [0, 1]],
    ),
    "table-of-numbers": (
        ops.TableLookup(),
        (["b", "x", "a"], ["a", "b", "a"], np.array([1, 2, 3]), np.array([-1])),
        [[2, -1, 3]],
    ),
    "table-of-strings": (
        ops.TableLookup(),
        (np.array([np.nan, 1], np.float32), np.array([1, np.nan], np.float32), ["1", "nan"], ""),
        [["nan", "1"]],
    ),
    "string-concat": (
        ops.StringConcat(),
        ([["a"], ["ü"]], ["", "b"]),
        [[["a", "ab"], ["ü", "üb"]]],
    ),
    "string-split": (
        ops.StringSplit(","),
        ([["a,b"], [""], [",,"]],),
        [[[["a", "b", ""]], [["", "", ""]], [["", "", ""]]], [[2], [1], [3]]],
    ),
    "string-split-at-spaces": (
        ops.StringSplit(max_splits=1),
        (["  a b  c ", ""],),
        [[["a", "b  c "], ["", ""]], [2, 0]],
    ),
    "string-normalizer": (
        ops.StringNormalizer(ops.CaseChange.UPPER, False, ("The",)),
        ([["the", "Straße", ""]],),
        [[["STRASSE", ""]]],
    ),
    "string-normalizer-of-nothing": (
        ops.StringNormalizer(ops.CaseChange.LOWER, True, ("The",)),
        (["The", "The"],),
        [[""]],
    ),
    "regex": (
        ops.RegexFullMatch(r"[a-z]+(\d|é)"),
        (["ab1", "ab", "ab12", "\nab1", "é", "aé"],),
        [[True, False, False, False, False, True]],
    ),
    "tokens-between-separators": (
        ops.Tokenizer((" ", ",+"), padding="#"),
        ([["a,b  c", ""], [" ü,", ",,"]],),
        [[[["a", "b", "c"], ["#", "#", "#"]], [["ü", "#", "#"], ["#", "#", "#"]]]],
    ),
    "tokens-by-pattern": (
        ops.Tokenizer((), "[a-z]+", 2, "#", True),
        (["ab c def", "ü", "xy"],),
        [
            [
                ["\x02", "ab", "def", "\x03"],
                ["\x02", "\x03", "#", "#"],
                ["\x02", "xy", "\x03", "#"],
            ]
        ],
    ),
    "tokens-with-short-matches": (ops.Tokenizer((), "a|b.", 2), (["aabcb"],), [[["bc"]]]),
    "characters": (
        ops.Tokenizer((), "(?s).", padding="-"),
        (["a\n", "", "\U0001f600é\udcff"],),
        [[["a", "\n"], ["-", "-"], ["\U0001f600", "é"]]],
    ),
    "empty-separators": (ops.Tokenizer((r"\b",)), (["b a cd"],), [[["d"]]]),
    "parts-of-least-characters": (
        ops.Tokenizer(("a", "b"), "", 2),
        (["1ab23a4b5a67"],),
        [[["23", "67"]]],
    ),
    "no-tokens": (ops.Tokenizer((" ",), is_marked=True), ([" ", ""],), [[[], []]]),
    "hashes": (
        ops.MurmurHash3(0x9747B28C),
        (["aaaa", "abc", "The quick brown fox jumps over the lazy dog", "ππππππππ"],),
        [[0x5A97808A, 0xC84A62DD, 0x2FA826CD, 0xD58063C1]],
    ),
    "reshape": (ops.Reshape((3, 2)), (WORDS,), [[["a", "b"], ["c", "d"], ["", "ü"]]]),
    "transpose": (ops.Transpose((1, 0)), (WORDS,), [[["a", "d"], ["b", ""], ["c", "ü"]]]),
    "concat": (
        ops.Concat(1),
        (WORDS, [["x"], ["y"]]),
        [[["a", "b", "c", "x"], ["d", "", "ü", "y"]]],
    ),
    "stack": (ops.Stack(), (["a", "b"], ["c", "d"]), [[["a", "b"], ["c", "d"]]]),
    "slice": (ops.Slice((0, 1), (2, 1)), (WORDS,), [[["b"], [""]]]),
    "split": (ops.Splitter(3, 1), (WORDS,), [[["a"], ["d"]], [["b"], [""]], [["c"], ["ü"]]]),
    "gather": (
        ops.Gather(1),
        (WORDS, np.array([2, 0], np.int32)),
        [[["c", "a"], ["ü", "d"]]],
    ),
    "gather-nd": (
        ops.GatherNd(),
        (WORDS, np.array([[1, 2], [0, 0]], np.int32)),
        [["ü", "a"]],
    ),
    "gather-elements": (
        ops.GatherElements(1),
        (WORDS, np.array([[2], [0]], np.int32)),
        [[["c"], ["d"]]],
    ),
    "scatter-elements": (
        ops.ScatterElements(),
        (["a", "b"], np.array([1], np.int32), ["z"]),
        [["a", "z"]],
    ),
    "scatter-nd": (
        ops.ScatterNd(),
        (["a", "b"], np.array([[1]], np.int32), ["z"]),
        [["a", "z"]],
    ),
    "tile": (ops.Tile((2,)), (["a", "b"],), [["a", "b", "a", "b"]]),
    "broadcast": (ops.BroadcastTo((2, 2)), (["a", "b"],), [[["a", "b"], ["a", "b"]]]),
    "reverse": (ops.ReverseV2((0,)), (["a", "b"],), [["b", "a"]]),
    "pad": (ops.Pad(((0, 0), (1, 0))), ([["a"]],), [[["", "a"]]]),
    "pad-edge": (
        ops.Pad(((2, 0),), padding_mode=ops.PaddingMode.EDGE),
        (["a", "b"],),
        [["a", "a", "a", "b"]],
    ),
    "fill": (ops.Fill((2,)), ("z",), [["z", "z"]]),
    "expand": (ops.ExpandDims(0), (["a"],), [[["a"]]]),
    "squeeze": (ops.Squeeze((0,)), ([["a"]],), [["a"]]),
    "strided": (ops.StridedSlice((0,), (3,), (2,)), (["a", "b", "c"],), [["a", "c"]]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_moves_and_compares_strings(name: str) -> None:
    operation, inputs, expected = LAYERS[name]
    assert results(operation, *inputs) == expected


def test_every_operation_with_a_rule_of_strings_has_a_layer_here() -> None:
    kinds = [kind for _, kind in inspect.getmembers(ops, inspect.isclass)]
    with_strings = {
        kind
        for kind in kinds
        if issubclass(kind, ops.Operation)
        and any(DataType.STRING in t for r in kind.type_rules for t in (*r.inputs, *r.outputs))
    }
    assert with_strings <= {type(operation) for operation, _, _ in LAYERS.values()}


@pytest.mark.parametrize(
    ("text", "data_type", "number"),
    [
        ("1.5", DataType.FLOAT32, 1.5),
        ("-INF", DataType.FLOAT64, -np.inf),
        ("1e3", DataType.SIGNED32, 1000),
        ("9007199254740993", DataType.SIGNED64, 9007199254740993),
        ("0", DataType.BOOLEAN, False),
        ("2", DataType.BOOLEAN, True),
    ],
)
def test_a_string_is_cast_to_the_number_that_it_reads(
    text: str, data_type: DataType, number: object
) -> None:
    assert results(ops.Cast(), [text], output=data_type) == [[number]]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (np.float32(1.5), "1.5"),
        (np.float32(0.1), "0.1"),
        (np.float32(3), "3.0"),
        (np.float32(np.nan), "NaN"),
        (np.float32(-np.inf), "-INF"),
        (np.int64(-(2**63)), "-9223372036854775808"),
        (np.True_, "1"),
    ],
)
def test_a_number_is_cast_to_a_string_that_reads_as_it(number: object, text: str) -> None:
    assert results(ops.Cast(), np.array([number]), output=DataType.STRING) == [[text]]


def test_a_string_that_is_not_a_number_is_refused_when_it_is_cast() -> None:
    with pytest.raises(armpy.ArmpyError, match=r"not a number.*'one'"):
        results(ops.Cast(), ["one"], output=DataType.FLOAT32)


def test_a_quantised_number_is_not_cast_to_a_string() -> None:
    net = Network("quantised")
    info = TensorInfo((1,), DataType.QASYMM_U8, armpy.Quantization.per_tensor(1.0))
    with pytest.raises(LayerValidationError, match="quantised"):
        net.add(ops.Cast(), net.input("x", info), output=TensorInfo((1,), DataType.STRING))


@pytest.mark.parametrize(
    ("seed", "element", "expected"),
    [
        (0, "", 0),
        (1, "", 0x514E28B7),
        (2**32 - 1, "", 0x81F16F39),
        (0, "test", 0xBA6BD213),
        (0, "Hello, world!", 0xC0363E43),
        (0, np.int32(-1), 0x76293B50),
        (0, np.uint32(0x87654321), 0xF55B516B),
        (0x5082EDEE, np.uint32(0x87654321), 0x2362F9DE),
        (0, np.float32(0.0), 0x2362F9DE),
    ],
)
def test_hashes_are_the_published_ones(seed: int, element: npt.ArrayLike, expected: int) -> None:
    operation, elements = ops.MurmurHash3(seed), np.asarray(element).reshape(1)
    assert results(operation, elements) == [[expected]]
    signed = (expected + 2**31) % 2**32 - 2**31
    assert results(operation, elements, output=DataType.SIGNED32) == [[signed]]


def test_a_seed_has_32_bits() -> None:
    with pytest.raises(LayerValidationError, match="seed"):
        results(ops.MurmurHash3(2**32), ["a"])


@pytest.mark.parametrize(
    ("operation", "match"),
    [
        (ops.Tokenizer(), "one of separators and a pattern"),
        (ops.Tokenizer((" ",), "a"), "one of separators and a pattern"),
        (ops.Tokenizer((" ",), least_characters=0), "least number"),
    ],
)
def test_a_tokenizer_with_wrong_attributes_is_refused(operation: ops.Tokenizer, match: str) -> None:
    with pytest.raises(LayerValidationError, match=match):
        results(operation, ["a"])


def test_a_hostile_pattern_ends() -> None:
    texts = ["a" * 5000 + "!", "a" * 5000]
    assert results(ops.RegexFullMatch("(a+)+$"), texts) == [[False, True]]
    assert results(ops.Tokenizer((), "(a+)+$"), texts) == [[[""], ["a" * 5000]]]


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        # Each of the tokens is the shorter one, which only the end of the text decides.
        (ops.Tokenizer((), "a|a.*b"), "a" * 50_000),
        (ops.Tokenizer(("a|a.*b",)), "a" * 50_000),
    ],
    ids=["tokens", "separators"],
)
def test_a_deadline_stops_a_match(operation: ops.Operation, text: str) -> None:
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    net = Network("long match")
    words = net.input("words", TensorInfo((1,), DataType.STRING))
    net.output("y", net.add(operation, words))
    with armpy.Runtime(armpy.RuntimeOptions(backends=("CpuRef",))) as runtime:
        model = armpy.Model(net, runtime)
        with pytest.raises(armpy.ExecutionTimeoutError):
            model.run({"words": [text]}, deadline_s=0.1)


def test_a_table_without_a_value_for_each_key_is_refused() -> None:
    net = Network("table")
    words = net.input("words", TensorInfo((1,), DataType.STRING))
    keys, values = net.constant(["a", "b"]), net.constant(["c"])
    with pytest.raises(LayerValidationError, match="one value for each key"):
        net.add(ops.TableLookup(), words, keys, values, net.constant(""))


def test_rows_of_words_are_normalised_one_at_a_time() -> None:
    net = Network("rows")
    words = net.input("words", TensorInfo((2, 2), DataType.STRING))
    with pytest.raises(LayerValidationError, match="not one row of strings"):
        net.add(ops.StringNormalizer(), words)


LIMIT_BYTES = 1 << 20

# Inputs are smaller than the limit, and most outputs take more than 8 times as much.
GROWING: dict[str, tuple[ops.Operation, npt.ArrayLike]] = {
    "concatenation": (ops.StringConcat(), ["a" * 600_000]),
    "wide characters": (ops.StringConcat(), ["ä" * 140_000]),
    "parts": (ops.StringSplit("a"), ["a" * 900_000]),
    "words": (ops.StringSplit(), ["b " * 400_000]),
    "padding": (ops.StringSplit("a"), ["a" * 2_000, *[""] * 2_000]),
    "separators": (ops.Tokenizer(("a",)), ["ba" * 400_000]),
    "tokens": (ops.Tokenizer(token_pattern="b"), ["b" * 900_000]),
    "upper case": (ops.StringNormalizer(ops.CaseChange.UPPER), ["ß" * 900_000]),
    "compared": (ops.StringNormalizer(stop_words=("c",)), ["ß" * 900_000]),
    "numbers": (ops.Cast(), np.zeros(130_000, np.int64)),
}


@pytest.mark.parametrize("kind", GROWING)
def test_text_counts_against_the_memory_limit_before_it_is_made(kind: str) -> None:
    operation, given = GROWING[kind]
    inputs = [np.array(given, None if kind == "numbers" else object)] * len(operation.inputs)
    output = DataType.STRING if kind == "numbers" else None
    tracemalloc.start()
    try:
        with pytest.raises(MemoryQuotaError, match=r"at most 1048576 bytes \(memory_limit_bytes\)"):
            results(operation, *inputs, output=output, limit_bytes=LIMIT_BYTES)
        assert tracemalloc.get_traced_memory()[1] < 8 * LIMIT_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["a" * 1_000, b"a" * 1_000])
def test_elements_that_stand_for_one_another_are_counted_before_they_are_strings(
    text: str | bytes,
) -> None:
    given = np.broadcast_to(text, 100_000)
    with pytest.raises(MemoryQuotaError, match=r"input 'x': .* 100000 elements of 1000 bytes"):
        as_input("x", TensorInfo(None, DataType.STRING), given, limit_bytes=LIMIT_BYTES)


@pytest.mark.parametrize("is_constant", [False, True])
def test_the_text_of_all_layers_counts_together(is_constant: bool) -> None:
    net = Network("one text")
    x = net.input("x", TensorInfo((1,), DataType.STRING))
    text = net.constant(["a"]) if is_constant else x
    for _ in range(20):
        text = net.add(ops.StringConcat(), text, text)
    net.output("y", net.add(ops.StringConcat(), text, x))
    options = armpy.RuntimeOptions(backends=("CpuRef",), memory_limit_bytes=LIMIT_BYTES)
    with armpy.Runtime(options) as runtime:
        model = armpy.Model(net, runtime)
        with pytest.raises(MemoryQuotaError, match="the text of one execution"):
            model(["a"])

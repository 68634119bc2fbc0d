"""Operators on strings, of ai.onnx.ml with strings, and MurmurHash3, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, case_name, run_armpy, with_results

ML = "ai.onnx.ml"
MICROSOFT = "com.microsoft"
WORDS = np.array(["a", "b", "zwölf", "", "a"], object)
NUMBERS = np.array([3, 1, 7, 3], np.int64)
FLOATS = np.array([1.5, np.nan, 2.0], np.float32)
INT64, FLOAT, STRING = TensorProto.INT64, TensorProto.FLOAT, TensorProto.STRING
UINT32, INT32 = TensorProto.UINT32, TensorProto.INT32


def encoder_cases() -> Iterator[NodeCase]:
    """Tables from strings or to strings."""
    kind = f"{ML}.LabelEncoder"
    tables: Sequence[tuple[Array, int, dict[str, Any]]] = (
        (
            WORDS,
            INT64,
            {"keys_strings": ["a", "zwölf"], "values_int64s": [5, 6], "default_int64": -3},
        ),
        (WORDS, INT64, {"keys_strings": ["a", "b", "a"], "values_int64s": [5, 6, 7]}),
        (WORDS, FLOAT, {"keys_strings": ["a", ""], "values_floats": [0.5, 2.0]}),
        (WORDS, STRING, {"keys_strings": ["a", "b"], "values_strings": ["x", "ü"]}),
        (
            NUMBERS,
            STRING,
            {"keys_int64s": [3, 1], "values_strings": ["three", "one"], "default_string": "-"},
        ),
        (FLOATS, STRING, {"keys_floats": [1.5, np.nan], "values_strings": ["half", "nan"]}),
        (
            np.array([np.nan, 1, 9]),
            STRING,
            {
                "keys_tensor": numpy_helper.from_array(np.array([1, np.nan])),
                "values_tensor": numpy_helper.from_array(np.array(["a", "b"], object)),
            },
        ),
        *(
            (shaped, STRING, {"keys_int64s": [3, 1], "values_strings": ["three", "one"]})
            for shaped in (np.array(3), NUMBERS.reshape(2, 2))
        ),
    )
    for keys, result, attributes in tables:
        yield with_results(kind, [keys], [result], 4, **attributes)
    for keys, result in ((WORDS, INT64), (NUMBERS, STRING)):
        classes: dict[str, Any] = {"classes_strings": ["b", "a", "zwölf", "b"]}
        yield with_results(kind, [keys], [result], **classes)
        defaults: dict[str, Any] = {"default_int64": 7, "default_string": "-"}
        yield with_results(kind, [keys], [result], **classes, **defaults)
        categories: dict[str, Any] = {"cats_strings": ["a", "b", "zwölf"], "cats_int64s": [1, 2, 3]}
        yield with_results(f"{ML}.CategoryMapper", [keys], [result], **categories)
    zeros: dict[str, Any] = {"cats_strings": ["a", "zwölf"], "zeros": 1}
    yield with_results(f"{ML}.OneHotEncoder", [WORDS], [FLOAT], **zeros)
    rows = np.random.default_rng(5).normal(size=(20, 4)).astype(np.float32)
    for labels in (["no", "jä"], ["x", "y", "z"]):
        weights = np.round(np.random.default_rng(6).normal(size=4 * len(labels))).tolist()
        linear: dict[str, Any] = {"coefficients": weights, "intercepts": [0.0] * len(labels)}
        linear["classlabels_strings"] = labels
        yield with_results(f"{ML}.LinearClassifier", [rows], [STRING, FLOAT], **linear)


def text_cases() -> Iterator[NodeCase]:
    texts = np.array([["a", "b", "a", "b"], ["b", "x", "ü", "a"]], object)
    for mode in ("TF", "IDF", "TFIDF"):
        yield with_results(
            "TfIdfVectorizer",
            [texts],
            [FLOAT],
            mode=mode,
            min_gram_length=1,
            max_gram_length=2,
            max_skip_count=1,
            ngram_counts=[0, 3],
            ngram_indexes=[0, 1, 2, 3, 4],
            weights=[1.0, 2.0, 3.0, 4.0, 5.0],
            pool_strings=["a", "b", "ü", "a", "b", "b", "a"],
        )
    # Of an empty string, ONNX Runtime makes no part, and ONNX's definition an empty one.
    parts = np.array([["a.b..c", " x  y "], [".", " öaöbö"]], object)
    yield with_results("StringSplit", [parts], [STRING, INT64], delimiter="ö", maxsplit=1)
    days = np.array([["Monday", "TUESDAY", "monday", "Mon"]], object)
    for is_sensitive in (0, 1):
        yield with_results(
            "StringNormalizer",
            [days],
            [STRING],
            case_change_action="UPPER",
            is_case_sensitive=is_sensitive,
            stopwords=["monday"],
            locale="C",  # ONNX Runtime fails without the system's files of others
        )
    for positions, kind in ((np.array([[1, -1]]), "Gather"), (np.array([2, 5]), "Expand")):
        yield with_results(kind, [WORDS, positions], [STRING])
    yield with_results("Equal", [WORDS, WORDS[::-1].copy()], [TensorProto.BOOL])
    yield with_results("Concat", [WORDS, WORDS[::-1].copy()], [STRING], axis=0)


def hash_cases() -> Iterator[NodeCase]:
    numbers = np.array([[0, 1, 2**31 - 1], [7, 255, 65536]])
    texts = np.array([["", "a", "ab", "abc"], ["abcd", "ü日", "\0", "\U0001f600" * 9]], object)
    types = (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64)
    for keys in (*map(numbers.astype, types), texts):
        for positive, seed in ((1, 7), (0, -1), (2, 2**32 + 7)):
            results = [UINT32 if positive == 1 else INT32]
            kind = f"{MICROSOFT}.MurmurHash3"
            yield with_results(kind, [keys], results, positive=positive, seed=seed)


@pytest.mark.parametrize("case", [*encoder_cases(), *text_cases(), *hash_cases()], ids=case_name)
def test_operators_agree_with_onnx_runtime(case: NodeCase) -> None:
    assert_agree(case)


def test_strings_are_matched_by_a_regular_expression() -> None:
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    texts = np.array([["a@gmail.com", "a@gmail.com x"], ["ü@yahoo.com", "12"]], object)
    pattern = r"[\w.-]{1,25}@(yahoo|gmail)\.com|\d+"
    assert_agree(with_results("RegexFullMatch", [texts], [TensorProto.BOOL], pattern=pattern))


def test_constants_of_strings_keep_bytes_that_are_not_utf8() -> None:
    tensor = helper.make_tensor("c", STRING, (2,), [b"\xff", "ü".encode()])
    graph = helper.make_graph(
        [helper.make_node("Concat", ["x", "c"], ["y"], axis=0)],
        "constants",
        [helper.make_tensor_value_info("x", STRING, (1,))],
        [helper.make_tensor_value_info("y", STRING, (3,))],
        [tensor],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    with armpy.load(model.SerializeToString(), backends=["CpuRef"]) as loaded:
        joined = loaded.run({"x": ["a"]})["y"].tolist()
    assert [text.encode("utf-8", "surrogateescape") for text in joined] == [
        b"a",
        b"\xff",
        b"\xc3\xbc",
    ]


def test_a_table_without_a_number_for_each_string_is_refused() -> None:
    attributes: dict[str, Any] = {"cats_strings": ["a"], "cats_int64s": [1, 2]}
    with pytest.raises(ParserError, match="one number for each string"):
        run_armpy(with_results(f"{ML}.CategoryMapper", [WORDS], [INT64], **attributes))


TEXTS = np.array(["Ab  ü,b", "", ", ,", "12_x  é\n\U0001f600", "b"], object)

TOKENIZERS: dict[str, tuple[dict[str, Any], list[list[str]]]] = {
    "separators": (
        {"separators": [" +", ","]},
        [
            ["Ab", "ü", "b"],
            ["#", "#", "#"],
            ["#", "#", "#"],
            ["12_x", "é\n\U0001f600", "#"],
            ["b", "#", "#"],
        ],
    ),
    "separators-before-a-pattern": (
        {"separators": ["\\s"], "tokenexp": "b", "mincharnum": 2, "pad_value": "é"},
        [["Ab", "ü,b"], ["é", "é"], ["é", "é"], ["12_x", "é"], ["é", "é"]],
    ),
    "marks": (
        {"tokenexp": "[a-zA-Z0-9_]+", "mark": 1},
        [
            ["\x02", "Ab", "b", "\x03"],
            ["\x02", "\x03", "#", "#"],
            ["\x02", "\x03", "#", "#"],
            ["\x02", "12_x", "\x03", "#"],
            ["\x02", "b", "\x03", "#"],
        ],
    ),
    "longest": (
        {"tokenexp": "A|A.*?ü|1|12", "mincharnum": 2},
        [["Ab  ü"], ["#"], ["#"], ["12"], ["#"]],
    ),
    "characters": (
        {"tokenexp": "."},
        [
            ["A", "b", " ", " ", "ü", ",", "b", "#", "#"],
            ["#"] * 9,
            [",", " ", ",", *["#"] * 6],
            ["1", "2", "_", "x", " ", " ", "é", "\n", "\U0001f600"],
            ["b", *["#"] * 8],
        ],
    ),
    "empty-matches": ({"separators": [" *"]}, [[]] * 5),
    "no-tokens": ({"tokenexp": "z", "mark": 1}, [[]] * 5),
}
"""Attributes, and the tokens of each text."""


def tokenizer(texts: npt.NDArray[Any], attributes: dict[str, Any]) -> NodeCase:
    """A Tokenizer, whose attributes have no defaults."""
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    attributes = {"mark": 0, "mincharnum": 1, "pad_value": "#", **attributes}
    return with_results(f"{MICROSOFT}.Tokenizer", [texts], [STRING], **attributes)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(name: str) -> None:
    attributes, expected = TOKENIZERS[name]
    assert run_armpy(tokenizer(TEXTS, attributes))[0].tolist() == expected
    assert_agree(tokenizer(TEXTS, attributes))
    assert_agree(tokenizer(np.stack([TEXTS, TEXTS[::-1]]), attributes))


@pytest.mark.parametrize(("shape", "expected"), [((0,), (0,)), ((0, 3), (0, 0)), ((2, 0), (2, 0))])
def test_no_strings_have_no_axis_of_tokens(
    shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    (tokens,) = run_armpy(tokenizer(np.empty(shape, object), {"separators": [" "]}))
    assert tokens.shape == expected


@pytest.mark.parametrize(
    ("attributes", "match"),
    [
        ({}, "one of separators and a pattern"),
        ({"separators": ["("]}, "not a regular expression of RE2: missing"),
        ({"separators": [""], "mincharnum": 2}, "'mincharnum'"),
        ({"separators": [" "], "mincharnum": 0}, "not positive"),
    ],
)
def test_a_tokenizer_that_cannot_be_run_is_refused(attributes: dict[str, Any], match: str) -> None:
    with pytest.raises(armpy.ArmpyError, match=match):
        run_armpy(tokenizer(TEXTS, attributes))


def test_counted_words_of_any_number_of_texts() -> None:
    """The layers that skl2onnx makes of scikit-learn's CountVectorizer."""
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    tokens = {"mark": 0, "mincharnum": 1, "pad_value": "#", "tokenexp": "[a-zA-Z0-9_]+"}
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["flat"]),
        helper.make_node("StringNormalizer", ["flat"], ["low"], case_change_action="LOWER"),
        helper.make_node("Tokenizer", ["low"], ["tokens"], domain=MICROSOFT, **tokens),
        helper.make_node("Flatten", ["tokens"], ["rows"]),
        helper.make_node(
            "TfIdfVectorizer",
            ["rows"],
            ["y"],
            mode="TF",
            min_gram_length=1,
            max_gram_length=1,
            max_skip_count=0,
            ngram_counts=[0],
            ngram_indexes=[0, 1],
            pool_strings=["cat", "dog"],
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info("x", STRING, [None, 1])],
        [helper.make_tensor_value_info("y", FLOAT, [None, 2])],
        [helper.make_tensor("shape", INT64, [1], [-1])],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    with armpy.load(content, backends=["CpuRef"]) as model:
        counts = model.run({"x": [["A cat, a Cat."], ["dog"], [""]]})["y"]
        assert counts.tolist() == [[2, 0], [0, 1], [0, 0]]
        assert model.run({"x": [["no ünit"]]})["y"].tolist() == [[0, 0]]


def test_hashes_of_unsigned_integers_by_default() -> None:
    # Published for the bytes 21 43 65 87, and four of 0.
    keys = np.array([0x87654321, 0], np.uint32)
    (hashes,) = run_armpy(with_results(f"{MICROSOFT}.MurmurHash3", [keys], [UINT32]))
    assert hashes.dtype == np.uint32
    assert hashes.tolist() == [0xF55B516B, 0x2362F9DE]


def test_hashes_of_other_types_are_refused() -> None:
    keys = np.array([1], np.int8)
    with pytest.raises(armpy.ArmpyError, match="data types"):
        run_armpy(with_results(f"{MICROSOFT}.MurmurHash3", [keys], [UINT32]))

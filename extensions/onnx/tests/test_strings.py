"""Operators on strings, of ai.onnx.ml with strings, and MurmurHash3, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper

import armpy
from armpy.errors import ParserError

ML = "ai.onnx.ml"
MICROSOFT = "com.microsoft"
WORDS = np.array(["a", "b", "zwölf", "", "a"], object)
NUMBERS = np.array([3, 1, 7, 3], np.int64)
FLOATS = np.array([1.5, np.nan, 2.0], np.float32)
INT64, FLOAT, STRING = TensorProto.INT64, TensorProto.FLOAT, TensorProto.STRING


def model_of(
    kind: str,
    inputs: Sequence[npt.NDArray[Any]],
    outputs: Sequence[int],
    version: int = 4,
    **attributes: Any,
) -> bytes:
    """A model of one node; the domain is before its kind."""
    domain, _, name = kind.rpartition("/")
    names = [f"x{number}" for number in range(len(inputs))]
    results = [f"y{number}" for number in range(len(outputs))]
    types = [
        STRING if a.dtype == object else helper.np_dtype_to_tensor_dtype(a.dtype) for a in inputs
    ]
    graph = helper.make_graph(
        [helper.make_node(name, names, results, domain=domain, **attributes)],
        "one",
        [
            helper.make_tensor_value_info(name, kind, array.shape)
            for name, kind, array in zip(names, types, inputs, strict=True)
        ],
        [
            helper.make_tensor_value_info(name, t, None)
            for name, t in zip(results, outputs, strict=True)
        ],
    )
    versions = {"": 20, ML: version, MICROSOFT: 1}
    opsets = [helper.make_opsetid(domain, number) for domain, number in versions.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return bytes(model.SerializeToString())


def check(
    kind: str,
    inputs: Sequence[npt.NDArray[Any]],
    outputs: Sequence[int],
    version: int = 4,
    **attributes: Any,
) -> None:
    """Compare with ONNX Runtime: types, shapes, elements."""
    runtime = pytest.importorskip("onnxruntime")
    content = model_of(kind, inputs, outputs, version, **attributes)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    feeds = {f"x{number}": array for number, array in enumerate(inputs)}
    expected = session.run(None, feeds)
    with armpy.load(content, backends=["CpuRef"]) as model:
        actual = list(model.run(feeds).values())
    for ours, theirs in zip(actual, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)


TABLES: dict[str, tuple[npt.NDArray[Any], int, dict[str, Any]]] = {
    "strings-ints": (
        WORDS,
        INT64,
        {"keys_strings": ["a", "zwölf"], "values_int64s": [5, 6], "default_int64": -3},
    ),
    "strings-floats": (WORDS, FLOAT, {"keys_strings": ["a", ""], "values_floats": [0.5, 2.0]}),
    "strings-strings": (WORDS, STRING, {"keys_strings": ["a", "b"], "values_strings": ["x", "ü"]}),
    "ints-strings": (
        NUMBERS,
        STRING,
        {"keys_int64s": [3, 1], "values_strings": ["three", "one"], "default_string": "-"},
    ),
    "floats-strings": (
        FLOATS,
        STRING,
        {"keys_floats": [1.5, np.nan], "values_strings": ["half", "nan"]},
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_label_encoders_with_strings(name: str) -> None:
    keys, kind, attributes = TABLES[name]
    check(f"{ML}/LabelEncoder", [keys], [kind], **attributes)


@pytest.mark.parametrize(("given", "kind"), [(WORDS, INT64), (NUMBERS, STRING)])
@pytest.mark.parametrize("defaults", [{}, {"default_int64": 7, "default_string": "-"}])
def test_label_encoders_of_the_first_version(
    given: npt.NDArray[Any], kind: int, defaults: dict[str, Any]
) -> None:
    classes = ["b", "a", "zwölf", "b"]
    check(f"{ML}/LabelEncoder", [given], [kind], 1, classes_strings=classes, **defaults)


@pytest.mark.parametrize(("given", "kind"), [(WORDS, INT64), (NUMBERS, STRING)])
def test_category_mappers(given: npt.NDArray[Any], kind: int) -> None:
    attributes: dict[str, Any] = {"cats_strings": ["a", "b", "zwölf"], "cats_int64s": [1, 2, 3]}
    check(f"{ML}/CategoryMapper", [given], [kind], **attributes)


def test_one_hot_encoders_of_strings() -> None:
    check(f"{ML}/OneHotEncoder", [WORDS], [FLOAT], cats_strings=["a", "zwölf"], zeros=1)


@pytest.mark.parametrize("labels", [["no", "jä"], ["x", "y", "z"]])
def test_linear_classifiers_with_labels_that_are_strings(labels: list[str]) -> None:
    rows = np.random.default_rng(5).normal(size=(20, 4)).astype(np.float32)
    weights = np.random.default_rng(6).normal(size=(len(labels), 4)).reshape(-1)
    check(
        f"{ML}/LinearClassifier",
        [rows],
        [STRING, FLOAT],
        coefficients=np.round(weights).tolist(),
        intercepts=[0.0] * len(labels),
        classlabels_strings=labels,
    )


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_ngrams_of_strings(mode: str) -> None:
    check(
        "TfIdfVectorizer",
        [np.array([["a", "b", "a", "b"], ["b", "x", "ü", "a"]], object)],
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


def test_strings_are_joined_with_broadcasting() -> None:
    check("StringConcat", [WORDS[:, None], WORDS[:2]], [STRING])


@pytest.mark.parametrize("attributes", [{}, {"delimiter": "."}, {"delimiter": "ö", "maxsplit": 1}])
def test_strings_are_split(attributes: dict[str, Any]) -> None:
    # Of an empty string, ONNX Runtime makes no part, and ONNX's definition an empty one.
    texts = np.array([["a.b..c", " x  y "], [".", " öaöbö"]], object)
    check("StringSplit", [texts], [STRING, INT64], **attributes)


@pytest.mark.parametrize("case", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("is_sensitive", [0, 1])
def test_strings_are_normalised(case: str, is_sensitive: int) -> None:
    check(
        "StringNormalizer",
        [np.array([["Monday", "TUESDAY", "monday", "Mon"]], object)],
        [STRING],
        case_change_action=case,
        is_case_sensitive=is_sensitive,
        stopwords=["monday"],
        locale="C",  # ONNX Runtime fails without the system's files of others
    )


def test_strings_are_matched_by_a_regular_expression() -> None:
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    texts = np.array([["a@gmail.com", "a@gmail.com x"], ["ü@yahoo.com", "12"]], object)
    pattern = r"[\w.-]{1,25}@(yahoo|gmail)\.com|\d+"
    check("RegexFullMatch", [texts], [TensorProto.BOOL], pattern=pattern)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [("Gather", {"axis": 0}), ("Equal", {}), ("Concat", {"axis": 0}), ("Expand", {})],
)
def test_layers_that_move_strings(kind: str, attributes: dict[str, Any]) -> None:
    second = {
        "Gather": np.array([[1, -1]], np.int64),
        "Expand": np.array([2, 5], np.int64),
    }.get(kind, WORDS[::-1].copy())
    check(kind, [WORDS, second], [TensorProto.BOOL if kind == "Equal" else STRING], **attributes)


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
    content = model_of(
        f"{ML}/CategoryMapper", [WORDS], [INT64], cats_strings=["a"], cats_int64s=[1, 2]
    )
    with pytest.raises(ParserError, match="one number for each string"):
        armpy.load(content, backends=["CpuRef"])


TEXTS = ["Ab  ü,b", "", ", ,", "12_x  é\n\U0001f600", "b"]

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


def tokenizer_attributes(given: dict[str, Any]) -> dict[str, Any]:
    """Attributes of a Tokenizer, which has no defaults."""
    return {"mark": 0, "mincharnum": 1, "pad_value": "#", **given}


def run_tokenizer(texts: npt.NDArray[Any], given: dict[str, Any]) -> npt.NDArray[Any]:
    """Tokens of one node."""
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    attributes = tokenizer_attributes(given)
    content = model_of(f"{MICROSOFT}/Tokenizer", [texts], [STRING], **attributes)
    with armpy.load(content, backends=["CpuRef"]) as model:
        return model.run({"x0": texts})["y0"]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(name: str) -> None:
    given, expected = TOKENIZERS[name]
    tokens = run_tokenizer(np.array(TEXTS, object), given)
    assert tokens.tolist() == expected
    rows = run_tokenizer(np.array([TEXTS], object), given)
    assert rows.tolist() == [expected]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers_against_onnx_runtime(name: str) -> None:
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    attributes = tokenizer_attributes(TOKENIZERS[name][0])
    rows = np.array([TEXTS, TEXTS[::-1]], object)
    for texts in (rows[0], rows):
        check(f"{MICROSOFT}/Tokenizer", [texts], [STRING], **attributes)


@pytest.mark.parametrize(("shape", "expected"), [((0,), (0,)), ((0, 3), (0, 0)), ((2, 0), (2, 0))])
def test_no_strings_have_no_axis_of_tokens(
    shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert run_tokenizer(np.empty(shape, object), {"separators": [" "]}).shape == expected


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "one of separators and a pattern"),
        ({"separators": ["("]}, "not a regular expression of RE2: missing"),
        ({"separators": [""], "mincharnum": 2}, "'mincharnum'"),
        ({"separators": [" "], "mincharnum": 0}, "not positive"),
    ],
)
def test_a_tokenizer_that_cannot_be_run_is_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(armpy.ArmpyError, match=match):
        run_tokenizer(np.array(TEXTS, object), given)


def test_counted_words_of_any_number_of_texts() -> None:
    """The layers that skl2onnx makes of scikit-learn's CountVectorizer."""
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    attributes = tokenizer_attributes({"tokenexp": "[a-zA-Z0-9_]+"})
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["flat"]),
        helper.make_node("StringNormalizer", ["flat"], ["low"], case_change_action="LOWER"),
        helper.make_node("Tokenizer", ["low"], ["tokens"], domain=MICROSOFT, **attributes),
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


UINT32, INT32 = TensorProto.UINT32, TensorProto.INT32


@pytest.mark.parametrize(("positive", "seed"), [(1, 7), (0, -1), (2, 2**32 + 7)])
@pytest.mark.parametrize(
    "data_type", [np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64, np.object_]
)
def test_hashes_against_onnx_runtime(data_type: type[np.generic], positive: int, seed: int) -> None:
    kind = UINT32 if positive == 1 else INT32
    keys = np.array([[0, 1, 2**31 - 1], [7, 255, 65536]]).astype(data_type)
    if keys.dtype.hasobject:
        keys = np.array([["", "a", "ab", "abc"], ["abcd", "ü日", "\0", "\U0001f600" * 9]], object)
    check(f"{MICROSOFT}/MurmurHash3", [keys], [kind], positive=positive, seed=seed)


def test_hashes_of_unsigned_integers_by_default() -> None:
    # Published for the bytes 21 43 65 87, and four of 0.
    keys = np.array([0x87654321, 0], np.uint32)
    content = model_of(f"{MICROSOFT}/MurmurHash3", [keys], [UINT32])
    with armpy.load(content, backends=["CpuRef"]) as model:
        hashes = model.run({"x0": keys})["y0"]
    assert hashes.dtype == np.uint32
    assert hashes.tolist() == [0xF55B516B, 0x2362F9DE]


def test_hashes_of_other_types_are_refused() -> None:
    keys = np.array([1], np.int8)
    content = model_of(f"{MICROSOFT}/MurmurHash3", [keys], [UINT32])
    with pytest.raises(armpy.ArmpyError, match="data types"):
        armpy.load(content, backends=["CpuRef"])

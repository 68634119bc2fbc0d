"""If, Loop, Scan, sequences and optionals against ONNX's reference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser
import onnx.reference

import armpy
from armpy.errors import InvalidArgumentError, LayerValidationError, ParserError
from armpy_testing.models.onnx_texts import (
    BY_SHAPE,
    CHANGING,
    CHOICE,
    CHOSEN,
    COLLECTING,
    COUNTED,
    GROWING,
    HEAD,
    LISTED,
    NESTED,
    OPTIONAL,
    PLACE,
    REPEATED,
    SCANNED,
    SPLIT,
)

X = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)


def _load(text: str, backends: Sequence[str] = ("CpuRef",), **options: Any) -> armpy.Model:
    """A model in ONNX's textual form."""
    model = onnx.parser.parse_model(HEAD + text)
    # On a busy machine loops may take longer than the usual limit.
    runtime = armpy.Runtime(armpy.RuntimeOptions(backends=backends, loop_timeout_s=None))
    return armpy.load(model.SerializeToString(), runtime=runtime, **options)


def _f32(numbers: list[float]) -> Any:
    """An array."""
    return np.array(numbers, np.float32)


def _agree(text: str, *calls: dict[str, Any]) -> armpy.Model:
    """Check a model against ONNX's reference, for several calls of one loaded model."""
    model = onnx.parser.parse_model(HEAD + text)
    reference = onnx.reference.ReferenceEvaluator(model)
    loaded = _load(text)
    for inputs in calls:
        expected = reference.run(None, inputs)
        outputs = loaded.run(inputs)
        for value, wanted in zip(model.graph.output, expected, strict=True):
            assert outputs[value.name].shape == wanted.shape, value.name
            np.testing.assert_allclose(outputs[value.name], wanted, rtol=1e-5, atol=1e-6)
    return loaded


YES, NO = np.array(True), np.array(False)


def test_a_branch_reads_what_is_around_it_and_may_give_another_shape() -> None:
    """Each call passes the condition; the branches' ranks differ."""
    text = CHOICE.replace("(float[a, b] y)", "(float y)").replace("float[a, b]", "float")
    loaded = _load(text)
    np.testing.assert_allclose(loaded.run({"c": YES, "x": X})["y"], X + X)
    np.testing.assert_array_equal(loaded.run({"c": NO, "x": X})["y"], X.reshape(-1))
    np.testing.assert_array_equal(loaded.run({"c": NO, "x": X[:2]})["y"], X[:2].reshape(-1))


def test_a_constant_condition_leaves_one_branch() -> None:
    """No If is left in the network."""
    loaded = _load(CHOSEN)
    np.testing.assert_array_equal(loaded.run({"x": X})["y"], -X)
    assert "If" not in {layer.operation.name for layer in loaded.graph.layers}


def test_a_condition_that_follows_from_shapes_leaves_one_branch() -> None:
    """It is resolved when shapes are known."""
    _agree(
        BY_SHAPE,
        {"x": X},
        {"x": X[:1]},
    )


def test_a_loop_runs_as_often_as_number_and_condition_say() -> None:
    """Each call passes the number and the condition, no turn included."""
    x = _f32([1, 2, 3])
    calls = [{"n": np.int64(n), "c": np.array(c), "x": x} for n in (1, 3, 50) for c in (1,)]
    loaded = _agree(COUNTED, *({**call, "c": call["c"].astype(bool)} for call in calls))
    for n, go in ((0, YES), (5, NO)):
        outputs = loaded.run({"n": np.int64(n), "c": go, "x": x})
        np.testing.assert_array_equal(outputs["last"], x)
        assert outputs["all"].shape == (0, 3)


@pytest.mark.parametrize("turns", [1, 5, 300])
def test_a_loop_with_a_known_number_of_turns(turns: int) -> None:
    """Short ones are written out, long ones are not; the collected output has a known shape."""
    text = REPEATED.replace("TURNS", str(turns))
    loaded = _agree(text, {"x": _f32([1, -2])})
    has_loop = any(layer.operation.name == "While" for layer in loaded.graph.layers)
    waits = any(layer.operation.name == "Loop" for layer in loaded.graph.layers)
    assert has_loop or waits or turns < 300
    outputs = loaded.run({"x": _f32([1, -2])})
    assert outputs["all"].shape == (turns, 2)


def test_a_loop_may_carry_what_grows() -> None:
    """Its shape is another one in every turn."""
    _agree(
        GROWING,
        {"n": np.int64(3), "x": _f32([1, 2])},
        {"n": np.int64(0), "x": _f32([1, 2, 3])},
    )


def test_loops_lie_in_each_other_and_in_branches() -> None:
    """Each reads from all around it."""
    _agree(
        NESTED,
        {"n": np.int64(4), "c": YES, "x": _f32([1, 2])},
        {"n": np.int64(4), "c": NO, "x": _f32([1, 2])},
    )


@pytest.mark.parametrize(
    "turn",
    [
        "d = Concat <axis = 0> (f, row) e = Identity (c)",
        """size = Constant <value = int64 {3}> () axis = Constant <value = int64[1] {0}> ()
        begin = Mod (i, size) begins = Unsqueeze (begin, axis)
        end = Constant <value = int64[1] {99}> () whole = Concat <axis = 0> (c, row, row)
        d = Slice (whole, begins, end, axis) e = Identity (f)""",
    ],
)
def test_a_loop_may_carry_what_changes_as_other_carried_values_or_elements_say(turn: str) -> None:
    """By other names of the dimensions of a turn's inputs and outputs."""
    text = CHANGING.replace("TURN", turn)
    _agree(text, *({"n": np.int64(n), "x": X[:, :2]} for n in (5, 0, 1, 2)))


@pytest.mark.parametrize("backends", [["CpuRef"], ["NumbaAcc", "CpuRef"]])
def test_a_loop_collects_from_one_whose_number_of_turns_follows_from_values(
    backends: list[str],
) -> None:
    """The first turn decides on the rows' size; another size is an error."""
    model = _load(COLLECTING, backends)
    for turns, size in ((3, 4), (5, 0), (2, 1)):
        inputs = {"n": np.int64(turns), "sizes": np.full(5, size), "x": _f32([1, 2])}
        rows = inputs["x"] + np.arange(size, dtype=np.float32)[:, np.newaxis]
        np.testing.assert_array_equal(model.run(inputs)["y"], np.stack([rows] * turns))
    inputs = {"n": np.int64(3), "sizes": np.array([2, 2, 3]), "x": _f32([1, 2])}
    with pytest.raises(LayerValidationError, match=r"another number of elements.*for \(2, 3, 2\)"):
        model.run(inputs)
    assert model.run({**inputs, "n": np.int64(0)})["y"].shape == (0, 0, 2)


@pytest.mark.parametrize("length", [4, 200])
def test_a_scan_goes_along_axes_in_both_directions(length: int) -> None:
    """Written out, and as a loop; expected values are written out in NumPy."""
    loaded = _load(SCANNED.replace("LENGTH", str(length)))
    random = np.random.default_rng(2)
    s = random.standard_normal(3).astype(np.float32)
    x = random.standard_normal((length, 3)).astype(np.float32)
    z = random.standard_normal((3, length)).astype(np.float32)
    outputs = loaded.run({"s": s, "x": x, "z": z})
    sums = s + np.cumsum(x, 0)
    back = z.T[::-1]
    np.testing.assert_allclose(outputs["t"], sums[-1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(outputs["u"], (sums * back)[::-1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(outputs["v"], (x - back).T, rtol=1e-5, atol=1e-5)


def test_a_sequence_that_a_tensor_of_unknown_shape_is_split_into() -> None:
    """Its length is known when shapes are."""
    _agree(
        SPLIT,
        {"x": X},
        {"x": X[:1]},
    )


def test_a_place_in_a_sequence_that_a_call_passes() -> None:
    """Its network is prepared once per place."""
    _agree(
        PLACE,
        {"x": _f32([1, 2]), "z": _f32([3, 4, 5]), "i": np.int64(0)},
        {"x": _f32([1, 2]), "z": _f32([3, 4, 5]), "i": np.int64(-1)},
    )


def test_a_loop_that_carries_a_sequence() -> None:
    """It is written out."""
    _agree(
        LISTED,
        {"x": X},
    )


def test_a_loop_that_carries_a_sequence_and_counts() -> None:
    """Its condition compares numbers of the file only, as PyTorch exports EmbeddingBag."""
    text = """
    g (float[n, 3] x) => (float[m] y) <int64 zero = {0}, bool first = {1}> {
      none = SequenceEmpty ()
      rows, last = Loop (, first, none, zero) <body = b (int64 k, bool c, seq(float[3]) s, int64 i)
        => (bool more, seq(float[3]) longer, int64 j) {
        row = Gather (x, i)
        longer = SequenceInsert (s, row)
        one = Constant <value_int = 1> ()
        j = Add (i, one)
        two = Constant <value_int = 2> ()
        more = Less (j, two)
      }>
      y = ConcatFromSequence <axis = 0> (rows)
    }
    """
    _agree(text, {"x": X}, {"x": X[:2]})
    loaded = _load(
        text.replace(
            "more = Less (j, two)",
            "top = ReduceMax <keepdims = 0> (row)\n        more = Cast <to = 9> (top)",
        )
    )
    with pytest.raises(LayerValidationError, match="elements inside of it decide how often"):
        loaded.run({"x": X})


def test_a_loop_that_collects_sums_of_slices_by_elements() -> None:
    """The rank of a row is declared only: the slice's ends are elements (EmbeddingBag)."""
    _agree(
        """
    g (float[n, 3] x, int64[m] places, int64[k] starts, int64[k] ends) => (float[a, b] y)
      <bool yes = {1}, int64[1] axis = {0}> {
      shape = Shape (ends)
      count = Squeeze (shape)
      y = Loop (count, yes) <body = h (int64 i, bool c) => (bool more, float[d] total) {
        more = Cast <to = 9> (yes)
        start = Gather (starts, i)
        end = Gather (ends, i)
        first = Unsqueeze (start, axis)
        last = Unsqueeze (end, axis)
        some = Slice (places, first, last, axis)
        rows = Gather (x, some)
        total = ReduceSum <keepdims = 0> (rows, axis)
      }>
    }
    """,
        *(
            {"x": X, "places": np.arange(4), "starts": np.array(starts), "ends": np.array(ends)}
            for starts, ends in (([0, 3], [3, 4]), ([0, 2, 2], [2, 2, 4]), ([1], [2]))
        ),
    )


def test_sequences_are_inputs_and_outputs_by_their_elements() -> None:
    """The option says how many there are; the output's own name is its length."""
    rows = {"xs[0]": X[0], "xs[1]": X[1]}
    options: dict[str, Any] = {"structures": '{"xs": 2, "o": true}'}
    outputs = _load(OPTIONAL, front_end_options=options).run({**rows, "o": X[2]})
    assert outputs["ys"] == 3
    np.testing.assert_array_equal([outputs[f"ys[{i}]"] for i in range(3)], X[:3])
    options = {"structures": {"xs": 2, "o": None}}
    assert list(_load(OPTIONAL, front_end_options=options).run(rows)) == ["ys", "ys[0]", "ys[1]"]
    with pytest.raises(ParserError, match=r"input 'xs': it has to be said how many .*input 'o'"):
        _load(OPTIONAL)


def test_dimensions_with_names_can_be_given_sizes() -> None:
    """Then the model's shapes are known when it is loaded."""
    sizes = {"n": 4, "m": 3}
    for dimensions in (sizes, json.dumps(sizes)):
        loaded = _load(CHOICE, front_end_options={"dimensions": dimensions})
        assert loaded.inputs[1].info.shape == (4, 3)
    with pytest.raises(InvalidArgumentError, match=r"a string; got \{'n': \{4\}\}.*as a dict"):
        _load(CHOICE, front_end_options={"dimensions": {"n": {4}}})


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            CHOICE,
            {"dimensions": '{"n": 4, "N": 4}'},
            r"dimension 'N'\. Expected 'n', 'm'; got 'N'\. Did you mean 'n'\?",
        ),
        (OPTIONAL, {"structures": '{"ys": 2}'}, r"the input 'ys'\. Expected 'xs', 'o'; got 'ys'"),
        (CHOICE, {"structures": '{"x": 2}'}, r"the input 'x'\. Expected no names: there are none"),
    ],
)
def test_names_that_no_input_has_are_refused(
    text: str, options: dict[str, str], message: str
) -> None:
    """A misspelt name would otherwise leave the dimension open without a word."""
    with pytest.raises(InvalidArgumentError, match=f"option '{next(iter(options))}'.*{message}"):
        _load(text, front_end_options=options)


def test_dimensions_of_elements_of_a_sequence_have_names_too() -> None:
    text = """graph (seq(float[rows, 3]) xs) => (float[a, 3] y) {
      y = ConcatFromSequence <axis = 0> (xs)
    }"""
    options = {"structures": '{"xs": 1}', "dimensions": '{"rows": 2}'}
    assert _load(text, front_end_options=options).inputs[0].info.shape == (2, 3)


def test_nodes_inside_of_graphs_that_cannot_be_converted_are_listed() -> None:
    """With the path to each, and those of both branches."""
    text = CHOICE.replace("Add (x, x)", "Concat <axis = 7> (x, x)").replace(
        "q = Reshape (x, t)", "q = Transpose <perm = [5]> (x)"
    )
    text = text.replace("float[n, m] x", "float[4, 3] x").replace("[a, b]", "")
    with pytest.raises(
        ParserError, match=r"If_0/then_branch/Concat_0'.*axis.*If_0/else_branch/Transpose_2'"
    ):
        _load(text)


@pytest.mark.parametrize("place", ["a branch", "nodes that wait"])
def test_inputs_that_layers_of_postponed_nodes_do_not_take_are_reported_as_such(place: str) -> None:
    """The file is sound: other inputs run, before and after."""
    pads = "five = Constant <value_ints = [0, 0, 0, -5]> () q = Pad (x, five)"
    text = BY_SHAPE.replace("q = Add (x, x)", pads).replace("[n, m] q", "[n, k] q")
    text = text.replace("float[n, m] y", "float[n, k] y")
    if place == "nodes that wait":
        text = f"graph (float[n, m] x) => (float[n, k] q) {{ {pads} }}"
    loaded = _load(text)
    for _ in range(2):
        assert loaded.run({"x": np.ones((2, 6), np.float32)})[loaded.outputs[0].name].shape[1] == 1
        with pytest.raises(LayerValidationError, match="more is taken away than there is"):
            loaded.run({"x": np.ones((3, 4), np.float32)})


@pytest.mark.parametrize("kind", ["Reshape (x, s)", "MatMul (x, x)", "Squeeze (x, s)"])
def test_a_branch_that_fits_no_known_shapes_is_an_error_once_it_is_taken(kind: str) -> None:
    loaded = _load(f"""graph (bool c, float[4, 3] x) => (float[4, 3] y) {{
      s = Constant <value_ints = [1]> ()
      y = If (c) <then_branch = g () => (p) {{ p = {kind} }},
        else_branch = h () => (q) {{ q = Neg (x) }}>
    }}""")
    np.testing.assert_array_equal(loaded.run({"c": NO, "x": X})["y"], -X)
    with pytest.raises(LayerValidationError, match=f"then/{kind[:6]}"):
        loaded.run({"c": YES, "x": X})


_KEPT = "other = Identity (w)"
_APPENDED = "part = Reshape (x, s) m = Concat <axis = 0> (v, part)"


@pytest.mark.parametrize(
    ("place", "backends"), [("loop", ["NumbaAcc", "CpuRef"]), ("branch", ["CpuRef"])]
)
@pytest.mark.parametrize(
    ("before", "after", "turn"),
    [
        ("float[?, 2, 3]", "float[p, q, r]", f"{_APPENDED} {_KEPT}"),
        ("float[?, 2, 3]", "float[?, 2, 3]", f"{_APPENDED} {_KEPT}"),
        ("float", "float", f"{_APPENDED} {_KEPT}"),
        ("float", "float", f"{_APPENDED} l = Concat <axis = -1> (w, w) other = Slice (l, k, e, k)"),
        ("float[?, 2, 3]", "float[p, 2, 3]", f"m = Slice (v, k, e, j) {_KEPT}"),
        ("float", "float", f"m = Slice (v, k, e, j) {_KEPT}"),
    ],
)
def test_a_loop_may_carry_what_the_file_does_not_say_that_it_changes(
    before: str, after: str, turn: str, place: str, backends: list[str]
) -> None:
    """A turn appends or takes away a part whose size follows from elements."""
    rows = 4 if "v, k" in turn else 0
    loop = f"""z = Constant <value = int64[3] {{{rows}, 2, 3}}> () first = ConstantOfShape (z)
    last, kept = Loop (n, c, first, x) <body = b (int64 i, bool go, {before} v, float w)
        => (bool on, {after} m, float other) {{ {turn} on = Identity (go) }}>"""
    if place == "branch":
        loop = f"""last, kept = If (c) <then_branch = t () => (float last, float kept) {{ {loop} }},
        else_branch = f () => (float a, float b) {{ a = Neg (x) b = Neg (x) }}>"""
    head = "graph (int64 n, bool c, float[2, 3] x, int64[r] s, int64[q] k, int64[q] e, int64[q] j)"
    text = f"{head} => (float last, float kept) {{ {loop} }}"
    model = onnx.parser.parse_model(HEAD + text)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    reference = onnx.reference.ReferenceEvaluator(model)
    loaded = armpy.load(model.SerializeToString(), backends=backends)
    numbers = {name: np.array([n]) for name, n in (("k", 1), ("e", 5), ("j", 0))}
    for turns in (3, 0, 1):
        sizes = {"n": np.int64(turns), "s": np.array([1, 2, 3]), "c": YES}
        inputs = {"x": X[:2], **numbers, **sizes}
        outputs, expected = loaded.run(inputs), reference.run(None, inputs)
        for name, wanted in zip(("last", "kept"), expected, strict=True):
            assert outputs[name].shape == wanted.shape
            np.testing.assert_array_equal(outputs[name], wanted)


_SCAN_OF_TWO = """graph (float[3, 2] a, float[4, 2] b) => (float[n, 2] y) {
  y = Scan <num_scan_inputs = 2, body = g (float[2] p, float[2] q) => (float[2] z) {
    z = Add (p, q)
  }> (a, b)
}"""
_SPLIT_ALONG_5 = """graph (float[4, 3] x) => (float[4, 3] y) {
  parts = SplitToSequence <axis = 5> (x)
  y = ConcatFromSequence <axis = 0> (parts)
}"""
_COLLECTING_4_TIB = """graph (float[1024, 1024] x) => (float[n, 1024, 1024] y) {
  turns = Constant <value_int = 1000000> ()
  always = Constant <value = bool {1}> ()
  y = Loop <body = g (int64 i, bool c) => (bool more, float[1024, 1024] z) {
    more = Identity (c)
    z = Identity (x)
  }> (turns, always)
}"""


_CAST_BESIDE_A_SEQUENCE = """graph (bool c, float[2] x) => (float[2] y) {
  v = SequenceConstruct (x)
  y = If (c) <then_branch = g () => (p) { i = Constant <value_int = 0> () w = SequenceAt (v, i)
      p = Cast <to = 99> (w) },
    else_branch = h () => (q) { q = Neg (x) }>
}"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_CAST_BESIDE_A_SEQUENCE, r"Cast 'then/Cast_2': the element type"),
        (_SCAN_OF_TWO, r"Scan 'Scan_0': the inputs have different lengths\. Got \[3, 4\]"),
        (_SPLIT_ALONG_5, r"SplitToSequence_0': the axis is out of range\. Expected -2 to 1; got 5"),
        (
            _COLLECTING_4_TIB,
            r"Loop_2': what a loop collects is too large\. Expected at most 268435456 bytes",
        ),
        (
            "graph (float[2] x) => (float[2] z) { y = Neg (x) }",
            "output 'z': nothing has written the output",
        ),
        (
            "graph (float[2] x) => (float[2] y) { c = Constant () y = Add (x, c) }",
            "Constant 'Constant_0': the constant has no value that is supported",
        ),
    ],
    ids=["branch", "lengths", "axis", "memory", "output", "constant"],
)
def test_graphs_that_cannot_be_computed_are_refused(text: str, message: str) -> None:
    with pytest.raises((ParserError, LayerValidationError), match=message):
        _load(text)

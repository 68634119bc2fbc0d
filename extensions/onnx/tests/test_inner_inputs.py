"""Graphs inside nodes whose inputs have the names of initializers or of tensors around them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser

import armpy
from armpy_testing.models.onnx_texts import HEAD

X = np.array([1, 2], np.float32)

LOOP = """g (float[2] x) => (float[2] y)
<int64 m = {TURNS}, bool go = {1}>
{
    y = Loop <body = b (int64 i, bool go_in, float[2] sEXTRA) => (bool go_out, float[2] s_out)
        <float[2] NAME = {100, 100}>
        {
            go_out = Identity (go_in)
            s_out = Add (s, ADDEND)
        }> (m, go, x)
}"""

SCAN = """g (float[2] x, float[3, 2] rows) => (float[2] y)
{
    y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] rowEXTRA) => (float[2] s_out)
        <float[2] NAME = {100, 100}>
        {
            t = Add (s, row)
            s_out = Add (t, ADDEND)
        }> (x, rows)
}"""

IF = """g (bool c, float[2] x) => (float[2] y)
{
    y = If <
        then_branch = t (float[2] w) => (float[2] r) <float[2] w = {3, 4}> { r = Add (x, w) },
        else_branch = e () => (float[2] r) { r = Neg (x) }
    > (c)
}"""


def _run(text: str, **inputs: object) -> object:
    """The output of a model on CpuRef."""
    model = onnx.parser.parse_model(HEAD + text)
    with armpy.load(model.SerializeToString(), backends=["CpuRef"]) as loaded:
        return loaded.run(inputs)["y"]


def _filled(text: str, extra: str, name: str, addend: str) -> str:
    """A model whose body has further inputs and an initializer."""
    return text.replace("EXTRA", extra).replace("NAME", name).replace("ADDEND", addend)


@pytest.mark.parametrize("turns", [2, 40, 300])
def test_the_state_of_a_loop_hides_an_initializer_of_its_name(turns: int) -> None:
    text = _filled(LOOP.replace("TURNS", str(turns)), "", "s", "x")
    np.testing.assert_array_equal(_run(text, x=X), X * (turns + 1))


def test_the_state_and_the_row_of_a_scan_hide_initializers_of_their_names() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    for name in ("s", "row"):
        text = _filled(SCAN, "", name, "row")
        np.testing.assert_array_equal(_run(text, x=X, rows=rows), X + 2 * rows.sum(axis=0))


@pytest.mark.parametrize("turns", [2, 300])
def test_inputs_beyond_those_that_a_node_gives_are_initializers(turns: int) -> None:
    loop = _filled(LOOP.replace("TURNS", str(turns)), ", float[2] w", "w", "w")
    np.testing.assert_array_equal(_run(loop, x=X), X + 100 * turns)
    scan = _filled(SCAN, ", float[2] w", "w", "w")
    rows = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(_run(scan, x=X, rows=rows), X + 303)
    for condition, expected in ((True, X + np.array([3, 4])), (False, -X)):
        np.testing.assert_array_equal(_run(IF, c=np.array(condition), x=X), expected)


STOPPING = """g (bool first, float n) => (float y)
<int64 m = {300}, bool go = {1}>
{
    ignored, y = Loop <body =
        b (int64 i, bool go_in, bool keep, float s) => (bool go_out, bool keep_out, float s_out)
        <bool keep = {1}, float one = {1}, float limit = {2}>
        {
            go_out = Identity (keep)
            keep_out = Less (s, limit)
            s_out = Add (s, one)
        }> (m, go, first, n)
}"""


def test_a_carried_condition_hides_an_initializer_that_never_stops() -> None:
    # Turns with s = 0, 1, 2, 3: the third writes False, and the fourth reads it.
    assert _run(STOPPING, first=np.array(True), n=np.float32(0)) == 4


REFERRING = """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
g (float[60, 2] x) => (float[50, 2, 2] y)
{ y = local.parts <size = 2> (x) }
<domain: "local", opset_import: ["" : 18]>
parts <size> (x) => (y)
{
    m = Constant <value = int64 {50}> ()
    go = Constant <value = bool {1}> ()
    y = Loop <body = b (int64 i, bool go_in) => (bool go_out, float[2, 2] part)
        {
            go_out = Identity (go_in)
            zero = Constant <value_ints = [0]> ()
            count = Constant <value_int: int = @size> ()
            start = Unsqueeze (i, zero)
            end = Add (start, count)
            part = Slice (x, start, end, zero)
        }> (m, go)
}"""


def test_bodies_of_loops_in_functions_refer_to_attributes() -> None:
    x = np.arange(120, dtype=np.float32).reshape(60, 2)
    model = onnx.parser.parse_model(REFERRING)
    with armpy.load(model.SerializeToString(), backends=["CpuRef"]) as loaded:
        y = loaded.run({"x": x})["y"]
    np.testing.assert_array_equal(y, [x[number : number + 2] for number in range(50)])

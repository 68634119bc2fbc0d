"""Models with graphs and functions inside, in ONNX's textual form."""

from __future__ import annotations

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'

CHOICE = """graph (bool c, float[n, m] x) => (float[a, b] y) {
  y = If (c) <
    then_branch = g () => (float[a, b] p) { p = Add (x, x) },
    else_branch = h () => (float[a, b] q) {
      s = Shape (x) t = ReduceProd <keepdims = 1> (s) q = Reshape (x, t)
    }
  >
}"""

CHOSEN = """graph (float[4, 3] x) => (float[4, 3] y) {
  c = Constant <value = bool {1}> ()
  y = If (c) <
    then_branch = g () => (float[4, 3] p) { p = Neg (x) },
    else_branch = h () => (float[4, 3] q) { q = Identity (x) }
  >
}"""

BY_SHAPE = """graph (float[n, m] x) => (float[n, m] y) {
  s = Size (x)
  six = Constant <value_int = 6> ()
  c = Less (s, six)
  y = If (c) <
    then_branch = g () => (float[n, m] p) { p = Neg (x) },
    else_branch = h () => (float[n, m] q) { q = Add (x, x) }
  >
}"""

COUNTED = """graph (int64 n, bool c, float[3] x) => (float[3] last, float[k, 3] all) {
  last, all = Loop (n, c, x) <body = b (int64 i, bool go, float[3] v)
      => (bool on, float[3] w, float[3] out) {
    w = Add (v, x)
    out = Mul (w, x)
    s = ReduceSum <keepdims = 0> (w)
    limit = Constant <value = float {20.0}> ()
    on = Less (s, limit)
  }>
}"""

CHANGING = """graph (int64 n, float[p, 2] x) => (float[q, 2] y, float[r, 2] z) {
  go = Constant <value = bool {1}> () row = Constant <value = float[1, 2] {1.0, 2.0}> ()
  y, z = Loop (n, go, x, x) <body = b (int64 i, bool go2, float[a, 2] c, float[b, 2] f)
      => (bool on, float[c, 2] d, float[d, 2] e) {
    TURN
    on = Identity (go2)
  }>
}"""

COLLECTING = """graph (int64 n, int64[m] sizes, float[2] x) => (float[k, l, 2] y) {
  c = Constant <value = bool {1}> ()
  y = Loop (n, c) <body = b (int64 i, bool go) => (bool on, float[p, 2] rows) {
    size = Gather <axis = 0> (sizes, i)
    rows = Loop (size, c) <body = d (int64 j, bool go2) => (bool on2, float[2] row) {
      number = Cast <to = 1> (j)
      row = Add (x, number)
      on2 = Identity (go2)
    }>
    on = Identity (go)
  }>
}"""

REPEATED = """graph (float[2] x) => (float[2] last, float[k, 2] all) {
  n = Constant <value_int = TURNS> ()
  c = Constant <value = bool {1}> ()
  last, all = Loop (n, c, x) <body = b (int64 i, bool go, float[2] v)
      => (bool on, float[2] w, float[2] out) {
    h = Constant <value = float {0.5}> ()
    w = Mul (v, h)
    out = Add (w, x)
    on = Identity (go)
  }>
}"""

GROWING = """graph (int64 n, float[m] x) => (float[k] y) {
  t = Constant <value = bool {1}> ()
  y = Loop (n, t, x) <body = b (int64 i, bool go, float[q] v)
      => (bool on, float[r] w) {
    w = Concat <axis = 0> (v, x)
    on = Identity (go)
  }>
}"""

NESTED = """graph (int64 n, bool c, float[2] x) => (float[2] y) {
  y = If (c) <
    then_branch = g () => (float[2] p) {
      t = Constant <value = bool {1}> ()
      p = Loop (n, t, x) <body = b (int64 i, bool go, float[2] v)
          => (bool on, float[2] w) {
        w = Loop (i, t, v) <body = d (int64 j, bool go2, float[2] v2)
            => (bool on2, float[2] w2) {
          w2 = Add (v2, x)
          on2 = Identity (go2)
        }>
        on = Identity (go)
      }>
    },
    else_branch = h () => (float[2] q) { q = Neg (x) }
  >
}"""

SCANNED = """graph (float[3] s, float[LENGTH, 3] x, float[3, LENGTH] z)
    => (float[3] t, float[a, b] u, float[d, e] v) {
  t, u, v = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1],
      scan_input_directions = [0, 1], scan_output_axes = [0, 1],
      scan_output_directions = [1, 0],
      body = b (float[3] s0, float[3] x0, float[3] z0)
        => (float[3] s1, float[3] u0, float[3] v0) {
    s1 = Add (s0, x0)
    u0 = Mul (s1, z0)
    v0 = Sub (x0, z0)
  }> (s, x, z)
}"""

SPLIT = """graph (float[n, m] x) => (float[k, m] y, int64 c) {
  parts = SplitToSequence <axis = 0> (x)
  c = SequenceLength (parts)
  turned = SequenceMap (parts) <body = b (float[p, m] t) => (float[p, m] w) {
    w = Neg (t)
  }>
  y = ConcatFromSequence <axis = 0> (turned)
}"""

PLACE = """graph (float[2] x, float[3] z, int64 i) => (float[k] y) {
  both = SequenceConstruct (x, z)
  y = SequenceAt (both, i)
}"""

LISTED = """graph (float[4, 3] x) => (float[k, 3] y) {
  n = Constant <value_int = 3> ()
  t = Constant <value = bool {1}> ()
  none = SequenceEmpty ()
  list = Loop (n, t, none) <body = b (int64 i, bool go, seq(float) v)
      => (bool on, seq(float) w) {
    row = Gather <axis = 0> (x, i)
    w = SequenceInsert (v, row)
    on = Identity (go)
  }>
  y = ConcatFromSequence <axis = 0, new_axis = 1> (list)
}"""

OPTIONAL = """graph (seq(float[3]) xs, optional(float[3]) o) => (seq(float[3]) ys) {
  has = OptionalHasElement (o)
  ys = If (has) <
    then_branch = g () => (seq(float[3]) p) {
      t = OptionalGetElement (o) p = SequenceInsert (xs, t)
    },
    else_branch = h () => (seq(float[3]) q) { q = Identity (xs) }
  >
}"""

SCALED = """
<ir_version: 9, opset_import: ["" : 17, "own" : 1]>
graph (float[2, 3, 4] x) => (float[2, 3, 4] y, float[2, 3, 4] z) {
  y = own.Scaled <by = 3.0> (x)
  z = own.Scaled (y)
}
<domain: "own", opset_import: ["" : 17]>
Inner <factor> (a) => (b) {
  f = Constant <value_float: float = @factor> ()
  b = Mul (a, f)
}
<domain: "own", opset_import: ["" : 17, "own" : 1]>
Scaled <by: float = 0.5> (a) => (b) {
  t = own.Inner <factor: float = @by> (a)
  b = Mul (t, t)
}
"""

MODELS = (
    *(HEAD + text for text in (CHOICE, CHOSEN, BY_SHAPE, COUNTED, GROWING, NESTED, SPLIT, PLACE)),
    *(HEAD + text for text in (LISTED, OPTIONAL)),
    *(HEAD + REPEATED.replace("TURNS", turns) for turns in ("3", "300")),
    *(HEAD + SCANNED.replace("LENGTH", length) for length in ("4", "200")),
    SCALED,
)
"""Whole models."""

"""Models with quantised tensors and with ONNX Runtime's operators, in ONNX's textual form."""

from __future__ import annotations

_HEAD = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>\n'

_PAIRS = """graph (float[1, 2, 4, 4] x) => (float[1, 3, a, b] y)
<float s = {0.05}, int8 z = {3}, float[3] ws = {0.1, 0.2, 0.3}, int8[3] wz = {0, 0, 0},
 int8[3, 2, 1, 1] w = {1, -2, 3, -4, 5, -6}, int32[3] b = {10, 20, -30}, float bs = {0.005},
 int32 bz = {0}> {
  q = QuantizeLinear (x, s, z)
  d = DequantizeLinear (q, s, z)
  dw = DequantizeLinear <axis = 0> (w, ws, wz)
  db = DequantizeLinear (b, bs, bz)
  c = Conv (d, dw, db)
  r = Relu (c)
  q2 = QuantizeLinear (r, s, z)
  d2 = DequantizeLinear (q2, s, z)
  p = MaxPool <kernel_shape = [2, 2]> (d2)
  q3 = QuantizeLinear (p, s, z)
  d3 = DequantizeLinear (q3, s, z)
  a = Add (d3, d3)
  q4 = QuantizeLinear (a, s, z)
  y = DequantizeLinear (q4, s, z)
}"""

_CHOSEN_PAIRS = """graph (bool k, float[2, 4] x) => (float[n, m] y)
<float s = {0.05}, uint8 z = {128}, uint8[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
  q = QuantizeLinear (x, s, z)
  y = If (k) <
    then_branch = g () => (float[a, b] p) {
      d = DequantizeLinear (q, s, z)
      dw = DequantizeLinear (w, s, z)
      m = MatMul (d, dw)
      qm = QuantizeLinear (m, s, z)
      p = DequantizeLinear (qm, s, z)
    },
    else_branch = h () => (float[c, e] r) { r = DequantizeLinear (q, s, z) }
  >
}"""

_BLOCKS = """graph (float[2, 4] x) => (float[2, 3] y)
<int4[4, 3] w = {1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4},
 float[2, 3] s = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, int4[2, 3] z = {0, 1, 2, -1, -2, -3}> {
  d = DequantizeLinear <axis = 0, block_size = 2> (w, s, z)
  y = MatMul (x, d)
}"""

_INTEGERS = """graph (uint8[1, 2, 4, 4] x, float[2, 4] f) => (uint8[1, 2, a, b] y, float[2, 3] g)
<float s = {0.1}, uint8 z = {7}, uint8[2, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5,
 4, 3, 2, 1}, uint8[4, 3] v = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
  y = QLinearConv <group = 2, pads = [1, 1, 1, 1]> (x, s, z, w, s, z, s, z)
  q, t, u = DynamicQuantizeLinear (f)
  m = MatMulInteger (q, v, u, z)
  h = Cast <to = 1> (m)
  k = Mul (t, s)
  g = Mul (h, k)
}"""

_RUNTIME = """graph (float[1, 2, 4] x, uint8[1, 4] q) => (float[1, 2, 4] y, uint8[1, 2] r)
<float[4, 12] w = {LONG}, float[12] b = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2},
 float[4] g = {1, 1, 1, 1}, uint8[4, 1, 8] n = {BYTES}, float[4] ns = {1, 2, 3, 4},
 float s = {0.1}, uint8 z = {7}, uint8[4, 2] v = {1, 2, 3, 4, 5, 6, 7, 8}> {
  a = com.microsoft.Attention <num_heads = 2> (x, w, b)
  k = com.microsoft.SkipLayerNormalization (a, x, g, g)
  h = com.microsoft.BiasGelu (k, g)
  f = com.microsoft.MatMulNBits <K = 4, N = 4, bits = 4, block_size = 16> (h, n, ns)
  i = com.microsoft.DynamicQuantizeMatMul (f, sq, s, z)
  y = com.microsoft.MultiHeadAttention <num_heads = 2> (i, f, f)
  sum = com.microsoft.QLinearAdd (q, s, z, q, s, z, s, z)
  cat = com.microsoft.QLinearConcat <axis = 0> (s, z, sum, s, z, q, s, z)
  e = com.microsoft.QLinearSigmoid (cat, s, z, s, z)
  mean = com.microsoft.QLinearReduceMean <axes = [0], keepdims = 1> (e, s, z, s, z)
  r = com.microsoft.QGemm (mean, s, z, v, s, z, , s, z)
}"""

_NUMBERS = ", ".join(f"{number % 7 - 3}" for number in range(48))
_FEW = ", ".join(f"{number * 37 % 256}" for number in range(32))
_SQUARE = "uint8[4, 4] sq = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, float s ="

QUANTIZED_MODELS = (
    *(_HEAD + text for text in (_PAIRS, _CHOSEN_PAIRS, _BLOCKS, _INTEGERS)),
    _HEAD + _RUNTIME.replace("LONG", _NUMBERS).replace("BYTES", _FEW).replace("float s =", _SQUARE),
)
"""Whole models."""

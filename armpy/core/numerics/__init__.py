"""Integer arithmetic of quantised networks, bit for bit as TFLite's reference kernels define it.

What a backend needs to give the answers that TFLite gives: real factors as fixed-point
multipliers, rounding and saturation, functions in fixed point and as tables, and positions and
weights of resizing. It depends on NumPy alone, and takes scales and zero points as numbers.
Functions of arrays work element by element and return new arrays of the same shape; stored
integers may have any integer type and are computed in int64.

Notes
-----
==================  ================================================================
`rounding`          half away from zero, rounding right shifts, saturation
`fixed_point`       quantised multipliers, products with them, requantisation
`quantization`      parameters of affine quantisation, clamps of stored integers
`lookup_table`      functions of real numbers as tables, of 8 bits and of 16
`integer_functions` functions of one stored integer: RELU, HARD_SWISH, RSQRT, ...
`pair_functions`    functions of two of them: DIV
`small_floats`      floats of 16, 8 and 4 bits that NumPy has no type for
==================  ================================================================

What these have is offered here. Other modules are names of their own, for what several of them
have in their way: ``numerics.gemmlowp.tanh``, ``numerics.activations.tanh``.

==================  ================================================================
`gemmlowp`          exponential, logistic, tanh, and reciprocal root in fixed point
`logarithm`         reciprocal and logarithm in fixed point
`softmax`           tables and limits of softmax
`resize`            neighbours and weights of interpolation
`elementary`        elementary functions of floats, correctly rounded
`activations`       activation functions of float32
==================  ================================================================

References
----------
gemmlowp ``fixedpoint/fixedpoint.h``; TFLite ``kernels/internal/common.h``,
``kernels/internal/quantization_util.cc`` and the kernels that each module names; Jacob et al.,
"Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
2018, section 2.2.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)

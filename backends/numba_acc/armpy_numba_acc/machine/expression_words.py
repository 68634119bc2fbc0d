"""Words of expressions, for those who write expressions without compiling them."""

from __future__ import annotations

INPUT_WORDS = ("x0", "x1", "x2")
PARAMETER_WORD = "p"
"""How names of expressions refer to inputs, and to parameters that are operands."""

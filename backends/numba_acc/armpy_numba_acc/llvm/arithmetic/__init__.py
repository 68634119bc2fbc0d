"""Arithmetic that processors differ in: dot products, bfloat16, fixed point, matrix units."""

"""Finishes of sums: scaling, rounding and residuals, and how elements are stored."""

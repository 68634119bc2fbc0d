"""Traced programs: prepared once for sizes that are traced, and filled in for any others."""

"""Comparisons of `compare_trees.py`, `compare_backends.py` and `compare_pyarmnn.py`."""

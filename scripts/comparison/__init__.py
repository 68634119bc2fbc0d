"""Subjects of `compare_trees.py`, their answers in one tree, and the stored ones."""

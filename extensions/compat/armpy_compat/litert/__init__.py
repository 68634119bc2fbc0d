"""LiteRT's Python modules, answered by armpy."""

__version__ = "2.3.0"
"""The version of LiteRT whose interface this is; programs compare it."""

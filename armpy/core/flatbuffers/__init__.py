"""Flatbuffers files: `reader` checks every offset that it follows, `writer` writes whole files.

Authors of plugins import both from `armpy.plugins.hooks.flatbuffers`.
"""

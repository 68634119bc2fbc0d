"""Compilation of a graph to an optimised network with a backend for every layer.

In come a graph, the backends and options; out comes an `OptimizedNetwork`, which says for every
layer the backend that runs it and why, with copies and memory planned. Begin with `optimize`:
`specialize` and `passes` rewrite the graph, `assign` asks the backends, `substitute` offers them
parts, `memory` places values.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)

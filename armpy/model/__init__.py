"""The two-line way: `armpy.load` a file, call what comes back.

In comes a file, bytes or a graph; out comes a `Model`, which takes and gives arrays by name. Begin
with `load` and `model`: `model_files` lets a front-end read the file, `save` writes compiled
models, `archive` starts them and keeps those that were loaded before. The parts of a model are
`network_handle`, `related_models` and `provenance`.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)

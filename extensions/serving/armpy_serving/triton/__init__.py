"""Triton: models in NVIDIA's Triton Inference Server, by its Python backend.

`export` writes what a model repository has of a model, with `config` for Triton's own file and
`repository` for folders that change at once or not at all. `python_model` is what the server's
processes import, `steps` what stands before and after it in an ensemble: these alone import the
server's module. `settings` go from the one to the other.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)

"""Loaded networks and what runs them.

In comes an optimised network and then arrays; out come arrays, futures and errors that name the
layer. Begin with `runtime` and `loaded_network`: `programs` are the steps that one execution takes,
`wrappers` what is done around them, `memory` where values lie, `arrays` what callers hand over,
`scheduling` who runs when and until when, `isolation` backends in processes of their own.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)

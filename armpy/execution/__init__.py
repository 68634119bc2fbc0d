"""Loaded networks and what runs them.

In comes an optimised network and then arrays; out come arrays, futures and errors that name the
layer. Begin with `runtime` and `loaded_network`. Each folder imports only those after it: `calls`
check a caller's arrays and execute, `wrappers` surround executions, `programs` are the steps that
one execution takes and its working memory, `steps` is what backends make of layers, `memory` where
bytes come from, `arrays` what callers hand over, `scheduling` order and deadlines.
`isolated_worker` serves a backend in a process of its own (`armpy.plugins.isolation`).
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)

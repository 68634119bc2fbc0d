"""Serving of models in servers, clusters and batch jobs.

The Open Inference Protocol comes in layers that import no server: `protocol` has its datatypes and
metadata, `contents` makes arrays of requests' elements and elements of arrays, `requests` reads and
writes what goes over HTTP, `status` says whose fault an error is, `metrics` counts, and
`served_model` is a model with all of these. Adapters are thin: a module or folder for each server,
which alone imports it. `batching` makes one call of several callers' items.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)

"""Runs NNAPI's published operation tests, as data, on any backend."""

from armpy_nnapi.conformance.vectors.runner import VectorsResult, run_vectors

__all__ = ["VectorsResult", "run_vectors"]

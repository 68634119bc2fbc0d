"""Looks for models on which a backend fails, guided by what its code has run, or by chance."""

from armpy_nnapi.conformance.fuzz.result import Finding, FuzzRun
from armpy_nnapi.conformance.fuzz.runner import run_fuzz

__all__ = ["Finding", "FuzzRun", "run_fuzz"]

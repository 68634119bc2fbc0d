"""Compares a backend with CpuRef on NNAPI models that are made up."""

from armpy_nnapi.conformance.random_graphs.runner import run_random_graphs

__all__ = ["run_random_graphs"]

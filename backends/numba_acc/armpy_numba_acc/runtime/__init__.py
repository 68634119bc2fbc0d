"""Execution of programs: loaded kernels, threads, workloads.

A program that has one thread, and is too short to be counted, runs without the process's workers.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)

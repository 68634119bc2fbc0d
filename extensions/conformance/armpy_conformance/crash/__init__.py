"""Tries to make a backend end its process, hang or lie, each case in a process of its own."""

from armpy_conformance.crash.result import CrashOutcome, CrashResult, CrashRun
from armpy_conformance.crash.runner import run_crash

__all__ = ["CrashOutcome", "CrashResult", "CrashRun", "run_crash"]

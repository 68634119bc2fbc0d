"""Tries to make a backend end its process, hang or lie, each case in a process of its own."""

from armpy.testing.crash.result import CrashOutcome, CrashResult, CrashRun
from armpy.testing.crash.runner import run_crash

__all__ = ["CrashOutcome", "CrashResult", "CrashRun", "run_crash"]

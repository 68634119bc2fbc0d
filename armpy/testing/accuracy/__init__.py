"""Accuracy and latency of a backend over models, against real numbers and a peer."""

from armpy.testing.accuracy.report import AccuracyRun, ModelReport, Status
from armpy.testing.accuracy.runner import run_accuracy

__all__ = ["AccuracyRun", "ModelReport", "Status", "run_accuracy"]

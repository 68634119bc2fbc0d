"""Accuracy and latency of a backend over models, against real numbers and a peer."""

from armpy.testing.accuracy.accuracy_run import AccuracyRun
from armpy.testing.accuracy.report import ModelReport, Status
from armpy.testing.accuracy.runner import run_accuracy

__all__ = ["AccuracyRun", "ModelReport", "Status", "run_accuracy"]

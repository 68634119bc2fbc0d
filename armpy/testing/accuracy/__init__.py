"""Accuracy and latency of a backend over models, against real numbers and a peer."""

from armpy.testing.accuracy.accuracy_run import AccuracyRun
from armpy.testing.accuracy.report import ModelAccuracy, Status
from armpy.testing.accuracy.runner import run_accuracy

__all__ = ["AccuracyRun", "ModelAccuracy", "Status", "run_accuracy"]

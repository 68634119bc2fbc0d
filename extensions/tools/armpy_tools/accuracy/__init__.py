"""Accuracy and latency of a backend over models, against real numbers and a peer."""

from armpy_tools.accuracy.accuracy_run import AccuracyRun
from armpy_tools.accuracy.report import ModelAccuracy, Status
from armpy_tools.accuracy.runner import run_accuracy

__all__ = ["AccuracyRun", "ModelAccuracy", "Status", "run_accuracy"]

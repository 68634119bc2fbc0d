"""Differences between answers: tensors, layers, whole models, and the first layer that differs."""

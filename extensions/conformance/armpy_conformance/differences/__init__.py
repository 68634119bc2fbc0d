"""Differences of models: the first layer that two backends, or two files, compute differently."""

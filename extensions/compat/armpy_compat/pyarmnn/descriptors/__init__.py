"""Descriptors, which configure layers, and parameters of LSTMs."""

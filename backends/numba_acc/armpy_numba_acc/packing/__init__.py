"""Weights as the kernels want them."""
